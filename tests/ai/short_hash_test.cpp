#include "ai/short_hash.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

// AI-45
TEST(ShortHash, HasTheValuesThatPiWrites) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/short-hash.json");
  ASSERT_GE(vectors.get_array().size(), 7U);
  for (const json::value& v : vectors.get_array()) {
    const json::object& o = v.get_object();
    EXPECT_EQ(short_hash(json::string_or(o, "in")), json::string_or(o, "out")) << json::to_text(v);
  }
}

TEST(ShortHash, TellsLoneSurrogatesApart) {
  EXPECT_NE(short_hash("\xED\xA0\xBD"), short_hash("\xED\xA0\xBE"));
}

// AI-40
TEST(SurrogateSanitation, DeletesLoneHalvesOnly) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/sanitize-surrogates.json");
  for (const json::value& v : vectors.get_array()) {
    std::string text;
    for (const json::value& unit : v.at("inUtf16").get_array()) {
      std::string encoded;
      utf8::append(encoded, static_cast<char32_t>(unit.get_int64()));
      utf8::append_wtf8(text, encoded);
    }
    EXPECT_EQ(utf8::remove_lone_surrogates(text), json::string_or(v.get_object(), "out")) << json::to_text(v);
  }
}

}  // namespace
}  // namespace tau::ai
