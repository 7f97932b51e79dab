#include "coding/tools/edit_match.h"

#include <cstdlib>
#include <memory>
#include <random>

#include <gtest/gtest.h>
#include <utf8proc.h>

#include "base/utf8.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

std::string edited(const std::string& bytes, const std::vector<Replacement>& edits) {
  const LfText file(bytes);
  const auto result = apply_edits(file, edits, "f");
  return result ? result->bytes : "error: " + result.error();
}

constexpr std::string_view kNotFound = "error: Could not find the exact text in f.";

TEST(EditMatch, NormalisesLikeTheGoldenCases) {  // CA-46, CA-310, CA-311
  const json::value cases = test::read_json(test::fixture_root() / "edit/normalize.json");
  ASSERT_GE(cases.get_array().size(), 9U);
  for (const json::value& v : cases.get_array()) {
    const json::object& c = v.get_object();
    EXPECT_EQ(normalise_for_matching(json::string_or(c, "input")), json::string_or(c, "output"));
  }
}

/// NFKC of the whole text at once, with the replacements of CA-46 (no blanks at line ends in these texts).
std::string by_library(const std::string& text) {
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> form(
      utf8proc_NFKC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), &std::free);
  return reinterpret_cast<const char*>(form.get());
}

TEST(EditMatch, ShortcutsOfNormalisationChangeNothing) {
  for (char32_t c = 0x21; c < 0x30000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    // Alone, before and behind marks, behind a letter and a Hangul syllable.
    for (const char* around : {"a%b", "a%\u0301\u0323b", "e\u0327%b", "\uac00%b", "\u1100%b"}) {
      std::string text(around);
      std::string character;
      utf8::append(character, c);
      text.replace(text.find('%'), 1, character);
      const std::string wanted = normalise_for_matching(by_library(text));  // plain quotes, dashes and spaces
      ASSERT_EQ(normalise_for_matching(text), wanted) << "U+" << std::hex << static_cast<unsigned>(c) << " " << around;
    }
  }
}

TEST(EditMatch, EveryByteOutsideTheChangeStays) {  // FF-65
  const std::string once = edited("a\r\nb\nc\r\nd\re\n", {{"c", "C"}});
  EXPECT_EQ(once, "a\r\nb\nC\r\nd\re\n");
  EXPECT_EQ(edited(once, {{"b", "B1\nB2"}}), "a\r\nB1\nB2\nC\r\nd\re\n");
}

TEST(EditMatch, NewLinesEndLikeTheLinesThatTheyReplace) {  // FF-65
  EXPECT_EQ(edited("a\nb\r\nc\n", {{"b", "1\n2"}}), "a\n1\r\n2\r\nc\n");
  EXPECT_EQ(edited("a\nb\r\nc\n", {{"a\nb\nc", "1\n2\n3"}}), "1\n2\r\n3\n");
  EXPECT_EQ(edited("a\nb\r\nc\n", {{"b\n", "b\nnew\n"}}), "a\nb\r\nnew\r\nc\n");
  EXPECT_EQ(edited("a\rb\rc", {{"b", "1\n2"}}), "a\r1\r2\rc");
  EXPECT_EQ(edited("a\r\nb", {{"b", "1\n2\n"}}), "a\r\n1\r\n2\r\n");
  EXPECT_EQ(edited("b", {{"b", "1\r\n2"}}), "1\n2");
}

TEST(EditMatch, LinesKeptByTheNewTextKeepTheirEnds) {
  EXPECT_EQ(edited("a\nb\r\nc\n", {{"a\nb\nc", "0\na\nb\nc"}}), "0\na\nb\r\nc\n");
  EXPECT_EQ(edited("a\nb\r\nc\n", {{"a\nb\nc\n", "a\nb\nc\nd\n"}}), "a\nb\r\nc\nd\n");
}

TEST(EditMatch, LineEndsThatMeetAreNotReadAsOne) {
  EXPECT_EQ(edited("a\rb\nc", {{"b", ""}}), "a\r\n\nc");
  EXPECT_EQ(edited("a\rb\nc", {{"b", "\nx"}}), "a\r\r\nx\nc");
}

TEST(EditMatch, ALineFeedInTheRequestMatchesCrLf) {  // FF-66
  EXPECT_EQ(edited("one\r\ntwo\r\nthree\r\n", {{"one\ntwo", "1\n2\n2b"}}), "1\r\n2\r\n2b\r\nthree\r\n");
}

TEST(EditMatch, AFuzzyMatchOnlyLocates) {  // FF-67
  EXPECT_EQ(edited("say \u201chi\u201d\nx \u2013 y\nplain\n", {{"x - y", "x + y"}}),
            "say \u201chi\u201d\nx + y\nplain\n");
  EXPECT_EQ(edited("\u201ckeep\u201d target \u2014 tail  \n", {{"target - tail", "hit"}}), "\u201ckeep\u201d hit  \n");
}

TEST(EditMatch, BlanksAtTheEndOfALineGoOnlyWhenTheOldTextHasSome) {
  EXPECT_EQ(edited("x \u2014 1  \ny\n", {{"x - 1", "z"}}), "z  \ny\n");
  EXPECT_EQ(edited("x \u2014 1  \ny\n", {{"x - 1 ", "z"}}), "z\ny\n");
  EXPECT_EQ(edited("x \u2014 1  \ny\n", {{"x - 1\ny", "z"}}), "z\n");
  EXPECT_EQ(edited("w  \nx \u2014 1\n", {{"\nx - 1", "\nz"}}), "w  \nz\n");
}

TEST(EditMatch, ACharacterThatIsMatchedInPartIsSpeltOut) {
  EXPECT_EQ(edited("wait\u2026 \u201cyes\u201d\n", {{"wait..", "go"}}), "go. \u201cyes\u201d\n");
  EXPECT_EQ(edited("\ufb01ne\n", {{"ine", "x"}}), "fx\n");
}

TEST(EditMatch, BytesThatAreNoUtf8Stay) {  // FF-68
  EXPECT_EQ(edited("// \xa9 Acme\r\nint main(){return 0;}\r\n", {{"return 0", "return 1"}}),
            "// \xa9 Acme\r\nint main(){return 1;}\r\n");
  EXPECT_EQ(edited("\xa9 x \u2014 y \xff\n", {{"x - y", "z"}}), "\xa9 z \xff\n");
  EXPECT_TRUE(edited("a \xa9 b\n", {{"a \ufffd b", "c"}}).starts_with(kNotFound));
}

TEST(EditMatch, AByteOrderMarkStays) {
  EXPECT_EQ(edited("\xef\xbb\xbf"
                   "a\r\nb\r\n",
                   {{"b", "B"}}),
            "\xef\xbb\xbf"
            "a\r\nB\r\n");
  EXPECT_TRUE(edited("\xef\xbb\xbf"
                     "a\n",
                     {{"\xef\xbb\xbf"
                       "a",
                       "A"}})
                  .starts_with(kNotFound));
}

TEST(EditMatch, AnAmbiguousPlaceIsRefusedHoweverItIsSpelt) {  // CA-47
  EXPECT_TRUE(edited("say \u201chi\u201d\nsay \"hi\"\n", {{"say \"hi\"", "x"}}).starts_with("error: Found 2 "));
  // A letter before a combining accent is another letter in the normalised form only.
  EXPECT_TRUE(edited("cafe\u0301 cafe\n", {{"cafe", "x"}}).starts_with("error: Found 2 "));
}

TEST(EditMatch, TextThatNormalisesToNothingIsNotFoundInATinyFile) {
  EXPECT_TRUE(edited("a", {{"  ", "x"}}).starts_with(kNotFound));
  EXPECT_TRUE(edited("", {{"  ", "x"}}).starts_with(kNotFound));
}

TEST(EditMatch, LoneSurrogatesAreNotWritten) {
  EXPECT_EQ(edited("a\n", {{"a", "b\xed\xa0\xbd"}}), "b\n");
}

/// Random files of every kind of line end: the LF view changes exactly as asked, and only there.
TEST(EditMatch, WindowsTellExactlyWhatChanged) {
  std::mt19937 random(11);
  const std::vector<std::string> atoms = {"a",      "b", "c", "\n",   "\r\n",   "\r",
                                          "\u2014", "-", " ", "\xa9", "\u2026", "e\u0301"};
  const auto text = [&](std::size_t most) {
    std::string out;
    for (std::size_t n = random() % most; n > 0; --n)
      out += atoms[random() % atoms.size()];
    return out;
  };
  int changed = 0;
  for (int round = 0; round < 60'000; ++round) {
    const std::string bytes = text(16);
    const std::vector<Replacement> edits = random() % 2 == 0
                                               ? std::vector<Replacement>{{text(4), text(5)}}
                                               : std::vector<Replacement>{{text(4), text(5)}, {text(4), text(5)}};
    const LfText before(bytes);
    const auto result = apply_edits(before, edits, "f");
    if (!result) continue;
    ++changed;
    const LfText after(result->bytes);
    const std::string_view a = before.view();
    const std::string_view b = after.view();
    std::size_t old_at = 0;
    std::size_t new_at = 0;
    const auto trace = testing::PrintToString(bytes) + " -> " + testing::PrintToString(result->bytes);
    for (const TextWindow& w : result->changes) {
      ASSERT_EQ(a.substr(old_at, w.old_begin - old_at), b.substr(new_at, w.new_begin - new_at)) << trace;
      old_at = w.old_end;
      new_at = w.new_end;
    }
    ASSERT_EQ(a.substr(old_at), b.substr(new_at)) << trace;
  }
  EXPECT_GT(changed, 3000);
}

}  // namespace
}  // namespace tau::coding
