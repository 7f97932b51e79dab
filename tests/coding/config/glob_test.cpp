#include "coding/config/glob.h"

#include <gtest/gtest.h>

namespace tau::coding {
namespace {

TEST(Glob, StarsStayInsideASegment) {
  EXPECT_TRUE(glob_matches("*", "abc"));
  EXPECT_TRUE(glob_matches("a*c", "abbc"));
  EXPECT_TRUE(glob_matches("a*", "a"));
  EXPECT_FALSE(glob_matches("*", "a/b"));
  EXPECT_TRUE(glob_matches("*/b", "a/b"));
  EXPECT_FALSE(glob_matches("a?c", "a/c"));
  EXPECT_TRUE(glob_matches("*a*b*c", "xaybzc"));
  EXPECT_FALSE(glob_matches("*a*b*c", "xaybz"));
}

TEST(Glob, TwoStarsSpanSegments) {
  EXPECT_TRUE(glob_matches("**", "a/b/c"));
  EXPECT_TRUE(glob_matches("**/c", "a/b/c"));
  EXPECT_TRUE(glob_matches("**/c", "c"));
  EXPECT_TRUE(glob_matches("a/**/c", "a/c"));
  EXPECT_FALSE(glob_matches("a/**/c", "b/c"));
}

TEST(Glob, ClassesBracesAndEscapes) {
  EXPECT_TRUE(glob_matches("[ps]x", "sx"));
  EXPECT_FALSE(glob_matches("[!ps]x", "sx"));
  EXPECT_TRUE(glob_matches("[a-c]1", "b1"));
  EXPECT_TRUE(glob_matches("[x", "[x"));  // not closed: text
  EXPECT_TRUE(glob_matches("{a,b{1,2}}.md", "b2.md"));
  EXPECT_FALSE(glob_matches("{a,b}.md", "c.md"));
  EXPECT_TRUE(glob_matches("{a}", "{a}"));
  EXPECT_TRUE(glob_matches("\\*", "*"));
  EXPECT_FALSE(glob_matches("\\*", "x"));
}

TEST(Glob, CaseDotsAndCharacters) {
  EXPECT_FALSE(glob_matches("A*", "abc"));
  EXPECT_TRUE(glob_matches("A*", "abc", {.ignore_case = true}));
  EXPECT_FALSE(glob_matches("*", ".hidden"));
  EXPECT_TRUE(glob_matches("*", ".hidden", {.wildcards_match_dot = true}));
  EXPECT_TRUE(glob_matches(".h*", ".hidden"));
  EXPECT_TRUE(glob_matches("?", "é"));
}

}  // namespace
}  // namespace tau::coding
