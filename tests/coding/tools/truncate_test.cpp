#include "coding/tools/truncate.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "coding/tools/output_accumulator.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

TruncationLimits limits_of(const json::object& options) {
  TruncationLimits limits;
  limits.max_lines = static_cast<std::size_t>(json::number_or(options, "maxLines", 2000));
  limits.max_bytes = static_cast<std::size_t>(json::number_or(options, "maxBytes", 51200));
  return limits;
}

void check(const char* file, Truncation (*truncate)(std::string_view, TruncationLimits)) {
  const json::value cases = test::read_json(test::fixture_root() / "truncate" / file);
  for (const json::value& v : cases.get_array()) {
    const json::object& c = v.get_object();
    SCOPED_TRACE(json::string_or(c, "name"));
    const Truncation t = truncate(json::string_or(c, "content"), limits_of(*json::find_object(c, "options")));
    const json::value actual = to_json(t);
    EXPECT_TRUE(json::equal(actual, *json::find(c, "result")))
        << json::to_text(actual) << "\n expected " << json::to_text(*json::find(c, "result"));
  }
}

TEST(Truncate, HeadMatchesTheGoldenCases) {
  check("head.json", &truncate_head);
}
TEST(Truncate, TailMatchesTheGoldenCases) {
  check("tail.json", &truncate_tail);
}

TEST(Truncate, SizesAndLinesMatchTheGoldenCases) {
  const json::value cases = test::read_json(test::fixture_root() / "truncate/format-size.json");
  for (const json::value& v : cases.get_array()) {
    const json::object& c = v.get_object();
    EXPECT_EQ(format_size(static_cast<std::size_t>(json::number_or(c, "bytes"))), json::string_or(c, "text"));
  }
  const json::value lines = test::read_json(test::fixture_root() / "truncate/line.json");
  for (const json::value& v : lines.get_array()) {
    const json::object& c = v.get_object();
    const auto max = static_cast<std::size_t>(json::number_or(c, "maxChars", 500));
    if (json::string_or(c, "name") == "surrogate-split") {  // tau does not cut a character in two
      EXPECT_EQ(truncate_line(json::string_or(c, "line"), max), "zzzzzzzzz... [truncated]");
      continue;
    }
    EXPECT_EQ(truncate_line(json::string_or(c, "line"), max), json::string_or(*json::find_object(c, "result"), "text"))
        << json::string_or(c, "name");
  }
}

TEST(Truncate, ALineThatAloneIsTooLongShowsItsEndFromACharacterOn) {  // FF-60
  std::string text;
  for (int i = 0; i < 60000; ++i)
    text += "\u00e9";
  const Truncation t = truncate_tail(text);
  EXPECT_TRUE(t.last_line_partial);
  EXPECT_EQ(t.content.size(), 51200u);
  EXPECT_TRUE(t.content.starts_with("\u00e9"));
}

TEST(OutputAccumulator, MatchesTheGoldenCases) {  // CA-71
  const test::TemporaryFolder folder;
  const json::value cases = test::read_json(test::fixture_root() / "truncate/accumulator.json");
  for (const json::value& v : cases.get_array()) {
    const json::object& c = v.get_object();
    SCOPED_TRACE(json::string_or(c, "name"));
    OutputAccumulator output(folder.path(), limits_of(*json::find_object(c, "options")));
    std::string all;
    for (const json::value& chunk : *json::find_array(c, "chunksBase64")) {
      const std::string bytes = base64_decode(json::view(chunk.get_string())).value();
      all += bytes;
      output.add(bytes);
    }
    output.finish();
    const json::value actual = to_json(output.snapshot());
    EXPECT_TRUE(json::equal(actual, *json::find(c, "truncation")))
        << json::to_text(actual) << "\n expected " << json::to_text(*json::find(c, "truncation"));
    EXPECT_EQ(output.full_output().has_value(), json::bool_or(c, "hasFullOutputFile"));
    if (output.full_output()) {
      EXPECT_EQ(test::read_file(*output.full_output()), all);
    }
    // pi counts the line that has begun; tau the last one that is shown. They differ behind a final line end.
    if (!all.ends_with('\n')) {
      EXPECT_EQ(output.last_line_bytes(), static_cast<std::size_t>(json::number_or(c, "lastLineBytes")));
    }
  }
}

}  // namespace
}  // namespace tau::coding
