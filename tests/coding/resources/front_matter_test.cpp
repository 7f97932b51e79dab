#include "coding/resources/front_matter.h"

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::coding {
namespace {

TEST(FrontMatter, GoldenCases) {  // CA-132
  const json::value file = test::read_json(test::fixture_root() / "templates" / "frontmatter.json");
  for (const json::value& one : file.as_array()) {
    const std::string input(json::view(one.at("input").as_string()));
    SCOPED_TRACE(input);
    const auto front = split_front_matter(input);
    ASSERT_TRUE(front) << front.error().message;
    EXPECT_EQ(front->body, json::view(one.at("body").as_string()));
    if (one.at("frontmatter").is_object()) {
      EXPECT_TRUE(json::equal(front->values, one.at("frontmatter"))) << json::to_text(json::value(front->values));
    } else {
      EXPECT_TRUE(front->values.empty());  // a YAML document that is no mapping has no members
    }
  }
}

TEST(FrontMatter, YamlIsRealYaml) {  // CA-401
  const auto yaml =
      yaml_to_json("a: 'x: y'\nb: [1, 2.5, -3]\nc: >\n  one\n  two\nd: \"42\"\ne: ~\nf: &k yes\ng: *k\nh: true\n");
  ASSERT_TRUE(yaml) << yaml.error().message;
  const auto expected =
      json::parse(R"({"a":"x: y","b":[1,2.5,-3],"c":"one two\n","d":"42","e":null,"f":"yes","g":"yes","h":true})");
  EXPECT_TRUE(json::equal(*yaml, *expected)) << json::to_text(*yaml);
}

TEST(FrontMatter, BrokenYamlIsNamedByItsLineInTheFile) {  // FF-115
  const auto front = split_front_matter("---\nname: x\ndescription: [\n---\nbody");
  ASSERT_FALSE(front);
  EXPECT_NE(front.error().message.find("line "), std::string::npos) << front.error().message;
}

TEST(FrontMatter, MarksAndLineEndsAreNormalised) {  // FF-114
  const auto front = split_front_matter("\xEF\xBB\xBF---\r\na: 1\r---\rone\r\ntwo");
  ASSERT_TRUE(front);
  EXPECT_TRUE(front->present);
  EXPECT_EQ(front->body, "one\ntwo");
}

}  // namespace
}  // namespace tau::coding
