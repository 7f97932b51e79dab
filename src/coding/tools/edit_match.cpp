#include "coding/tools/edit_match.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "base/files.h"
#include "base/utf8.h"

namespace tau::coding {

namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

bool is_ascii(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080ULL;
  std::size_t i = 0;
  for (std::uint64_t eight = 0; i + sizeof eight <= text.size(); i += sizeof eight) {
    std::memcpy(&eight, text.data() + i, sizeof eight);
    if ((eight & kHighBits) != 0) return false;
  }
  for (; i < text.size(); ++i) {
    if (!is_ascii(text[i])) return false;
  }
  return true;
}

std::size_t find(std::string_view text, std::string_view wanted, std::size_t from = 0) {
  if (wanted.empty() || from > text.size()) return kNowhere;
  const void* found = ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? kNowhere : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

/// Occurrences from `first`, the first one, on that do not overlap.
std::size_t count(std::string_view text, std::string_view wanted, std::size_t first) {
  std::size_t n = 0;
  for (std::size_t at = first; at != kNowhere; at = find(text, wanted, at + wanted.size()))
    ++n;
  return n;
}

std::string with_lf(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else {
      out += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    }
  }
  return out;
}

// ---- the normalised form (CA-46, CA-310, CA-311) ---------------------------------------------------------------

char32_t plain(char32_t c) {
  if (c >= 0x2018 && c <= 0x201B) return '\'';
  if (c >= 0x201C && c <= 0x201F) return '"';
  if ((c >= 0x2010 && c <= 0x2015) || c == 0x2212) return '-';
  if (c == 0xA0 || (c >= 0x2002 && c <= 0x200A) || c == 0x202F || c == 0x205F || c == 0x3000) return ' ';
  return c;
}

bool is_surrogate(char32_t c) {
  return c >= 0xD800 && c <= 0xDFFF;
}

bool is_mark(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return true;
    default:
      return c >= 0x1160 && c <= 0x11FF;  // vowels and final consonants of Hangul join the letter before them
  }
}

/// Whether normalisation can join the character with those before it.
bool joins_previous(char32_t c) {
  if (c < 0x300) return false;
  if (is_mark(c)) return true;
  const auto code = static_cast<utf8proc_int32_t>(c);
  if (utf8proc_get_property(code)->decomp_seqindex == UINT16_MAX) return false;
  std::array<utf8proc_int32_t, 32> parts{};
  int last_class = 0;
  const auto n =
      utf8proc_decompose_char(code, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
                              static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT), &last_class);
  return n > 0 && is_mark(static_cast<char32_t>(parts[0]));
}

/// Whether the character, on its own, is its own normalised form. May say no wrongly, which only costs time.
bool is_plain(char32_t c) {
  if (c < 0x80) return true;
  if (plain(c) != c) return false;
  const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  if (property->decomp_seqindex == UINT16_MAX) return true;
  const bool common_letters = (c >= 0xC0 && c <= 0x17F) || (c >= 0x400 && c <= 0x4FF);
  return common_letters && property->decomp_type == 0;
}

void append_normalised(std::string& out, std::string_view characters) {
  std::array<utf8proc_int32_t, 64> small{};
  std::vector<utf8proc_int32_t> large;
  utf8proc_int32_t* buffer = small.data();
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  const auto* text = reinterpret_cast<const utf8proc_uint8_t*>(characters.data());
  const auto size = static_cast<utf8proc_ssize_t>(characters.size());
  utf8proc_ssize_t n = utf8proc_decompose(text, size, buffer, static_cast<utf8proc_ssize_t>(small.size()), options);
  if (n > static_cast<utf8proc_ssize_t>(small.size())) {
    large.resize(static_cast<std::size_t>(n) + 1);
    buffer = large.data();
    n = utf8proc_decompose(text, size, buffer, n, options);
  }
  if (n >= 0) n = utf8proc_normalize_utf32(buffer, n, options);
  if (n < 0) {
    out += characters;
    return;
  }
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    utf8::append(out, plain(static_cast<char32_t>(buffer[i])));
}

/// A piece of a line that is normalised on its own.
struct Piece {
  std::size_t begin, end;  // in the line
  std::string_view form;   // what it becomes; the same bytes when `same`
  bool same;
};

/// Calls visit(piece) from left to right until it returns false.
template <class Visit>
void visit_pieces(std::string_view line, Visit visit) {
  std::size_t same_from = 0;
  std::string form;
  for (std::size_t i = 0; i < line.size();) {
    if (is_ascii(line[i]) && (i + 1 == line.size() || is_ascii(line[i + 1]))) {
      ++i;
      continue;
    }
    const utf8::Decoded first = utf8::decode(line.substr(i));
    std::size_t end = i + first.length;
    if (!first.valid || is_surrogate(first.code_point)) {
      i = end;  // bytes that are no text stay what they are (FF-68)
      continue;
    }
    bool joined = false;
    while (end < line.size() && !is_ascii(line[end])) {
      const utf8::Decoded next = utf8::decode(line.substr(end));
      if (!next.valid || is_surrogate(next.code_point) || !joins_previous(next.code_point)) break;
      end += next.length;
      joined = true;
    }
    if (joined || !is_plain(first.code_point)) {
      if (same_from < i && !visit(Piece{same_from, i, line.substr(same_from, i - same_from), true})) return;
      form.clear();
      append_normalised(form, line.substr(i, end - i));
      if (!visit(Piece{i, end, form, false})) return;
      same_from = end;
    }
    i = end;
  }
  if (same_from < line.size()) visit(Piece{same_from, line.size(), line.substr(same_from), true});
}

void append_normalised_line(std::string& out, std::string_view line) {
  const std::size_t begin = out.size();
  if (is_ascii(line)) {
    out += line;
  } else {
    visit_pieces(line, [&](const Piece& piece) {
      out += piece.form;
      return true;
    });
  }
  if (out.size() == begin || (out.back() > ' ' && is_ascii(out.back()))) return;
  out.resize(begin + utf8::trim_end(std::string_view(out).substr(begin)).size());
}

/// The normalised form of a whole text: the text itself, not a copy, when it is in that form.
class NormalForm {
 public:
  explicit NormalForm(std::string_view lf_text) : view_(lf_text) {
    const bool ascii = is_ascii(lf_text);
    bool same = true;
    for (std::size_t at = 0;;) {
      const std::size_t end = std::min(lf_text.find('\n', at), lf_text.size());
      const std::string_view line = lf_text.substr(at, end - at);
      const bool plain_line = (ascii || is_ascii(line)) && (line.empty() || line.back() > ' ');
      if (same && !plain_line) {
        same = false;
        own_.reserve(lf_text.size());
        own_ = lf_text.substr(0, at);
      }
      if (!same) {
        append_normalised_line(own_, line);
        if (end < lf_text.size()) own_ += '\n';
      }
      if (end == lf_text.size()) break;
      at = end + 1;
    }
    if (!same) view_ = own_;
  }
  NormalForm(const NormalForm&) = delete;
  NormalForm& operator=(const NormalForm&) = delete;

  std::string_view view() const { return view_; }

 private:
  std::string own_;
  std::string_view view_;
};

// ---- locating --------------------------------------------------------------------------------------------------

/// A place in the LF text and what is to stand there.
struct Place {
  std::size_t edit = 0;
  std::size_t begin = 0, end = 0;
  std::string text;
};

/// A column of a normalised line in the line itself. Inside a character that normalisation spells out (`…` is `...`)
/// there is no such place: then `begin` and `end` are the character's, and `form` and `inside` say how it is cut.
struct Column {
  std::size_t begin = 0, end = 0;
  std::string form;
  std::size_t inside = 0;
};

Column column_in_line(std::string_view line, std::size_t column) {
  Column found{line.size(), line.size(), {}, 0};
  std::size_t passed = 0;
  visit_pieces(line, [&](const Piece& piece) {
    if (column == passed) {
      found = {piece.begin, piece.begin, {}, 0};
      return false;
    }
    if (column < passed + piece.form.size()) {
      const std::size_t inside = column - passed;
      if (piece.same) {
        found = {piece.begin + inside, piece.begin + inside, {}, 0};
      } else {
        found = {piece.begin, piece.end, std::string(piece.form), inside};
      }
      return false;
    }
    passed += piece.form.size();
    return true;
  });
  return found;
}

std::string_view line_from(std::string_view text, std::size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// The begin of the line `lines` further down.
std::size_t skip_lines(std::string_view text, std::size_t begin, std::ptrdiff_t lines) {
  for (; lines > 0; --lines)
    begin = text.find('\n', begin) + 1;
  return begin;
}

/// Maps [at, at + size) of the normalised text back.
Place place_of_match(std::string_view text, std::string_view form, std::size_t at, std::size_t size,
                     std::string_view old_text, std::string_view new_text) {
  const auto newlines = [&](std::size_t from, std::size_t to) {
    return std::count(form.begin() + static_cast<std::ptrdiff_t>(from), form.begin() + static_cast<std::ptrdiff_t>(to),
                      '\n');
  };
  const auto line_begin = [&](std::size_t position) {
    const std::size_t newline = position == 0 ? kNowhere : form.rfind('\n', position - 1);
    return newline == kNowhere ? 0 : newline + 1;
  };
  const std::size_t form_first = line_begin(at);
  const std::size_t form_last = line_begin(at + size);
  const std::size_t first = skip_lines(text, 0, newlines(0, at));
  const std::size_t last = skip_lines(text, first, newlines(at, at + size));
  const std::string_view first_line = line_from(text, first);
  const std::string_view last_line = line_from(text, last);

  Place place;
  Column begin = column_in_line(first_line, at - form_first);
  // Blanks at the end of a line, which the form does not have, belong to the match only if the old text has some.
  if (old_text.starts_with('\n')) begin = {first_line.size(), first_line.size(), {}, 0};
  Column end = column_in_line(last_line, at + size - form_last);
  const bool ends_line = at + size == form.size() || form[at + size] == '\n';
  const std::string_view old_last = old_text.substr(old_text.rfind('\n') + 1);
  if (ends_line && !old_last.empty() && utf8::trim_end(old_last).size() < old_last.size()) {
    end = {last_line.size(), last_line.size(), {}, 0};
  }
  place.begin = first + begin.begin;
  place.end = last + end.end;
  place.text = begin.form.substr(0, begin.inside);
  place.text += new_text;
  if (!end.form.empty()) place.text += end.form.substr(end.inside);
  return place;
}

// ---- errors (CA-49) --------------------------------------------------------------------------------------------

std::string not_found(std::string_view path, std::size_t edit, bool single) {
  if (single) {
    return fmt::format(
        "Could not find the exact text in {}. The old text must match exactly including all whitespace and newlines.",
        path);
  }
  return fmt::format(
      "Could not find edits[{}] in {}. The oldText must match exactly including all whitespace and newlines.", edit,
      path);
}

std::string duplicate(std::string_view path, std::size_t edit, bool single, std::size_t times) {
  if (single) {
    return fmt::format(
        "Found {} occurrences of the text in {}. The text must be unique. Please provide more context to make it "
        "unique.",
        times, path);
  }
  return fmt::format(
      "Found {} occurrences of edits[{}] in {}. Each oldText must be unique. Please provide more context to make it "
      "unique.",
      times, edit, path);
}

std::string no_change(std::string_view path, bool single) {
  if (single) {
    return fmt::format(
        "No changes made to {}. The replacement produced identical content. This might indicate an issue with special "
        "characters or the text not existing as expected.",
        path);
  }
  return fmt::format("No changes made to {}. The replacements produced identical content.", path);
}

// ---- writing ---------------------------------------------------------------------------------------------------

/// The line end for lines that the new text has more than the old one: that of the line where it ends, or of the
/// nearest line (FF-65). `after_line` says that whole lines are added behind a line of the old text.
std::string_view nearest_line_end(const LfText& file, std::size_t begin, std::size_t end, bool after_line) {
  if (after_line) return file.line_end(begin - 1);
  const std::size_t next = file.view().find('\n', end);
  if (next != kNowhere) return file.line_end(next);
  const std::size_t previous = begin == 0 ? kNowhere : file.view().rfind('\n', begin - 1);
  return previous == kNowhere ? std::string_view("\n") : file.line_end(previous);
}

/// What really changes: [begin, end) of the LF text becomes `text`.
struct Core {
  std::size_t begin = 0, end = 0;
  std::string_view text;
  bool after_line = false;
};

/// Without what the old and the new text have in common at either end: that is not touched at all. Nothing when they
/// are equal.
std::optional<Core> core_of(const Place& place, std::string_view lf_text) {
  const std::string_view old_text = lf_text.substr(place.begin, place.end - place.begin);
  const std::string_view new_text = place.text;
  if (old_text == new_text) return std::nullopt;
  const auto differ = std::mismatch(old_text.begin(), old_text.end(), new_text.begin(), new_text.end());
  const auto prefix = static_cast<std::size_t>(differ.first - old_text.begin());
  const std::size_t longest = std::min(old_text.size(), new_text.size()) - prefix;
  std::size_t suffix = 0;
  while (suffix < longest && old_text[old_text.size() - 1 - suffix] == new_text[new_text.size() - 1 - suffix])
    ++suffix;
  Core core;
  core.begin = place.begin + prefix;
  core.end = place.end - suffix;
  core.text = new_text.substr(prefix, new_text.size() - prefix - suffix);
  core.after_line = core.begin == core.end && prefix > 0 && lf_text[core.begin - 1] == '\n';
  return core;
}

/// Appends the new text with the line ends of its place. `touched_behind`: the next change begins where this one ends.
void append_core(std::string& out, const LfText& file, const Core& core, bool touched_behind) {
  const auto [begin, end, text, after_line] = core;
  std::optional<std::string_view> extra;
  std::size_t replaced = begin;  // newlines in the old text are followed one by one
  const std::size_t old_end = file.offset_in_bytes(end);
  const bool newline_follows = !touched_behind && old_end < file.bytes().size() && file.bytes()[old_end] == '\n';
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\n') {
      const std::size_t next = std::min(text.find('\n', at), text.size());
      out += text.substr(at, next - at);
      at = next;
      continue;
    }
    const std::size_t newline = file.view().substr(0, end).find('\n', replaced);
    std::string_view line_end;
    if (newline != kNowhere) {
      line_end = file.line_end(newline);
      replaced = newline + 1;
    } else {
      replaced = end;
      if (!extra) extra = nearest_line_end(file, begin, end, after_line);
      line_end = *extra;
    }
    // A CR and a LF of two line ends that come to stand side by side would be read as one.
    const bool joins_before = line_end == "\n" && out.ends_with('\r');
    const bool joins_behind = line_end == "\r" && (at + 1 == text.size() && newline_follows);
    out += joins_before || joins_behind ? std::string_view("\r\n") : line_end;
    ++at;
  }
  if (text.empty() && newline_follows && out.ends_with('\r')) out += '\n';
}

}  // namespace

LfText::LfText(std::string_view bytes) : bytes_(bytes) {
  view_ = without_byte_order_mark(bytes);
  mark_ = bytes.size() - view_.size();
  if (view_.find('\r') == kNowhere) return;
  own_.reserve(view_.size());
  for (std::size_t at = 0; at < view_.size();) {
    const std::size_t cr = std::min(view_.find('\r', at), view_.size());
    own_ += view_.substr(at, cr - at);
    if (cr == view_.size()) break;
    const bool crlf = cr + 1 < view_.size() && view_[cr + 1] == '\n';
    if (crlf) crlfs_.push_back(own_.size());
    own_ += '\n';
    at = cr + (crlf ? 2 : 1);
  }
  view_ = own_;
}

std::size_t LfText::offset_in_bytes(std::size_t position) const {
  const auto before = std::lower_bound(crlfs_.begin(), crlfs_.end(), position) - crlfs_.begin();
  return mark_ + position + static_cast<std::size_t>(before);
}

std::string_view LfText::line_end(std::size_t position) const {
  const std::size_t begin = offset_in_bytes(position);
  return bytes_.substr(begin, offset_in_bytes(position + 1) - begin);
}

std::string normalise_for_matching(std::string_view text) {
  const std::string lf_text = with_lf(text);
  return std::string(NormalForm(lf_text).view());
}

std::expected<EditedText, std::string> apply_edits(const LfText& file, std::span<const Replacement> edits,
                                                   std::string_view path) {
  const bool single = edits.size() == 1;
  const std::string_view text = file.view();
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (!edits[i].old_text.empty()) continue;
    return std::unexpected(single ? fmt::format("oldText must not be empty in {}.", path)
                                  : fmt::format("edits[{}].oldText must not be empty in {}.", i, path));
  }

  const NormalForm normal(text);
  const std::string_view form = normal.view();
  const bool same_form = form.data() == text.data();
  std::vector<Place> places;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const std::string old_text = with_lf(edits[i].old_text);
    const std::string new_text = with_lf(utf8::remove_lone_surrogates(edits[i].new_text));
    const NormalForm old_normal(old_text);
    const std::string_view old_form = old_normal.view();
    const std::size_t exact = find(text, old_text);
    const std::size_t in_form = same_form && old_form == old_text ? exact : find(form, old_form);
    const std::size_t at = exact != kNowhere ? exact : in_form;
    // Counted in both forms (CA-47): a place that could also be meant is never changed silently.
    std::size_t times = count(text, old_text, exact);
    if (old_form.empty()) {
      const std::size_t units = utf8::utf16_length(form);
      times = std::max(times, units - std::min<std::size_t>(units, 1));
    } else if (!same_form || old_form != old_text) {
      times = std::max(times, count(form, old_form, in_form));
    }
    if (at == kNowhere && (!old_form.empty() || times <= 1)) return std::unexpected(not_found(path, i, single));
    if (times > 1) return std::unexpected(duplicate(path, i, single, times));
    Place place = exact != kNowhere ? Place{i, exact, exact + old_text.size(), new_text}
                                    : place_of_match(text, form, at, old_form.size(), old_text, new_text);
    place.edit = i;
    places.push_back(std::move(place));
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return std::pair(a.begin, a.edit) < std::pair(b.begin, b.edit); });
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].begin >= places[i - 1].end) continue;
    return std::unexpected(
        fmt::format("edits[{}] and edits[{}] overlap in {}. Merge them into one edit or target disjoint regions.",
                    places[i - 1].edit, places[i].edit, path));
  }

  std::vector<Core> cores;
  std::size_t added = 0;
  for (const Place& place : places) {
    if (const auto core = core_of(place, text)) cores.push_back(*core);
    added += 2 * place.text.size();
  }
  if (cores.empty()) return std::unexpected(no_change(path, single));

  EditedText edited;
  edited.bytes.reserve(file.bytes().size() + added);
  std::size_t copied = 0;        // bytes of the file
  std::size_t old_position = 0;  // in the LF texts
  std::size_t new_position = 0;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const Core& core = cores[i];
    edited.bytes += file.bytes().substr(copied, file.offset_in_bytes(core.begin) - copied);
    append_core(edited.bytes, file, core, i + 1 < cores.size() && cores[i + 1].begin == core.end);
    copied = file.offset_in_bytes(core.end);
    new_position += core.begin - old_position;
    edited.changes.push_back({core.begin, core.end, new_position, new_position + core.text.size()});
    new_position += core.text.size();
    old_position = core.end;
  }
  edited.bytes += file.bytes().substr(copied);
  return edited;
}

}  // namespace tau::coding
