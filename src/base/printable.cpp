#include "base/printable.h"

#include <algorithm>

#include "base/utf8.h"

namespace tau {

namespace {

constexpr char32_t kEscape = 0x1B;
constexpr char32_t kBell = 0x07;
constexpr char32_t kStringTerminator = 0x9C;

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

/// Bytes that the string control beginning at `at` (after its introducer) takes, terminator included.
std::size_t string_control(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const utf8::Decoded d = utf8::decode(text.substr(at));
    at += d.length;
    if (d.code_point == kBell || d.code_point == kStringTerminator) break;
    if (d.code_point == kEscape && at < text.size() && text[at] == '\\') return at + 1;
  }
  return at;
}

/// Where the text goes on after the control sequence whose parameters begin at `at`.
std::size_t control_sequence(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3F)
    ++at;
  return at < text.size() && text[at] >= 0x40 && text[at] <= 0x7E ? at + 1 : at;
}

/// Where the text goes on after the escape sequence at `at` (an ESC).
std::size_t escape_sequence(std::string_view text, std::size_t at) {
  ++at;
  if (at >= text.size()) return at;
  switch (text[at]) {
    case '[':
      return control_sequence(text, at + 1);
    case ']':
    case 'P':
    case 'X':
    case '^':
    case '_':
      return string_control(text, at + 1);
    default:
      while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x2F)
        ++at;
      return at < text.size() && text[at] >= 0x30 && text[at] <= 0x7E ? at + 1 : at;
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  while (at < text.size()) {
    const utf8::Decoded d = utf8::decode(text.substr(at));
    const char32_t c = d.code_point;
    if (c == kEscape) {
      at = escape_sequence(text, at);
    } else if (c == 0x9B) {
      at = control_sequence(text, at + d.length);
    } else if (c == 0x9D || c == 0x90 || c == 0x98 || c == 0x9E || c == 0x9F) {
      at = string_control(text, at + d.length);
    } else {
      const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
      if (c == '\n' || c == '\t' || !is_control(c)) utf8::append(out, surrogate ? 0xFFFD : c);
      at += d.length;
    }
  }
  return out;
}

std::string printable_line(std::string_view text) {
  std::string out = printable(text);
  std::replace_if(out.begin(), out.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
}

}  // namespace tau
