#include "coding/tools/line_diff.h"

#include <chrono>
#include <random>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace tau::coding {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

/// The new text, made from the old one and the changes.
std::string applied(const std::string& before, const std::string& after, const std::vector<LineChange>& changes) {
  const auto a = lines_of(before);
  const auto b = lines_of(after);
  std::string out;
  std::size_t at = 0;
  for (const LineChange& change : changes) {
    for (; at < change.old_line; ++at)
      out += a[at];
    at += change.old_count;
    for (std::size_t i = 0; i < change.new_count; ++i)
      out += b[change.new_line + i];
  }
  for (; at < a.size(); ++at)
    out += a[at];
  return out;
}

std::size_t edits_in(const std::vector<LineChange>& changes) {
  std::size_t n = 0;
  for (const LineChange& change : changes)
    n += change.old_count + change.new_count;
  return n;
}

/// Length of the shortest script by the textbook table.
std::size_t shortest(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::vector<std::size_t>> common(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      common[i + 1][j + 1] = a[i] == b[j] ? common[i][j] + 1 : std::max(common[i][j + 1], common[i + 1][j]);
    }
  }
  return a.size() + b.size() - 2 * common[a.size()][b.size()];
}

TEST(LineDiff, FindsAShortestScriptThatMakesTheNewText) {  // CA-316
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string texts[2];
    for (std::string& text : texts) {
      for (std::size_t n = random() % 12; n > 0; --n)
        text += std::string(1, static_cast<char>('a' + random() % 3)) + "\n";
      if (!text.empty() && random() % 4 == 0) text.pop_back();
    }
    const auto changes = diff_lines(texts[0], texts[1]);
    ASSERT_EQ(applied(texts[0], texts[1], changes), texts[1]) << texts[0] << "---\n" << texts[1];
    ASSERT_EQ(edits_in(changes), shortest(lines_of(texts[0]), lines_of(texts[1]))) << texts[0] << "---\n" << texts[1];
  }
}

TEST(LineDiff, EqualTextsHaveNoChange) {
  EXPECT_TRUE(diff_lines("a\nb\n", "a\nb\n").empty());
  const DiffText text = describe_diff("a\n", "a\n", "f");
  EXPECT_EQ(text.diff, "");
  EXPECT_EQ(text.patch, "--- f\n+++ f\n");
  EXPECT_FALSE(text.first_changed_line);
}

TEST(LineDiff, RemovedLinesComeBeforeAddedOnes) {
  EXPECT_EQ(diff_lines("a\nb\nc\n", "a\nx\ny\nc\n"), (std::vector<LineChange>{{1, 1, 1, 2}}));
  EXPECT_EQ(describe_diff("a\nb\nc\n", "a\nx\ny\nc\n", "f").diff, " 1 a\n-2 b\n+2 x\n+3 y\n 3 c");
}

TEST(LineDiff, AnEmptySideNamesTheLineBefore) {
  EXPECT_EQ(describe_diff("a\n", "", "f").patch, "--- f\n+++ f\n@@ -1,1 +0,0 @@\n-a\n");
  EXPECT_EQ(describe_diff("", "a\n", "f").patch, "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
}

TEST(LineDiff, GapsOfMoreThanEightLinesAreLeftOut) {  // CA-315
  const auto text = [](int gap, const char* line) {
    std::string out = std::string(line) + "\n";
    for (int i = 0; i < gap; ++i)
      out += "same\n";
    return out + line + "\n";
  };
  EXPECT_EQ(describe_diff(text(8, "x"), text(8, "y"), "f").diff.find("..."), std::string::npos);
  EXPECT_NE(describe_diff(text(9, "x"), text(9, "y"), "f").diff.find("\n    ...\n"), std::string::npos);
}

TEST(LineDiff, TextsThatDifferTooMuchAreShownAsTheyAre) {  // FF-71
  std::string before = "head\n";
  std::string after = "head\n";
  for (int i = 0; i < 3000; ++i)
    before += "old " + std::to_string(i) + "\n", after += "new " + std::to_string(i) + "\n";
  const std::string middle = "m1\nm2\n";
  const std::size_t old_at = before.size();
  const std::size_t new_at = after.size();
  before += middle + "tail x\n";
  after += middle + "tail y\n";
  const TextWindow known[] = {{5, old_at, 5, new_at},
                              {before.size() - 2, before.size() - 1, after.size() - 2, after.size() - 1}};
  EXPECT_EQ(diff_lines(before, after, known), (std::vector<LineChange>{{1, 3000, 1, 3000}, {3003, 1, 3003, 1}}));
  const auto without = diff_lines(before, after);
  EXPECT_EQ(without.size(), 1U);
  EXPECT_EQ(applied(before, after, without), after);
  EXPECT_LT(describe_diff(before, after, "f", known).diff.size(), kLargestDiff + 4096);
}

TEST(LineDiff, ALongLineIsCutAroundTheChange) {  // FF-71
  const std::string filler(100'000, 'x');
  const DiffText text = describe_diff(filler + "OLD" + filler, filler + "NEW" + filler, "f");
  EXPECT_LT(text.diff.size(), 3 * kLongestDiffLine);
  EXPECT_NE(text.diff.find("OLD"), std::string::npos);
  EXPECT_NE(text.diff.find("NEW"), std::string::npos);
  EXPECT_EQ(text.patch, "");  // a patch is whole or not there
}

TEST(LineDiff, CutsDoNotSplitCharacters) {
  std::string filler;
  for (int i = 0; i < 5000; ++i)
    filler += "\u20ac";
  for (const char* lead : {"", "a", "ab"}) {
    const std::string text = describe_diff(lead + filler + "1" + filler, lead + filler + "2" + filler, "f").diff;
    EXPECT_EQ(text.find("\ufffd"), std::string::npos);
  }
}

TEST(LineDiff, BytesThatAreNoUtf8AreReplacedInTheTexts) {
  const DiffText text = describe_diff("\xa9 a\n", "\xa9 b\n", "f");
  EXPECT_EQ(text.diff, "-1 \ufffd a\n+1 \ufffd b");
  EXPECT_TRUE(utf8::is_valid(text.patch));
}

}  // namespace
}  // namespace tau::coding
