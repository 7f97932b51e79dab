#include "coding/tools/line_diff.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::coding {

namespace {

constexpr std::size_t kContext = 4;               // lines around a change
constexpr std::size_t kLargestText = 1ULL << 30;  // bytes; beyond it nobody reads a diff
constexpr std::size_t kMostLines = 1'000'000;     // lines that are compared by content
constexpr std::size_t kFewLines = 4'000;          // lines that are compared whatever is known
constexpr std::ptrdiff_t kMostEdits = 1'500;      // removed and added lines
constexpr std::size_t kMostSteps = 20'000'000;    // comparisons
constexpr std::ptrdiff_t kUnreached = std::numeric_limits<std::ptrdiff_t>::min();

/// The lines of a text, each with its line end.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at < text.size();) {
      starts_.push_back(static_cast<std::uint32_t>(at));
      const void* end = std::memchr(text.data() + at, '\n', text.size() - at);
      if (end == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const char*>(end) - text.data()) + 1;
    }
  }

  std::size_t size() const { return starts_.size(); }
  bool ends_with_newline() const { return text_.ends_with('\n'); }
  std::size_t begin_of(std::size_t line) const { return line < starts_.size() ? starts_[line] : text_.size(); }
  std::string_view operator[](std::size_t line) const {
    return text_.substr(begin_of(line), begin_of(line + 1) - begin_of(line));
  }
  std::string_view without_end(std::size_t line) const {
    std::string_view text = (*this)[line];
    if (text.ends_with('\n')) text.remove_suffix(1);
    return text;
  }
  /// The line that holds the byte; size() at the end of a text that ends with a newline.
  std::size_t line_at(std::size_t offset) const {
    if (offset >= text_.size()) return text_.empty() || ends_with_newline() ? size() : size() - 1;
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), static_cast<std::uint32_t>(offset));
    return static_cast<std::size_t>(after - starts_.begin()) - 1;
  }
  bool starts_line(std::size_t offset) const { return offset == 0 || text_[offset - 1] == '\n'; }

 private:
  std::string_view text_;
  std::vector<std::uint32_t> starts_;
};

/// Drops equal lines from both ends of a change.
void tighten(LineChange& change, const Lines& before, const Lines& after) {
  while (change.old_count > 0 && change.new_count > 0 && before[change.old_line] == after[change.new_line]) {
    ++change.old_line, --change.old_count;
    ++change.new_line, --change.new_count;
  }
  while (change.old_count > 0 && change.new_count > 0 &&
         before[change.old_line + change.old_count - 1] == after[change.new_line + change.new_count - 1]) {
    --change.old_count, --change.new_count;
  }
}

/// Myers' greedy algorithm. x counts lines of `a`, y of `b`; diagonal k = x - y. Nothing when it takes too much work.
std::optional<std::vector<LineChange>> shortest_script(const std::vector<std::uint32_t>& a,
                                                       const std::vector<std::uint32_t>& b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size());
  const auto m = static_cast<std::ptrdiff_t>(b.size());
  const std::ptrdiff_t most = std::min(kMostEdits, n + m);
  std::vector<std::ptrdiff_t> furthest(static_cast<std::size_t>(2 * most + 3), kUnreached);
  const auto at = [&](std::ptrdiff_t k) -> std::ptrdiff_t& { return furthest[static_cast<std::size_t>(k + most + 1)]; };
  // Whether diagonal k is entered by an added line (from k + 1); otherwise by a removed one (from k - 1).
  const auto by_adding = [](std::ptrdiff_t removing, std::ptrdiff_t adding) {
    return removing == kUnreached || (adding != kUnreached && removing < adding);
  };

  std::vector<std::vector<std::int32_t>> trace;  // entry x of every diagonal after d edits, before its equal lines
  std::size_t steps = 0;
  std::ptrdiff_t edits = 0;
  for (bool done = false; !done; ++edits) {
    if (edits > most) return std::nullopt;
    trace.emplace_back(static_cast<std::size_t>(edits + 1), 0);
    for (std::ptrdiff_t k = -edits; k <= edits; k += 2) {
      std::ptrdiff_t x = 0;
      std::int32_t entered = 0;
      if (edits > 0) {
        std::ptrdiff_t removing = at(k - 1);
        if (removing >= n) removing = kUnreached;
        std::ptrdiff_t adding = at(k + 1);
        if (adding != kUnreached && adding - (k + 1) >= m) adding = kUnreached;
        if (removing == kUnreached && adding == kUnreached) {
          at(k) = kUnreached;
          continue;
        }
        const bool added = by_adding(removing, adding);
        x = added ? adding : removing + 1;
        entered = static_cast<std::int32_t>(added ? -x - 1 : x);
      }
      trace.back()[static_cast<std::size_t>((k + edits) / 2)] = entered;
      std::ptrdiff_t y = x - k;
      const std::ptrdiff_t start = x;
      while (x < n && y < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)])
        ++x, ++y;
      steps += static_cast<std::size_t>(x - start) + 1;
      at(k) = x;
      if (x == n && y == m) {
        done = true;
        break;
      }
    }
    if (!done && steps > kMostSteps) return std::nullopt;
  }

  // Back from the end. Edits without an equal line between them are one change.
  std::vector<LineChange> changes;
  std::ptrdiff_t k = n - m;
  for (std::ptrdiff_t d = edits - 1; d > 0; --d) {
    const std::int32_t entered = trace[static_cast<std::size_t>(d)][static_cast<std::size_t>((k + d) / 2)];
    const bool added = entered < 0;
    const std::ptrdiff_t x = added ? -static_cast<std::ptrdiff_t>(entered) - 1 : entered;
    LineChange edit;
    edit.old_line = static_cast<std::size_t>(added ? x : x - 1);
    edit.new_line = static_cast<std::size_t>(added ? x - k - 1 : x - k);
    edit.old_count = added ? 0 : 1;
    edit.new_count = added ? 1 : 0;
    if (!changes.empty() && edit.old_line + edit.old_count == changes.back().old_line &&
        edit.new_line + edit.new_count == changes.back().new_line) {
      edit.old_count += changes.back().old_count;
      edit.new_count += changes.back().new_count;
      changes.back() = edit;
    } else {
      changes.push_back(edit);
    }
    k += added ? 1 : -1;
  }
  std::reverse(changes.begin(), changes.end());
  return changes;
}

std::vector<LineChange> changes_of_windows(const Lines& before, const Lines& after,
                                           std::span<const TextWindow> windows) {
  std::vector<LineChange> changes;
  for (const TextWindow& window : windows) {
    LineChange change;
    change.old_line = before.line_at(window.old_begin);
    change.new_line = after.line_at(window.new_begin);
    const bool whole_lines = before.starts_line(window.old_end) && after.starts_line(window.new_end);
    const auto end = [&](const Lines& lines, std::size_t offset) {
      return std::min(lines.size(), lines.line_at(offset) + (whole_lines ? 0 : 1));
    };
    change.old_count = end(before, window.old_end) - std::min(change.old_line, end(before, window.old_end));
    change.new_count = end(after, window.new_end) - std::min(change.new_line, end(after, window.new_end));
    if (!changes.empty() && (change.old_line <= changes.back().old_line + changes.back().old_count ||
                             change.new_line <= changes.back().new_line + changes.back().new_count)) {
      LineChange& last = changes.back();
      last.old_count = std::max(last.old_count, change.old_line + change.old_count - last.old_line);
      last.new_count = std::max(last.new_count, change.new_line + change.new_count - last.new_line);
    } else {
      changes.push_back(change);
    }
  }
  for (LineChange& change : changes)
    tighten(change, before, after);
  std::erase_if(changes, [](const LineChange& change) { return change.old_count + change.new_count == 0; });
  return changes;
}

/// Appends the shortest changes within one change. False when that takes too much work.
bool append_shortest(std::vector<LineChange>& changes, const LineChange& whole, const Lines& before,
                     const Lines& after) {
  if (whole.old_count == 0 || whole.new_count == 0) {
    changes.push_back(whole);
    return true;
  }
  if (whole.old_count + whole.new_count > kMostLines) return false;
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  const auto number = [&](const Lines& lines, std::size_t begin, std::size_t n) {
    std::vector<std::uint32_t> ids;
    ids.reserve(n);
    for (std::size_t i = begin; i < begin + n; ++i) {
      ids.push_back(numbers.try_emplace(lines[i], static_cast<std::uint32_t>(numbers.size())).first->second);
    }
    return ids;
  };
  const std::vector<std::uint32_t> a = number(before, whole.old_line, whole.old_count);
  const std::vector<std::uint32_t> b = number(after, whole.new_line, whole.new_count);
  const auto found = shortest_script(a, b);
  if (!found) return false;
  for (LineChange change : *found) {
    change.old_line += whole.old_line;
    change.new_line += whole.new_line;
    changes.push_back(change);
  }
  return true;
}

std::vector<LineChange> shortest_changes(const Lines& before, const Lines& after, std::span<const TextWindow> known) {
  std::size_t first = 0;
  while (first < before.size() && first < after.size() && before[first] == after[first])
    ++first;
  std::size_t old_end = before.size();
  std::size_t new_end = after.size();
  // Equal lines at the end are left in where they cost nothing: which of several shortest scripts is found depends on
  // them, and pi finds it with them.
  const auto is_large = [&] { return std::max(old_end, new_end) - first > kFewLines; };
  if (is_large()) {
    while (old_end > first && new_end > first && before[old_end - 1] == after[new_end - 1])
      --old_end, --new_end;
  }
  if (first == old_end && first == new_end) return {};
  std::vector<LineChange> changes;
  const LineChange whole{first, old_end - first, first, new_end - first};
  if ((known.empty() || !is_large()) && append_shortest(changes, whole, before, after)) return changes;
  for (LineChange part : known.empty() ? std::vector{whole} : changes_of_windows(before, after, known)) {
    if (known.empty() || !append_shortest(changes, part, before, after)) {
      tighten(part, before, after);
      changes.push_back(part);
    }
  }
  std::erase_if(changes, [](const LineChange& change) { return change.old_count + change.new_count == 0; });
  return changes;
}

/// Changes whose context touches.
struct Hunk {
  std::size_t first, last;         // changes, both included
  std::size_t old_begin, old_end;  // lines with context
  std::size_t new_begin, new_end;
};

std::vector<Hunk> hunks_of(const std::vector<LineChange>& changes, std::size_t old_lines) {
  std::vector<Hunk> hunks;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const LineChange& change = changes[i];
    const std::size_t before = std::min(kContext, change.old_line);
    const std::size_t old_after = change.old_line + change.old_count;
    const std::size_t behind = std::min(kContext, old_lines - old_after);
    const Hunk hunk{i,
                    i,
                    change.old_line - before,
                    old_after + behind,
                    change.new_line - before,
                    change.new_line + change.new_count + behind};
    if (!hunks.empty() && hunk.old_begin <= hunks.back().old_end) {
      hunks.back().last = i;
      hunks.back().old_end = hunk.old_end;
      hunks.back().new_end = hunk.new_end;
    } else {
      hunks.push_back(hunk);
    }
  }
  return hunks;
}

/// Calls line(sign, old line, new line, change) for every line of a hunk.
template <class Visit>
void visit_hunk(const Hunk& hunk, const std::vector<LineChange>& changes, Visit line) {
  std::size_t old_line = hunk.old_begin;
  std::size_t new_line = hunk.new_begin;
  for (std::size_t i = hunk.first; i <= hunk.last; ++i) {
    const LineChange& change = changes[i];
    for (; old_line < change.old_line; ++old_line, ++new_line)
      line(' ', old_line, new_line, change);
    for (std::size_t n = 0; n < change.old_count; ++n, ++old_line)
      line('-', old_line, new_line, change);
    for (std::size_t n = 0; n < change.new_count; ++n, ++new_line)
      line('+', old_line, new_line, change);
  }
  for (; old_line < hunk.old_end; ++old_line, ++new_line)
    line(' ', old_line, new_line, changes[hunk.last]);
}

/// The part of a long line that starts a little before `focus`, with marks where it was cut.
std::string shown(std::string_view line, std::size_t focus) {
  if (line.size() <= kLongestDiffLine) return std::string(line);
  constexpr std::size_t kLead = 200;
  std::size_t begin = focus > kLead ? focus - kLead : 0;
  begin = std::min(begin, line.size() - kLongestDiffLine);
  std::size_t end = begin + kLongestDiffLine;
  const auto inside_character = [&](std::size_t at) {
    return at > 0 && at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U;
  };
  for (int i = 0; i < 3 && inside_character(begin); ++i)
    --begin;
  for (int i = 0; i < 3 && inside_character(end); ++i)
    --end;
  return fmt::format("{}{}{}", begin > 0 ? "…" : "", line.substr(begin, end - begin),
                     end < line.size() ? fmt::format("… [{} bytes in all]", line.size()) : "");
}

/// Where a removed line and the added line in the same place of the change begin to differ.
std::size_t focus_of(char sign, std::size_t old_line, std::size_t new_line, const LineChange& change,
                     const Lines& before, const Lines& after) {
  if (sign == ' ') return 0;
  const std::size_t index = sign == '-' ? old_line - change.old_line : new_line - change.new_line;
  if (index >= change.old_count || index >= change.new_count) return 0;
  const std::string_view a = before[change.old_line + index];
  const std::string_view b = after[change.new_line + index];
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::string diff_text(const Lines& before, const Lines& after, const std::vector<LineChange>& changes,
                      const std::vector<Hunk>& hunks) {
  // Counted as pieces between newlines: a newline at the end adds one (CA-315).
  const std::size_t most = std::max(before.size() + (before.ends_with_newline() ? 1 : 0),
                                    after.size() + (after.ends_with_newline() ? 1 : 0));
  const std::size_t width = fmt::formatted_size("{}", most);
  const std::string skipped = fmt::format(" {:{}} ...\n", "", width);
  std::string out;
  for (const Hunk& hunk : hunks) {
    if (hunk.old_begin > 0) out += skipped;
    bool full = false;
    visit_hunk(hunk, changes, [&](char sign, std::size_t old_line, std::size_t new_line, const LineChange& change) {
      full = full || out.size() > kLargestDiff;
      if (full) return;
      const std::string_view line = sign == '+' ? after.without_end(new_line) : before.without_end(old_line);
      const std::size_t focus =
          line.size() > kLongestDiffLine ? focus_of(sign, old_line, new_line, change, before, after) : 0;
      fmt::format_to(std::back_inserter(out), "{}{:>{}} {}\n", sign, (sign == '+' ? new_line : old_line) + 1, width,
                     shown(line, focus));
    });
    if (full) {
      out += skipped;
      break;
    }
  }
  if (!hunks.empty() && !out.ends_with(skipped) && hunks.back().old_end < before.size()) out += skipped;
  if (!out.empty()) out.pop_back();
  return utf8::is_valid(out) ? out : utf8::replace_invalid(out);
}

std::string patch_text(const Lines& before, const Lines& after, std::string_view path,
                       const std::vector<LineChange>& changes, const std::vector<Hunk>& hunks) {
  std::string out = fmt::format("--- {}\n+++ {}\n", path, path);
  bool too_large = false;
  for (const Hunk& hunk : hunks) {
    const std::size_t old_count = hunk.old_end - hunk.old_begin;
    const std::size_t new_count = hunk.new_end - hunk.new_begin;
    // An empty side names the line before it.
    fmt::format_to(std::back_inserter(out), "@@ -{},{} +{},{} @@\n", hunk.old_begin + (old_count > 0 ? 1 : 0),
                   old_count, hunk.new_begin + (new_count > 0 ? 1 : 0), new_count);
    visit_hunk(hunk, changes, [&](char sign, std::size_t old_line, std::size_t new_line, const LineChange&) {
      const std::string_view line = sign == '+' ? after[new_line] : before[old_line];
      too_large = too_large || out.size() + line.size() > kLargestPatch;
      if (too_large) return;
      out += sign;
      out += line;
      if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
    });
    if (too_large) return {};
  }
  return utf8::is_valid(out) ? out : utf8::replace_invalid(out);
}

}  // namespace

std::vector<LineChange> diff_lines(std::string_view old_text, std::string_view new_text,
                                   std::span<const TextWindow> known) {
  return shortest_changes(Lines(old_text), Lines(new_text), known);
}

DiffText describe_diff(std::string_view old_text, std::string_view new_text, std::string_view path,
                       std::span<const TextWindow> known) {
  if (old_text.size() > kLargestText || new_text.size() > kLargestText) return {};
  const Lines before(old_text);
  const Lines after(new_text);
  const std::vector<LineChange> changes = shortest_changes(before, after, known);
  const std::vector<Hunk> hunks = hunks_of(changes, before.size());
  DiffText text;
  text.diff = diff_text(before, after, changes, hunks);
  text.patch = patch_text(before, after, path, changes, hunks);
  if (!changes.empty()) text.first_changed_line = changes.front().new_line + 1;
  return text;
}

}  // namespace tau::coding
