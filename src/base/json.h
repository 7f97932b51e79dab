// JSON values, the reader and the writer.
//
// Values are Boost.JSON's: objects keep the order in which their keys arrived. Reader and writer are ours, because the
// files that we share with pi need three things that Boost.JSON 1.81 does not do:
//   - lone surrogates ("\ud83d" on its own) are legal in pi's files (AI-9): strings hold them as WTF-8, that is as the
//     three bytes ED A0..BF xx, and the writer turns them into escapes again;
//   - doubles are read exactly and written in JavaScript's shortest form (AI-3): 0.003474, not 3.474E-3;
//   - errors name the line and the column.
// Bytes that are no UTF-8 become U+FFFD, as in every browser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

namespace tau::json {

using boost::json::array;
using boost::json::kind;
using boost::json::object;
using boost::json::storage_ptr;
using boost::json::string;
using boost::json::value;

/// Where and why a text is not JSON. Line and column count from 1; the column counts bytes.
struct ParseError {
  std::string reason;
  std::size_t offset = 0;  // bytes from the start of the text
  std::size_t line = 1;
  std::size_t column = 1;

  /// "expected ',' or '}' at line 3, column 7"
  std::string describe() const;
};

struct ParseOptions {
  bool comments = false;         // `//` comments to the end of the line
  bool trailing_commas = false;  // `[1,]` and `{"a":1,}`
  bool wtf8 = false;             // the text is our own WTF-8: encoded lone surrogates are kept, not replaced
  int max_depth = 2000;          // nesting of arrays and objects
};

/// Reads one JSON value; blanks around it are allowed, anything else after it is an error. Of equal keys the last one
/// wins and keeps the place of the first. Integers beyond 64 bits become doubles. A number that overflows a double
/// becomes null, as JavaScript writes it.
std::expected<value, ParseError> parse(std::string_view text, const ParseOptions& options = {},
                                       storage_ptr storage = {});

/// Reads one value from the beginning of `text` and sets `consumed` to the number of bytes it took (blanks before it
/// included). For lines that hold several values.
std::expected<value, ParseError> parse_prefix(std::string_view text, std::size_t& consumed,
                                              const ParseOptions& options = {});

/// Appends `v` as JavaScript's JSON.stringify writes it: no blanks, lone surrogates as lower-case \udxxx escapes,
/// NaN and infinities as null.
void write(std::string& out, const value& v);
void write(std::string& out, const object& v);
void write(std::string& out, const array& v);
/// A JSON string literal, quotes included. `text` is WTF-8.
void write(std::string& out, std::string_view text);
void write_number(std::string& out, double number);

std::string to_text(const value& v);
std::string to_text(const object& o);  // a conversion to a value would copy it
std::string to_text(const array& a);
/// With `indent` blanks a level, as JSON.stringify(v, null, indent).
std::string to_text(const value& v, int indent);

// ---- reading members -------------------------------------------------------------------------------------------
// A missing member, null and a member of the wrong type all read as "absent"; nothing throws.

const value* find(const object& o, std::string_view key);
const value* find(const value& v, std::string_view key);  // null unless v is an object with that key
std::optional<std::string_view> find_string(const object& o, std::string_view key);
std::optional<double> find_number(const object& o, std::string_view key);
std::optional<std::int64_t> find_integer(const object& o, std::string_view key);  // whole numbers only
std::optional<bool> find_bool(const object& o, std::string_view key);
const object* find_object(const object& o, std::string_view key);
const array* find_array(const object& o, std::string_view key);

/// The string, or `fallback`.
std::string string_or(const object& o, std::string_view key, std::string_view fallback = {});
double number_or(const object& o, std::string_view key, double fallback = 0);
bool bool_or(const object& o, std::string_view key, bool fallback = false);

inline std::string_view view(const string& s) {
  return {s.data(), s.size()};
}
std::optional<double> as_number(const value& v);

/// A number value: an integer where the double is whole and fits, so that it is written without a point.
value number(double d);

/// Equal as JSON: key order does not count, 1 equals 1.0.
bool equal(const value& a, const value& b);

}  // namespace tau::json
