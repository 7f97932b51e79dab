#include "base/json.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace tau::json {
namespace {

/// The text written again, or the error.
std::string again(std::string_view text, const ParseOptions& options = {}) {
  const auto parsed = parse(text, options);
  return parsed ? to_text(*parsed) : parsed.error().describe();
}

std::string number_text(double number) {
  std::string out;
  write_number(out, number);
  return out;
}

TEST(JsonReader, KeepsWhatItReads) {
  for (const char* text : {"null", "true", "false", "0", "-1", "\"\"", "[]", "{}", R"({"b":[1,{"a":null}],"a":"x"})"})
    EXPECT_EQ(again(text), text);
  EXPECT_EQ(again(" \t\r\n{ \"a\" : [ 1 , 2 ] } \n"), R"({"a":[1,2]})");
}

TEST(JsonReader, UnderstandsEveryEscape) {
  const auto v = parse(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\uDE00\u0000")");
  ASSERT_TRUE(v);
  EXPECT_EQ(view(v->get_string()), std::string_view("\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\0", 19));
}

TEST(JsonReader, RefusesBrokenLiterals) {
  for (const char* text : {R"("\x")", R"("\u12")", R"("\u12g4")", R"("abc)", R"("\)", "\"a\nb\"", "'a'", R"("\u+123")",
                           R"("\u 123")", R"("\ud83d\u12")"}) {
    EXPECT_FALSE(parse(text)) << text;
  }
}

// AI-9
TEST(JsonReader, LoneSurrogatesSurviveAsWtf8) {
  EXPECT_EQ(again(R"("tag \ud83c end")"), R"("tag \ud83c end")");
  EXPECT_EQ(again(R"("\uDE00\uD83D")"), R"("\ude00\ud83d")");
  EXPECT_EQ(again(R"("\ud83d\ud83d\ude00")"), "\"\\ud83d\xF0\x9F\x98\x80\"");
  EXPECT_EQ(view(parse(R"("\ud83c")")->get_string()), "\xED\xA0\xBC");
  EXPECT_EQ(again(R"({"\ud83c":1})"), R"({"\ud83c":1})") << "in keys, too";
}

TEST(JsonReader, BytesThatAreNoUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(again("\"a\xFF"
                  "b\""),
            "\"a\xEF\xBF\xBD"
            "b\"");
  EXPECT_EQ(again("\"\xE2\x82\""), "\"\xEF\xBF\xBD\"") << "one for the beginning of a character";
  EXPECT_EQ(again("\"\xED\xA0\xBC\""), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"") << "an encoded surrogate in a file";
  EXPECT_EQ(again("\"\xC0\x80\""), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonReader, OurOwnTextMayHoldEncodedSurrogates) {
  ParseOptions own;
  own.wtf8 = true;
  EXPECT_EQ(again("\"\xED\xA0\xBC\"", own), R"("\ud83c")");
  EXPECT_EQ(again("\"\xFF\"", own), "\"\xEF\xBF\xBD\"");
}

// AI-3
TEST(JsonNumbers, ReadAndWriteTheSameDouble) {
  for (const char* text : {"0.003474", "1e+21", "5e-324", "0.0006000000000000001", "1.7976931348623157e+308", "0.1",
                           "123456789.123", "1e-7", "0.000001", "-0.5", "1.5e-10", "100000000000000000000",
                           "2.2250738585072014e-308", "4.35", "1e+22", "0.30000000000000004", "-1e-7"}) {
    EXPECT_EQ(again(text), text);
  }
  EXPECT_EQ(again("1E3"), "1000");
  EXPECT_EQ(again("1.0"), "1");
  EXPECT_EQ(again("-0"), "0");
  EXPECT_EQ(again("-0.0"), "0");
  EXPECT_EQ(again("1e400"), "null") << "as JavaScript writes infinity";
  EXPECT_EQ(again("1e-400"), "0");
  EXPECT_EQ(again("123e-20"), "1.23e-18");
}

TEST(JsonNumbers, WholeOnesAreExactUpTo64Bits) {
  for (const char* text : {"9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615"})
    EXPECT_EQ(again(text), text);
  EXPECT_EQ(again("18446744073709551616"), "18446744073709552000");
  EXPECT_EQ(again("-9223372036854775809"), "-9223372036854776000");
}

TEST(JsonNumbers, AreWrittenAsJavaScriptDoes) {
  EXPECT_EQ(number_text(std::nan("")), "null");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(1e21), "1e+21");
  EXPECT_EQ(number_text(123456789012345680000.0), "123456789012345680000");
  EXPECT_EQ(number_text(1e-6), "0.000001");
  EXPECT_EQ(number_text(1.25e-7), "1.25e-7");
  EXPECT_EQ(to_text(number(3.0)), "3");
  EXPECT_EQ(to_text(number(3.5)), "3.5");
  EXPECT_EQ(to_text(number(1e300)), "1e+300");
}

TEST(JsonNumbers, RefuseWhatJsonDoesNotHave) {
  for (const char* text : {"01", "+1", ".5", "1.", "1e", "1e+", "-", "--1", "0x10", "NaN", "Infinity", "1.e5", "1_0"})
    EXPECT_FALSE(parse(text)) << text;
}

TEST(JsonReader, OfEqualKeysTheLastWinsInThePlaceOfTheFirst) {
  EXPECT_EQ(again(R"({"a":1,"b":2,"a":{"c":3}})"), R"({"a":{"c":3},"b":2})");
  EXPECT_EQ(again(R"({"b":1,"a":2,"10":3,"2":4})"), R"({"b":1,"a":2,"10":3,"2":4})") << "order of arrival";
}

TEST(JsonReader, CommentsAndTrailingCommasOnlyOnRequest) {
  constexpr std::string_view kText = "// first\n{\"a\": [1, 2,], // second\n \"b\": \"// no comment\",} // end";
  EXPECT_FALSE(parse(kText));
  ParseOptions lenient;
  lenient.comments = true;
  EXPECT_FALSE(parse(kText, lenient));
  lenient.trailing_commas = true;
  EXPECT_EQ(again(kText, lenient), R"({"a":[1,2],"b":"// no comment"})");
  EXPECT_FALSE(parse("[,]", lenient));
  EXPECT_FALSE(parse("[1,,2]", lenient));
  EXPECT_FALSE(parse("{,}", lenient));
}

TEST(JsonReader, NestingHasALimit) {
  EXPECT_TRUE(parse(std::string(2000, '[') + std::string(2000, ']')));
  EXPECT_FALSE(parse(std::string(2001, '[') + std::string(2001, ']')));
  EXPECT_FALSE(parse(std::string(1000000, '[')));
  ParseOptions shallow;
  shallow.max_depth = 1;
  EXPECT_TRUE(parse("{}", shallow));
  EXPECT_EQ(again("[[]]", shallow), "arrays and objects are nested too deeply at line 1, column 2");
}

TEST(JsonReader, ErrorsSayWhere) {
  EXPECT_EQ(again("{\n  \"a\": 1\n  \"b\": 2\n}"), "expected ',' or '}' at line 3, column 3");
  EXPECT_EQ(again(""), "unexpected end of the text at line 1, column 1");
  EXPECT_EQ(again("[1,"), "unexpected end of the text at line 1, column 4");
  EXPECT_EQ(again("{\"a\":1} x"), "unexpected text after the value at line 1, column 9");
  EXPECT_EQ(again("{\"a\":tru}"), "unexpected word at line 1, column 6");
  EXPECT_EQ(again("{a:1}"), "expected a key in double quotes at line 1, column 2");
  EXPECT_EQ(parse("[1 2]").error().offset, 3U);
}

TEST(JsonReader, ReadsSeveralValuesOfOneLine) {
  constexpr std::string_view kLine = R"( {"a":1}{"b":2} x)";
  std::size_t consumed = 0;
  EXPECT_EQ(to_text(*parse_prefix(kLine, consumed)), R"({"a":1})");
  EXPECT_EQ(consumed, 8U);
  std::size_t second = 0;
  EXPECT_EQ(to_text(*parse_prefix(kLine.substr(consumed), second)), R"({"b":2})");
  EXPECT_EQ(second, 7U);
  EXPECT_FALSE(parse_prefix(kLine.substr(consumed + second), second));
}

TEST(JsonWriter, EscapesAsJavaScriptDoes) {
  std::string out;
  write(out, std::string_view("\"\\/\b\f\n\r\t\x01\x1f\x7f\xE2\x80\xA8\0", 15));
  EXPECT_EQ(out, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xE2\x80\xA8\\u0000\"");
  out.clear();
  write(out, std::string_view("\xED\x95\x9C\xED\xA0\xBC."));
  EXPECT_EQ(out, "\"\xED\x95\x9C\\ud83c.\"") << "only surrogates among the characters that begin with ED";
}

TEST(JsonWriter, IndentsAsJavaScriptDoes) {
  EXPECT_EQ(to_text(*parse(R"({"a":[1,{"b":null}],"c":{},"d":[]})"), 2),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}");
}

TEST(JsonMembers, OfTheWrongTypeAreAbsent) {
  const value v =
      *parse(R"({"s":"x","n":1.5,"i":3,"b":true,"o":{},"a":[],"z":null,"big":1e300,"u":18446744073709551615})");
  const object& o = v.get_object();
  EXPECT_EQ(find_string(o, "s"), "x");
  EXPECT_EQ(find_string(o, "n"), std::nullopt);
  EXPECT_EQ(find_number(o, "n"), 1.5);
  EXPECT_EQ(find_number(o, "s"), std::nullopt);
  EXPECT_EQ(find_integer(o, "i"), 3);
  EXPECT_EQ(find_integer(o, "n"), std::nullopt);
  EXPECT_EQ(find_integer(o, "big"), std::nullopt);
  EXPECT_EQ(find_integer(o, "u"), std::nullopt);
  EXPECT_EQ(find_bool(o, "b"), true);
  EXPECT_EQ(find_bool(o, "z"), std::nullopt);
  EXPECT_NE(find_object(o, "o"), nullptr);
  EXPECT_EQ(find_object(o, "a"), nullptr);
  EXPECT_NE(find_array(o, "a"), nullptr);
  EXPECT_EQ(find(v, "missing"), nullptr);
  EXPECT_EQ(find(value(1), "x"), nullptr);
  EXPECT_EQ(string_or(o, "z", "f"), "f");
  EXPECT_EQ(number_or(o, "z", 7), 7);
  EXPECT_EQ(bool_or(o, "z", true), true);
}

TEST(JsonEquality, IgnoresTheOrderOfKeysAndTheKindOfNumbers) {
  EXPECT_TRUE(equal(*parse(R"({"a":1,"b":[2]})"), *parse(R"({"b":[2.0],"a":1})")));
  EXPECT_FALSE(equal(*parse(R"({"a":1})"), *parse(R"({"a":1,"b":2})")));
  EXPECT_FALSE(equal(*parse("[1,2]"), *parse("[2,1]")));
  EXPECT_FALSE(equal(value("1"), value(1)));
  EXPECT_TRUE(equal(value(nullptr), value(nullptr)));
  EXPECT_FALSE(equal(value(nullptr), value(false)));
}

}  // namespace
}  // namespace tau::json
