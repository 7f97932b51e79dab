#include "base/json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::json {

namespace {

// Strings are looked at eight bytes at a time: a mask has the high bit set in every byte that ends the run. Borrows can
// set bits above the first match only, so the lowest one is exact.
constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;
constexpr std::uint64_t kHighBits = kOnes * 0x80;

constexpr std::uint64_t bytes_equal(std::uint64_t word, std::uint64_t byte) {
  const std::uint64_t difference = word ^ (kOnes * byte);
  return (difference - kOnes) & ~difference & kHighBits;
}

/// Bytes that no string literal may hold as they are: quote, backslash, control characters.
constexpr std::uint64_t bytes_to_escape(std::uint64_t word) {
  const std::uint64_t control = (word - kOnes * 0x20) & ~word & kHighBits;
  return control | bytes_equal(word, '"') | bytes_equal(word, '\\');
}

/// Position of the first byte at or after `from` that `ends_word` marks.
template <class EndsWord>
std::size_t run_end(std::string_view text, std::size_t from, EndsWord ends_word) {
  static_assert(std::endian::native == std::endian::little);
  for (; from + 8 <= text.size(); from += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + from, 8);
    if (const std::uint64_t mask = ends_word(word); mask != 0) {
      return from + static_cast<std::size_t>(std::countr_zero(mask)) / 8;
    }
  }
  for (; from < text.size(); ++from) {
    const auto byte = static_cast<unsigned char>(text[from]);
    // The other seven bytes are harmless ones.
    if ((ends_word((kOnes * 'a' & ~std::uint64_t{0xFF}) | byte) & 0xFF) != 0) break;
  }
  return from;
}

class Reader {
 public:
  Reader(std::string_view text, const ParseOptions& options, storage_ptr storage)
      : text_(text), options_(options), storage_(std::move(storage)) {}

  std::expected<value, ParseError> read_document() {
    value v(storage_);
    if (!read_value(v, 0) || !skip_blanks()) return std::unexpected(located());
    if (at_ != text_.size()) {
      fail("unexpected text after the value");
      return std::unexpected(located());
    }
    return v;
  }

  std::expected<value, ParseError> read_prefix(std::size_t& consumed) {
    value v(storage_);
    if (!read_value(v, 0)) return std::unexpected(located());
    consumed = at_;
    return v;
  }

 private:
  bool fail(std::string reason) {
    if (reason_.empty()) {
      reason_ = std::move(reason);
      failed_at_ = at_;
    }
    return false;
  }

  ParseError located() const {
    ParseError e{reason_, failed_at_, 1, 1};
    for (std::size_t i = 0; i < failed_at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++e.line;
        e.column = 1;
      } else {
        ++e.column;
      }
    }
    return e;
  }

  bool skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        ++at_;
      } else if (options_.comments && c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        break;
      }
    }
    return true;
  }

  bool read_value(value& out, int depth) {
    skip_blanks();
    if (at_ >= text_.size()) return fail("unexpected end of the text");
    switch (text_[at_]) {
      case '{':
        return read_object(out, depth);
      case '[':
        return read_array(out, depth);
      case '"': {
        string& s = out.emplace_string();
        return read_string(s);
      }
      case 't':
        return read_word("true", out, value(true));
      case 'f':
        return read_word("false", out, value(false));
      case 'n':
        return read_word("null", out, value(nullptr));
      default:
        return read_number(out);
    }
  }

  bool read_word(std::string_view word, value& out, const value& meaning) {
    if (text_.substr(at_, word.size()) != word) return fail("unexpected word");
    at_ += word.size();
    out = meaning;
    return true;
  }

  bool read_array(value& out, int depth) {
    if (depth >= options_.max_depth) return fail("arrays and objects are nested too deeply");
    array& items = out.emplace_array();
    ++at_;
    skip_blanks();
    if (take(']')) return true;
    while (true) {
      items.emplace_back(nullptr);
      if (!read_value(items.back(), depth + 1)) return false;
      skip_blanks();
      if (take(']')) return true;
      if (!take(',')) return fail("expected ',' or ']'");
      skip_blanks();
      if (options_.trailing_commas && take(']')) return true;
    }
  }

  bool read_object(value& out, int depth) {
    if (depth >= options_.max_depth) return fail("arrays and objects are nested too deeply");
    object& members = out.emplace_object();
    ++at_;
    skip_blanks();
    if (take('}')) return true;
    while (true) {
      if (at_ >= text_.size() || text_[at_] != '"') return fail("expected a key in double quotes");
      string key(storage_);
      if (!read_string(key)) return false;
      skip_blanks();
      if (!take(':')) return fail("expected ':'");
      // The reference into the object stays valid while the value below it is read.
      value& slot = members.emplace(key, nullptr).first->value();
      if (!read_value(slot, depth + 1)) return false;
      skip_blanks();
      if (take('}')) return true;
      if (!take(',')) return fail("expected ',' or '}'");
      skip_blanks();
      if (options_.trailing_commas && take('}')) return true;
    }
  }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// Position of the first byte at or after `from` that is no plain ASCII of a literal.
  std::size_t plain_run(std::size_t from) const {
    return run_end(text_, from, [](std::uint64_t word) { return bytes_to_escape(word) | (word & kHighBits); });
  }

  bool read_string(string& out) {
    ++at_;
    // Most strings are plain ASCII: one append.
    std::size_t end = plain_run(at_);
    out.append(text_.substr(at_, end - at_));
    at_ = end;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!read_escape(out)) return false;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        return fail("control character inside a string");
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        read_multibyte(out);
      } else {
        end = plain_run(at_);
        out.append(text_.substr(at_, end - at_));
        at_ = end;
      }
    }
    return fail("the string has no end");
  }

  void read_multibyte(string& out) {
    const utf8::Decoded d = utf8::decode(text_.substr(at_));
    const bool surrogate = d.valid && d.code_point >= 0xD800 && d.code_point <= 0xDFFF;
    if (d.valid && (!surrogate || options_.wtf8)) {
      out.append(text_.substr(at_, d.length));
      at_ += d.length;
    } else {
      out.append("\xEF\xBF\xBD");
      at_ += surrogate ? 1 : d.length;
    }
  }

  bool read_hex(char32_t& unit) {
    if (at_ + 4 > text_.size()) return fail("\\u needs four hexadecimal digits");
    unsigned parsed = 0;
    const char* first = text_.data() + at_;
    const auto [end, ec] = std::from_chars(first, first + 4, parsed, 16);
    if (ec != std::errc() || end != first + 4) return fail("\\u needs four hexadecimal digits");
    unit = parsed;
    at_ += 4;
    return true;
  }

  bool read_escape(string& out) {
    ++at_;
    if (at_ >= text_.size()) return fail("the string has no end");
    const char c = text_[at_++];
    switch (c) {
      case '"':
        out.push_back('"');
        return true;
      case '\\':
        out.push_back('\\');
        return true;
      case '/':
        out.push_back('/');
        return true;
      case 'b':
        out.push_back('\b');
        return true;
      case 'f':
        out.push_back('\f');
        return true;
      case 'n':
        out.push_back('\n');
        return true;
      case 'r':
        out.push_back('\r');
        return true;
      case 't':
        out.push_back('\t');
        return true;
      case 'u':
        break;
      default:
        --at_;
        return fail("unknown escape");
    }
    char32_t unit = 0;
    if (!read_hex(unit)) return false;
    if (unit >= 0xD800 && unit <= 0xDBFF && text_.substr(at_, 2) == "\\u") {
      const std::size_t before = at_;
      at_ += 2;
      char32_t low = 0;
      if (!read_hex(low)) return false;
      if (low >= 0xDC00 && low <= 0xDFFF) {
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = before;  // a lone high surrogate; the second escape is read on its own
      }
    }
    std::string encoded;
    utf8::append(encoded, unit);
    out.append(encoded);
    return true;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  std::size_t digits(std::size_t from) const {
    while (from < text_.size() && is_digit(text_[from]))
      ++from;
    return from;
  }

  bool read_number(value& out) {
    const std::size_t start = at_;
    std::size_t i = at_;
    if (i < text_.size() && text_[i] == '-') ++i;
    const std::size_t whole = i;
    i = digits(i);
    if (i == whole) return fail("unexpected character");
    if (text_[whole] == '0' && i > whole + 1) return fail("a number cannot begin with 0");
    bool integer = true;
    if (i < text_.size() && text_[i] == '.') {
      const std::size_t fraction = i + 1;
      i = digits(fraction);
      if (i == fraction) return fail("a digit must follow the decimal point");
      integer = false;
    }
    if (i < text_.size() && (text_[i] == 'e' || text_[i] == 'E')) {
      std::size_t exponent = i + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      i = digits(exponent);
      if (i == exponent) return fail("a digit must follow the exponent sign");
      integer = false;
    }
    const char* first = text_.data() + start;
    const char* last = text_.data() + i;
    at_ = i;
    if (integer) {
      std::int64_t n = 0;
      if (std::from_chars(first, last, n).ec == std::errc()) {
        if (n == 0) n = 0;  // -0 is written as 0
        out = n;
        return true;
      }
      std::uint64_t u = 0;
      if (std::from_chars(first, last, u).ec == std::errc()) {
        out = u;
        return true;
      }
    }
    double d = 0;
    const auto result = std::from_chars(first, last, d);
    if (result.ec == std::errc::result_out_of_range) {
      d = std::strtod(std::string(first, last).c_str(), nullptr);  // 0 or infinity, decided by the C library
    }
    if (std::isinf(d)) {
      out = nullptr;
    } else {
      out = number(d);
    }
    return true;
  }

  std::string_view text_;
  const ParseOptions& options_;
  storage_ptr storage_;
  std::size_t at_ = 0;
  std::size_t failed_at_ = 0;
  std::string reason_;
};

/// Position of the first byte at or after `from` that needs an escape, or may (ED begins a surrogate).
std::size_t unescaped_run(std::string_view text, std::size_t from) {
  return run_end(text, from, [](std::uint64_t word) { return bytes_to_escape(word) | bytes_equal(word, 0xED); });
}

void write_indented(std::string& out, const value& v, int indent, int depth) {
  const auto new_line = [&](int level) {
    out += '\n';
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(level), ' ');
  };
  if (const object* o = v.if_object(); o != nullptr && !o->empty()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : *o) {
      if (!first) out += ',';
      first = false;
      new_line(depth + 1);
      write(out, std::string_view(key.data(), key.size()));
      out += ": ";
      write_indented(out, member, indent, depth + 1);
    }
    new_line(depth);
    out += '}';
  } else if (const array* a = v.if_array(); a != nullptr && !a->empty()) {
    out += '[';
    bool first = true;
    for (const value& item : *a) {
      if (!first) out += ',';
      first = false;
      new_line(depth + 1);
      write_indented(out, item, indent, depth + 1);
    }
    new_line(depth);
    out += ']';
  } else {
    write(out, v);
  }
}

}  // namespace

std::string ParseError::describe() const {
  return fmt::format("{} at line {}, column {}", reason, line, column);
}

std::expected<value, ParseError> parse(std::string_view text, const ParseOptions& options, storage_ptr storage) {
  return Reader(text, options, std::move(storage)).read_document();
}

std::expected<value, ParseError> parse_prefix(std::string_view text, std::size_t& consumed,
                                              const ParseOptions& options) {
  return Reader(text, options, {}).read_prefix(consumed);
}

void write(std::string& out, std::string_view text) {
  // A long text in one step, with room for its escapes and for what follows: growing would double it.
  constexpr std::size_t kLong = 4096;
  if (text.size() > kLong) out.reserve(out.size() + text.size() + text.size() / 16 + kLong);
  out += '"';
  std::size_t at = 0;
  while (true) {
    const std::size_t end = unescaped_run(text, at);
    out.append(text, at, end - at);
    if (end >= text.size()) break;
    at = end;
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == 0xED) {
      const utf8::Decoded d = utf8::decode(text.substr(at));
      if (d.valid && d.code_point >= 0xD800 && d.code_point <= 0xDFFF) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(d.code_point));
      } else {
        out.append(text, at, d.length);
      }
      at += d.length;
      continue;
    }
    ++at;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        break;
    }
  }
  out += '"';
}

void write_number(std::string& out, double d) {
  if (!std::isfinite(d)) {
    out += "null";
    return;
  }
  if (d == 0) {
    out += '0';  // -0 included
    return;
  }
  // Shortest digits that read back as the same double, laid out by the rules of ECMA-262 Number::toString.
  char buffer[32];
  const auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* exponent_start = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_start, text.data() + text.size(), exponent);
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  const int k = static_cast<int>(digits.size());
  const int n = exponent + 1;  // the decimal point stands after n digits
  if (k <= n && n <= 21) {
    out += digits;
    out.append(static_cast<std::size_t>(n - k), '0');
  } else if (0 < n && n <= 21) {
    out.append(digits, 0, static_cast<std::size_t>(n));
    out += '.';
    out.append(digits, static_cast<std::size_t>(n), std::string::npos);
  } else if (-6 < n && n <= 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-n), '0');
    out += digits;
  } else {
    out += digits[0];
    if (k > 1) {
      out += '.';
      out.append(digits, 1, std::string::npos);
    }
    fmt::format_to(std::back_inserter(out), "e{}{}", n - 1 < 0 ? '-' : '+', std::abs(n - 1));
  }
}

void write(std::string& out, const object& o) {
  out += '{';
  bool first = true;
  for (const auto& [key, member] : o) {
    if (!first) out += ',';
    first = false;
    write(out, std::string_view(key.data(), key.size()));
    out += ':';
    write(out, member);
  }
  out += '}';
}

void write(std::string& out, const array& a) {
  out += '[';
  bool first = true;
  for (const value& item : a) {
    if (!first) out += ',';
    first = false;
    write(out, item);
  }
  out += ']';
}

void write(std::string& out, const value& v) {
  switch (v.kind()) {
    case kind::null:
      out += "null";
      break;
    case kind::bool_:
      out += v.get_bool() ? "true" : "false";
      break;
    case kind::int64:
      fmt::format_to(std::back_inserter(out), "{}", v.get_int64());
      break;
    case kind::uint64:
      fmt::format_to(std::back_inserter(out), "{}", v.get_uint64());
      break;
    case kind::double_:
      write_number(out, v.get_double());
      break;
    case kind::string:
      write(out, view(v.get_string()));
      break;
    case kind::array:
      write(out, v.get_array());
      break;
    case kind::object:
      write(out, v.get_object());
      break;
  }
}

std::string to_text(const value& v) {
  std::string out;
  write(out, v);
  return out;
}

std::string to_text(const object& o) {
  std::string out;
  write(out, o);
  return out;
}

std::string to_text(const array& a) {
  std::string out;
  write(out, a);
  return out;
}

std::string to_text(const value& v, int indent) {
  std::string out;
  write_indented(out, v, indent, 0);
  return out;
}

const value* find(const object& o, std::string_view key) {
  return o.if_contains(key);
}

const value* find(const value& v, std::string_view key) {
  const object* o = v.if_object();
  return o != nullptr ? o->if_contains(key) : nullptr;
}

std::optional<std::string_view> find_string(const object& o, std::string_view key) {
  const value* v = o.if_contains(key);
  if (v == nullptr || !v->is_string()) return std::nullopt;
  return view(v->get_string());
}

std::optional<double> as_number(const value& v) {
  switch (v.kind()) {
    case kind::int64:
      return static_cast<double>(v.get_int64());
    case kind::uint64:
      return static_cast<double>(v.get_uint64());
    case kind::double_:
      return v.get_double();
    default:
      return std::nullopt;
  }
}

std::optional<double> find_number(const object& o, std::string_view key) {
  const value* v = o.if_contains(key);
  return v != nullptr ? as_number(*v) : std::nullopt;
}

std::optional<std::int64_t> find_integer(const object& o, std::string_view key) {
  const value* v = o.if_contains(key);
  if (v == nullptr) return std::nullopt;
  if (v->is_int64()) return v->get_int64();
  const std::optional<double> d = as_number(*v);
  if (!d || std::trunc(*d) != *d || std::abs(*d) > 9007199254740992.0) return std::nullopt;
  return static_cast<std::int64_t>(*d);
}

std::optional<bool> find_bool(const object& o, std::string_view key) {
  const value* v = o.if_contains(key);
  if (v == nullptr || !v->is_bool()) return std::nullopt;
  return v->get_bool();
}

const object* find_object(const object& o, std::string_view key) {
  const value* v = o.if_contains(key);
  return v != nullptr ? v->if_object() : nullptr;
}

const array* find_array(const object& o, std::string_view key) {
  const value* v = o.if_contains(key);
  return v != nullptr ? v->if_array() : nullptr;
}

std::string string_or(const object& o, std::string_view key, std::string_view fallback) {
  return std::string(find_string(o, key).value_or(fallback));
}
double number_or(const object& o, std::string_view key, double fallback) {
  return find_number(o, key).value_or(fallback);
}
bool bool_or(const object& o, std::string_view key, bool fallback) {
  return find_bool(o, key).value_or(fallback);
}

value number(double d) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::trunc(d) == d && std::abs(d) <= kExact) return value(static_cast<std::int64_t>(d));
  return value(d);
}

bool equal(const value& a, const value& b) {
  if (const auto x = as_number(a)) {
    const auto y = as_number(b);
    return y && *x == *y;
  }
  if (a.kind() != b.kind()) return false;
  if (const array* x = a.if_array()) {
    const array& y = b.get_array();
    if (x->size() != y.size()) return false;
    for (std::size_t i = 0; i < x->size(); ++i) {
      if (!equal((*x)[i], y[i])) return false;
    }
    return true;
  }
  if (const object* x = a.if_object()) {
    const object& y = b.get_object();
    if (x->size() != y.size()) return false;
    for (const auto& [key, member] : *x) {
      const value* other = y.if_contains(key);
      if (other == nullptr || !equal(member, *other)) return false;
    }
    return true;
  }
  return a == b;
}

}  // namespace tau::json
