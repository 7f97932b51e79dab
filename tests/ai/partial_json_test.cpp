#include "ai/partial_json.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::ai {
namespace {

std::string preview(std::string_view text, std::size_t piece = std::string_view::npos,
                    PartialJson::Literals literals = PartialJson::Literals::kRepaired) {
  PartialJson reader(literals);
  while (!text.empty()) {
    reader.feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  return json::to_text(reader.value());
}

// AI-41 to AI-44
TEST(StreamingJson, FindsWhatPiFinds) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/parse-streaming-json.json");
  ASSERT_GE(vectors.get_array().size(), 58U);
  for (const json::value& v : vectors.get_array()) {
    const std::string text = json::string_or(v.get_object(), "in");
    EXPECT_EQ(json::to_text(parse_streaming_json(text)), json::to_text(v.at("out"))) << text;
  }
}

// AI-42
TEST(LiteralRepair, EscapesInsideStringsOnly) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/repair-json.json");
  ASSERT_GE(vectors.get_array().size(), 8U);
  for (const json::value& v : vectors.get_array()) {
    const std::string text = json::string_or(v.get_object(), "in");
    EXPECT_EQ(repair_json_literals(text), json::string_or(v.get_object(), "out")) << text;
  }
}

TEST(FinalArguments, AreValidWhenTheyAreJsonOrNeedEscapesOnly) {
  for (const char* text : {"", "  ", "{}", "{\"a\":1}", " {\"a\":1}\n", "{\"a\":\"line\nbreak\"}",
                           "{\"path\":\"C:\\dir\\q\"}", "null", "[1]", "\xEF\xBB\xBF{\"a\":1}"}) {
    EXPECT_TRUE(parse_final_arguments(text).valid) << text;
  }
}

// FF-19, FF-18
TEST(FinalArguments, AreAPreviewWhenTheTextIsBroken) {
  const FinalArguments missing_comma = parse_final_arguments(R"({"path":"a.txt","content":"x" "mode":1})");
  EXPECT_FALSE(missing_comma.valid);
  EXPECT_EQ(json::to_text(missing_comma.value), R"({"path":"a.txt","content":"x","mode":1})");
  const FinalArguments cut = parse_final_arguments(R"({"path":"a.txt","content":"abc)");
  EXPECT_FALSE(cut.valid);
  EXPECT_EQ(json::to_text(cut.value), R"({"path":"a.txt","content":"abc"})");
  for (const char* text : {"{\"a\":1} trailing", "{\"a\":1,}", "{a:1}", "{\"n\":NaN}", "{\"a\":tru", "}"}) {
    EXPECT_FALSE(parse_final_arguments(text).valid) << text;
  }
}

TEST(FinalArguments, KeepLoneSurrogates) {
  EXPECT_EQ(json::to_text(parse_final_arguments(R"({"a":"\ud83d"})").value), R"({"a":"\ud83d"})");
  EXPECT_EQ(json::to_text(parse_final_arguments("{\"a\":\"\xED\xA0\xBD\"}").value), R"({"a":"\ud83d"})");
}

constexpr std::string_view kSample =
    R"({"path":"src/\u00e9\ud83d\ude00.txt","n":-12.5e+3,"deep":[{"a":[true,false,null]},"x\\\"y",[],{}],)"
    "\n  \"content\" : \"line\\nline\\u0000 \xC3\xA9\" , \"last\":1e2}";

TEST(PartialJson, AgreesWithTheWholeTextReaderAtEveryLength) {
  for (std::size_t n = 0; n <= kSample.size(); ++n) {
    if (n < kSample.size() && (static_cast<unsigned char>(kSample[n]) & 0xC0) == 0x80) continue;
    const std::string_view prefix = kSample.substr(0, n);
    const std::string whole = json::to_text(parse_streaming_json(prefix));
    EXPECT_EQ(preview(prefix), whole) << prefix;
    EXPECT_EQ(preview(prefix, 1), whole) << prefix;
    EXPECT_EQ(preview(prefix, 3), whole) << prefix;
  }
}

TEST(PartialJson, MayBeLookedAtAfterEveryPiece) {
  PartialJson reader;
  for (const char& c : kSample) {
    reader.feed(std::string_view(&c, 1));
    reader.value();
  }
  EXPECT_EQ(json::to_text(reader.value()), json::to_text(*json::parse(kSample)));
}

TEST(PartialJson, ShowsAnUnfinishedNumberOnlyWhenItIsOne) {
  PartialJson reader;
  reader.feed("{\"a\":1");
  EXPECT_EQ(json::to_text(reader.value()), R"({"a":1})");
  reader.feed(".");
  EXPECT_EQ(json::to_text(reader.value()), "{}");
  reader.feed("5");
  EXPECT_EQ(json::to_text(reader.value()), R"({"a":1.5})");
  reader.feed("x,");
  EXPECT_EQ(json::to_text(reader.value()), "{}");
  reader.feed("\"b\":2}");
  EXPECT_EQ(json::to_text(reader.value()), "{}") << "nothing is read after a value that failed";
}

TEST(PartialJson, ShowsLiteralsThatAModelForgotToEscape) {
  EXPECT_EQ(preview("{\"a\":\"tab\there"), R"({"a":"tab\there"})");
  EXPECT_EQ(preview("{\"path\":\"C:\\dir\\q"), R"({"path":"C:\\dir\\q"})");
  EXPECT_EQ(preview("{\"a\":\"\\u00zz\\", 1), R"({"a":"\\u00zz"})");
  EXPECT_EQ(preview("{\"a\":\"\\u00\"", 1), R"({"a":"\\u00"})");
}

TEST(PartialJson, JoinsSurrogatesThatArriveApart) {
  EXPECT_EQ(preview(R"({"a":"\ud83d\ude00"})", 1), "{\"a\":\"\xF0\x9F\x98\x80\"}");
  PartialJson raw;
  raw.feed("{\"a\":\"\xED\xA0\xBD");
  raw.feed("\xED\xB8\x80\"}");
  EXPECT_EQ(json::to_text(raw.value()), "{\"a\":\"\xF0\x9F\x98\x80\"}");
}

TEST(PartialJson, StopsAtAMismatchedEnd) {
  EXPECT_EQ(preview(R"({"a":[1}, "b":2})"), R"({"a":[1]})");
  EXPECT_EQ(preview(R"({"a" 1})"), "{}");
  EXPECT_EQ(preview(R"({"a":1} {"b":2})"), R"({"a":1})");
}

TEST(PartialJson, SurvivesDeepNesting) {
  const std::string deep(100000, '[');
  PartialJson reader;
  reader.feed(deep);
  EXPECT_TRUE(reader.value().is_array());
  EXPECT_FALSE(parse_final_arguments(deep).valid);
}

TEST(PartialJson, DoesNotDependOnHowTheTextIsCutOrWhenItIsLookedAt) {
  constexpr std::string_view kPieces[] = {
      "{",  "}",   "[",        "]",       ",",       ":",      "\"",    "\"a\"",        "\\",  "\\u00",
      "e9", "\\n", "1",        "-",       ".5",      "e+",     "true",  "nul",          "NaN", " ",
      "\n", "x",   "\xC3\xA9", "\\ud83d", "\\ude00", "\"k\":", "[1,2]", "{\"b\":\"c\"}"};
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 == 0 ? "{\"k\":" : "";
    for (unsigned n = random() % 12; n > 0; --n)
      text += kPieces[random() % std::size(kPieces)];
    for (const auto literals : {PartialJson::Literals::kRepaired, PartialJson::Literals::kAsWritten}) {
      const std::string whole = preview(text, std::string::npos, literals);
      PartialJson byte_by_byte(literals);
      for (const char& c : text) {
        byte_by_byte.feed(std::string_view(&c, 1));
        byte_by_byte.value();
      }
      ASSERT_EQ(json::to_text(byte_by_byte.value()), whole) << text;
    }
    if (const auto strict = json::parse(text)) {
      const bool shown = !strict->is_null();
      ASSERT_EQ(preview(text), shown ? json::to_text(*strict) : "{}") << text;
    }
    parse_final_arguments(text);
  }
}

TEST(PartialJson, LooksAtEachByteOnce) {
  // 1 MB in pieces of 20 bytes, looked at after each. Re-reading would take minutes here.
  PartialJson reader;
  reader.feed(R"({"path":"a","content":")");
  std::size_t seen = 0;
  for (int i = 0; i < 50000; ++i) {
    reader.feed("twenty bytes of it\\n");
    seen += reader.value().get_object().size();
  }
  reader.feed("\"}");
  EXPECT_EQ(seen, 100000U);
  EXPECT_EQ(reader.value().at("content").get_string().size(), 950000U);
}

}  // namespace
}  // namespace tau::ai
