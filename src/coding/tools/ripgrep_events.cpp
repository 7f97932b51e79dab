#include "coding/tools/ripgrep_events.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"

namespace tau::coding {

namespace {

/// Of a string in an event. Longer than any path, and a multiple of four for base64.
constexpr std::size_t kLongestString = 32 * 1024;
constexpr std::size_t kLongestEscape = 6;  // \u0000

/// {"text":…}, or {"bytes":base64} for what is no UTF-8.
std::optional<std::string> text_of(const json::object& data, std::string_view key, bool as_text) {
  const json::object* holder = json::find_object(data, key);
  if (holder == nullptr) return std::nullopt;
  if (const auto text = json::find_string(*holder, "text")) return std::string(*text);
  const auto bytes = json::find_string(*holder, "bytes");
  if (!bytes) return std::nullopt;
  const auto decoded = base64_decode(*bytes);
  if (!decoded) return std::nullopt;
  return as_text ? utf8::replace_invalid(*decoded) : *decoded;
}

}  // namespace

void RipgrepEvents::add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (in_string_) {
      add_in_string(bytes);
    } else {
      add_outside(bytes);
    }
  }
}

void RipgrepEvents::add_in_string(std::string_view& bytes) {
  std::size_t end = 1;
  if (!escaped_) end = std::min(bytes.find_first_of("\"\\"), bytes.size());
  const bool keep = array_depth_ == 0;
  if (end > 0) {  // plain characters, or the one behind a backslash
    const std::size_t room = kLongestString - std::min(kLongestString, string_size_);
    const std::size_t kept = escaped_ ? (keep_escape_ ? end : 0) : std::min(room, end);
    if (keep) {
      event_ += bytes.substr(0, kept);
      string_size_ += kept;
    }
    escaped_ = false;
    bytes.remove_prefix(end);
    return;
  }
  if (bytes.front() == '\\') {
    escaped_ = true;
    keep_escape_ = keep && string_size_ + kLongestEscape <= kLongestString;  // whole or not at all
    if (keep_escape_) {
      event_ += '\\';
      ++string_size_;
    } else {
      string_size_ = kLongestString;  // nothing behind it either
    }
  } else {
    in_string_ = false;
    if (keep) event_ += '"';
  }
  bytes.remove_prefix(1);
}

void RipgrepEvents::add_outside(std::string_view& bytes) {
  const std::size_t end = std::min(bytes.find_first_of("\"[]\n"), bytes.size());
  if (array_depth_ == 0) event_ += bytes.substr(0, end);
  bytes.remove_prefix(end);
  if (bytes.empty()) return;
  const char c = bytes.front();
  bytes.remove_prefix(1);
  if (c == '\n') {
    end_event();
    return;
  }
  if (c == '[' && array_depth_++ == 0) event_ += "[]";
  if (c == ']') --array_depth_;
  if (c == '"') {
    in_string_ = true;
    string_size_ = 0;
    if (array_depth_ == 0) event_ += '"';
  }
}

void RipgrepEvents::end_event() {
  const std::string event = std::exchange(event_, {});
  array_depth_ = 0;
  const auto parsed = json::parse(event);
  const json::object* object = parsed ? parsed->if_object() : nullptr;
  if (object == nullptr) return;
  const std::string type = json::string_or(*object, "type");
  if (type == "summary") complete_ = true;
  if (type != "match" && type != "context") return;
  const json::object* data = json::find_object(*object, "data");
  if (data == nullptr) return;
  auto path = text_of(*data, "path", false);
  auto text = text_of(*data, "lines", true);
  const auto number = json::find_integer(*data, "line_number");
  if (!path || !text || !number || *number < 1) return;
  const bool ended = text->ends_with('\n');
  if (ended) text->pop_back();
  if (text->ends_with('\r')) text->pop_back();
  on_line_({*std::move(path), static_cast<std::size_t>(*number), *std::move(text), type == "match", ended});
}

}  // namespace tau::coding
