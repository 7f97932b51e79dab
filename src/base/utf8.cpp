#include "base/utf8.h"

namespace tau::utf8 {

namespace {

unsigned char byte(char c) {
  return static_cast<unsigned char>(c);
}
bool is_continuation(char c) {
  return (byte(c) & 0xC0) == 0x80;
}
bool is_high(char32_t c) {
  return c >= 0xD800 && c <= 0xDBFF;
}
bool is_low(char32_t c) {
  return c >= 0xDC00 && c <= 0xDFFF;
}

/// Bytes that are all below 0x80, counted from the start.
std::size_t ascii_run(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && byte(text[i]) < 0x80)
    ++i;
  return i;
}

}  // namespace

void append(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

void append_wtf8(std::string& out, std::string_view text) {
  if (text.size() >= 3 && byte(text[0]) == 0xED && out.size() >= 3 && byte(out[out.size() - 3]) == 0xED) {
    const char32_t high = decode(std::string_view(out).substr(out.size() - 3)).code_point;
    const char32_t low = decode(text).code_point;
    if (is_high(high) && is_low(low)) {
      out.resize(out.size() - 3);
      append(out, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
      text.remove_prefix(3);
    }
  }
  out += text;
}

Decoded decode(std::string_view text) {
  constexpr char32_t kReplacement = 0xFFFD;
  const unsigned char first = byte(text[0]);
  if (first < 0x80) return {first, 1, true};
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  char32_t code_point = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
    code_point = first & 0x1F;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    code_point = first & 0x0F;
    if (first == 0xE0) low = 0xA0;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    code_point = first & 0x07;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {kReplacement, 1, false};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(text[i]) < low || byte(text[i]) > high) return {kReplacement, i, false};
    code_point = (code_point << 6) | (byte(text[i]) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {code_point, length, true};
}

bool is_valid(std::string_view text) {
  while (true) {
    text.remove_prefix(ascii_run(text));
    if (text.empty()) return true;
    const Decoded d = decode(text);
    if (!d.valid || is_high(d.code_point) || is_low(d.code_point)) return false;
    text.remove_prefix(d.length);
  }
}

std::string replace_invalid(std::string_view text) {
  if (is_valid(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded d = decode(text);
    if (d.valid && (is_high(d.code_point) || is_low(d.code_point))) {
      // TextDecoder refuses ED at its second byte: three bytes, three replacement characters.
      append(out, 0xFFFD);
      text.remove_prefix(1);
      continue;
    }
    append(out, d.code_point);
    text.remove_prefix(d.length);
  }
  return out;
}

bool has_lone_surrogates(std::string_view text) {
  // Joined pairs are stored as four bytes, so every encoded surrogate is a lone one.
  for (std::size_t i = text.find('\xED'); i != std::string_view::npos; i = text.find('\xED', i + 1)) {
    if (i + 1 < text.size() && byte(text[i + 1]) >= 0xA0) return true;
  }
  return false;
}

std::string remove_lone_surrogates(std::string_view text) {
  if (!has_lone_surrogates(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded d = decode(text);
    if (!(d.valid && (is_high(d.code_point) || is_low(d.code_point)))) out += text.substr(0, d.length);
    text.remove_prefix(d.length);
  }
  return out;
}

std::size_t utf16_length(std::string_view text) {
  std::size_t units = 0;
  for (const char c : text) {
    if (!is_continuation(c)) units += byte(c) >= 0xF0 ? 2 : 1;
  }
  return units;
}

std::size_t length(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text)
    count += is_continuation(c) ? 0 : 1;
  return count;
}

std::string_view prefix_utf16(std::string_view text, std::size_t units) {
  std::size_t i = 0;
  while (i < text.size()) {
    const Decoded d = decode(text.substr(i));
    const std::size_t width = d.code_point >= 0x10000 ? 2 : 1;
    if (width > units) break;
    units -= width;
    i += d.length;
  }
  return text.substr(0, i);
}

std::string_view prefix(std::string_view text, std::size_t count) {
  std::size_t i = 0;
  while (i < text.size() && count-- > 0)
    i += decode(text.substr(i)).length;
  return text.substr(0, i);
}

std::size_t incomplete_tail(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const char c = text[text.size() - back];
    if (is_continuation(c)) continue;
    const unsigned char b = byte(c);
    if (b < 0xC2 || b > 0xF4) return 0;  // begins no character of several bytes
    const std::size_t wanted = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : 2;
    if (wanted <= back) return 0;
    // Only a tail that can still become valid waits for more bytes.
    const Decoded d = decode(text.substr(text.size() - back));
    return d.length == back ? back : 0;
  }
  return 0;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 || c == 0xFEFF;
}

std::string_view trim_end(std::string_view text) {
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && is_continuation(text[start]) && text.size() - start < 4)
      --start;
    const Decoded d = decode(text.substr(start));
    if (!d.valid || d.length != text.size() - start || !is_space(d.code_point)) break;
    text.remove_suffix(d.length);
  }
  return text;
}

std::string_view trim(std::string_view text) {
  while (!text.empty()) {
    const Decoded d = decode(text);
    if (!d.valid || !is_space(d.code_point)) break;
    text.remove_prefix(d.length);
  }
  return trim_end(text);
}

bool is_blank(std::string_view text) {
  return trim(text).empty();
}

}  // namespace tau::utf8
