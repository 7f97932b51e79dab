#include "coding/session/record_scanner.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"

namespace tau::coding {

namespace {

constexpr std::size_t kPiece = 1 << 18;  // bytes read at once; grows for longer lines
constexpr std::size_t kFirstRecordLimit = 1 << 20;
constexpr std::string_view kParentKey = "\"parentId\":";

/// Takes expected pieces from the left of a text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool take(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  /// The text up to the next quotation mark, which is taken too. Only plain ASCII: anything else is for the real
  /// reader.
  bool take_plain(std::string_view& out) {
    constexpr std::size_t kLongest = 200;
    const std::size_t limit = std::min(rest_.size(), kLongest);
    for (std::size_t i = 0; i < limit; ++i) {
      const char c = rest_[i];
      if (c == '"') {
        out = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (c < ' ' || c > '~' || c == '\\' || c == '{' || c == '}') return false;
    }
    return false;
  }

  /// `"…"` or null, which leaves `out` without data. An empty parent counts as none (SES-73).
  bool take_parent(std::string_view& out) {
    if (take("null")) return true;
    if (!take("\"") || !take_plain(out)) return false;
    if (out.empty()) out = {};
    return true;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// `"id":"…","parentId":…,"timestamp":"…"`
bool take_place(Cursor& c, EntryHead& head) {
  return c.take("\"id\":\"") && c.take_plain(head.id) && c.take(",\"parentId\":") && c.take_parent(head.parent) &&
         c.take(",\"timestamp\":\"") && c.take_plain(head.timestamp);
}

/// Whether a second record's place stands in `text`: then the line holds more than one record.
bool has_parent_key(std::string_view text) {
  // 'I' is the rarest byte of the key in ordinary text.
  constexpr std::size_t kAt = kParentKey.find('I');
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end; ++p) {
    p = static_cast<const char*>(std::memchr(p, 'I', static_cast<std::size_t>(end - p)));
    if (p == nullptr) return false;
    const auto at = static_cast<std::size_t>(p - text.data());
    if (at >= kAt && text.substr(at - kAt).starts_with(kParentKey)) return true;
  }
  return false;
}

/// Extensions' records: the place stands at the end, `,"id":…,"timestamp":"…"}`.
std::optional<EntryHead> quick_head_at_end(std::string_view line, EntryType type) {
  constexpr std::size_t kLongestPlace = 320;
  const std::size_t from = line.size() - std::min(line.size(), kLongestPlace);
  const std::size_t at = line.rfind(",\"id\":\"");
  if (at == std::string_view::npos || at < from) return std::nullopt;
  EntryHead head;
  head.type = type;
  Cursor c(line.substr(at + 1));
  if (!take_place(c, head) || c.rest() != "}") return std::nullopt;
  if (has_parent_key(line.substr(0, at))) return std::nullopt;
  return head;
}

std::string_view without_line_blanks(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
    line.remove_suffix(1);
  return line;
}

/// What a record behind a torn one must have, so that a block out of the torn one's middle does not pass for one.
bool looks_like_entry(const json::value& v) {
  const json::object* o = v.if_object();
  return o != nullptr && json::find_string(*o, "type") && json::find_string(*o, "id") && o->contains("parentId") &&
         json::find_string(*o, "timestamp");
}

}  // namespace

std::optional<EntryHead> quick_head(std::string_view line) {
  if (!line.ends_with('}')) return std::nullopt;
  Cursor c(line);
  std::string_view type;
  if (!c.take("{\"type\":\"") || !c.take_plain(type)) return std::nullopt;
  EntryHead head;
  head.type = entry_type_from(type);
  if (head.type == EntryType::kHeader || !c.take(",")) return std::nullopt;
  if (c.rest().starts_with("\"customType\":")) return quick_head_at_end(line, head.type);
  if (!take_place(c, head)) return std::nullopt;
  if (head.type == EntryType::kMessage) {
    std::string_view role;
    head.role =
        c.take(",\"message\":{\"role\":\"") && c.take_plain(role) ? message_role_from(role) : MessageRole::kUnread;
  }
  if (has_parent_key(c.rest())) return std::nullopt;
  return head;
}

void RecordScanner::warn(std::string text) {
  if (warnings_.size() < max_warnings_) {
    warnings_.push_back(std::move(text));
  } else {
    ++more_warnings_;
  }
}

std::vector<std::string> RecordScanner::take_warnings() {
  std::vector<std::string> out = std::move(warnings_);
  if (more_warnings_ > 0) out.push_back(fmt::format("and {} more lines", more_warnings_));
  warnings_.clear();
  more_warnings_ = 0;
  return out;
}

void RecordScanner::give(json::value value, std::string_view text, std::uint64_t offset) {
  if (is_falsy(value)) return;
  ++records_;
  const Entry entry = entry_from(std::move(value));
  EntryHead head{entry.type, MessageRole::kNone, {}, {}, entry.timestamp};
  if (entry.id) head.id = *entry.id;
  if (entry.parent_id) head.parent = *entry.parent_id;
  if (entry.type == EntryType::kMessage) head.role = role_of(entry);
  sink_({head, text, offset, line_});
}

void RecordScanner::scan_carefully(std::string_view line) {
  if (utf8::is_blank(line)) return;
  if (auto whole = json::parse(line)) {
    give(*std::move(whole), utf8::trim(line),
         offset_ + static_cast<std::size_t>(utf8::trim(line).data() - line.data()));
    return;
  }
  // Glued or torn records (FF-24), or no JSON at all.
  std::size_t found = 0;
  bool whole = true;
  for (std::size_t at = 0; at < line.size() && !utf8::is_blank(line.substr(at));) {
    std::size_t consumed = 0;
    auto value = json::parse_prefix(line.substr(at), consumed);
    if (value && value->is_object() && (whole || looks_like_entry(*value))) {
      const std::size_t begin = std::min(line.find('{', at), at + consumed);
      give(*std::move(value), line.substr(begin, at + consumed - begin), offset_ + begin);
      ++found;
      at += consumed;
      continue;
    }
    whole = false;
    const std::size_t next = line.find("{\"", at + 1);
    if (next == std::string_view::npos) break;
    at = next;
  }
  if (found == 0) {
    warn(fmt::format("line {}: cannot be read, left out", line_));
  } else if (!whole) {
    warn(fmt::format("line {}: a part cannot be read, the rest of it ({}) was kept", line_,
                     found == 1 ? "one record" : fmt::format("{} records", found)));
  } else {
    warn(fmt::format("line {}: holds {} records, all were read", line_, found));
  }
}

void RecordScanner::scan_line(std::string_view line, bool is_last) {
  const std::string_view text = without_line_blanks(line);
  if (records_ > 0 && !is_last) {
    if (const auto head = quick_head(text)) {
      ++records_;
      sink_({*head, text, offset_, line_});
      return;
    }
  }
  if (records_ == 0 && offset_ == 0) {  // a mark at the start of the file is no part of the header (FF-114)
    const std::string_view unmarked = without_byte_order_mark(line);
    offset_ += line.size() - unmarked.size();
    scan_carefully(unmarked);
    offset_ -= line.size() - unmarked.size();
  } else {
    scan_carefully(line);
  }
}

void RecordScanner::scan_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool torn = end == std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    scan_line(line, torn || end + 1 == text.size());
    const std::size_t taken = torn ? text.size() : end + 1;
    offset_ += taken;
    text.remove_prefix(taken);
    at_line_start_ = !torn;
    if (!torn) ++line_;
  }
}

std::expected<void, Error> RecordScanner::scan_file(int descriptor, bool first_record_only) {
  const off_t size = ::lseek(descriptor, 0, SEEK_END);
  const std::uint64_t file_end = size > 0 ? static_cast<std::uint64_t>(size) : 0;
  std::size_t capacity = first_record_only ? 4096 : kPiece;
  auto buffer = std::make_unique_for_overwrite<char[]>(capacity);
  std::size_t used = 0;      // bytes in the buffer; they begin at offset_
  std::size_t searched = 0;  // of these, without a line end
  while (true) {
    if (first_record_only && offset_ + used >= kFirstRecordLimit) return {};
    if (used == capacity) {
      auto larger = std::make_unique_for_overwrite<char[]>(capacity * 2);
      std::memcpy(larger.get(), buffer.get(), used);
      buffer = std::move(larger);
      capacity *= 2;
    }
    const ssize_t n = ::pread(descriptor, buffer.get() + used, capacity - used, static_cast<off_t>(offset_ + used));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::unexpected(error(fmt::format("reading failed: {}", std::strerror(errno))));
    used += static_cast<std::size_t>(n);
    std::size_t begin = 0;
    while (true) {
      const void* found = std::memchr(buffer.get() + searched, '\n', used - searched);
      if (found == nullptr) break;
      const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - buffer.get());
      const std::size_t length = end - begin;
      scan_line({buffer.get() + begin, length}, offset_ + length + 1 >= file_end);
      offset_ += length + 1;
      ++line_;
      begin = searched = end + 1;
      at_line_start_ = true;
      if (first_record_only && records_ > 0) return {};
    }
    if (n == 0) {
      if (used > begin) {
        scan_line({buffer.get() + begin, used - begin}, true);
        offset_ += used - begin;
        at_line_start_ = false;
      }
      return {};
    }
    used -= begin;
    std::memmove(buffer.get(), buffer.get() + begin, used);
    searched = used;
  }
}

}  // namespace tau::coding
