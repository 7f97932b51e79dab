#include "base/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace tau::utf8 {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kHigh = "\xED\xA0\xBD";       // U+D83D
constexpr std::string_view kLow = "\xED\xB8\x80";        // U+DE00
constexpr std::string_view kEmoji = "\xF0\x9F\x98\x80";  // U+1F600

std::string repeat(std::string_view text, int count) {
  std::string out;
  while (count-- > 0)
    out += text;
  return out;
}

TEST(Utf8, EncodesAndDecodesEveryLength) {
  for (const char32_t c : {U'\0', U'A', char32_t{0x7F}, char32_t{0x80}, char32_t{0x7FF}, char32_t{0x800},
                           char32_t{0xD7FF}, char32_t{0xD800}, char32_t{0xDFFF}, char32_t{0xE000}, char32_t{0xFFFF},
                           char32_t{0x10000}, char32_t{0x10FFFF}}) {
    std::string text;
    append(text, c);
    const Decoded d = decode(text);
    EXPECT_TRUE(d.valid);
    EXPECT_EQ(d.code_point, c);
    EXPECT_EQ(d.length, text.size());
  }
}

TEST(Utf8, AnInvalidSequenceIsItsMaximalSubpart) {
  for (const auto& [text, length] : {std::pair<std::string_view, std::size_t>{"\xFF", 1},
                                     {"\x80", 1},
                                     {"\xC0\x80", 1},
                                     {"\xC1\xBF", 1},
                                     {"\xE2\x82", 2},
                                     {"\xE2\x82 ", 2},
                                     {"\xE0\x80\x80", 1},
                                     {"\xF0\x9F\x98", 3},
                                     {"\xF0\x80\x80\x80", 1},
                                     {"\xF4\x90\x80\x80", 1},
                                     {"\xF5\x80", 1},
                                     {"\xC3", 1},
                                     {"\xC3(", 1}}) {
    const Decoded d = decode(text);
    EXPECT_FALSE(d.valid);
    EXPECT_EQ(d.length, length) << testing::PrintToString(text);
    EXPECT_EQ(d.code_point, char32_t{0xFFFD});
  }
}

TEST(Utf8, StrictTextHasNoSurrogates) {
  EXPECT_TRUE(is_valid(""));
  EXPECT_TRUE(is_valid("plain"));
  EXPECT_TRUE(is_valid("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  EXPECT_FALSE(is_valid(kHigh));
  EXPECT_FALSE(is_valid("a\xFF"));
  EXPECT_FALSE(is_valid("a\xE2\x82"));
}

// What a browser's TextDecoder makes of it.
TEST(Utf8, InvalidBytesAreReplaced) {
  EXPECT_EQ(replace_invalid("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(replace_invalid("a\xFF"
                            "b"),
            "a" + std::string(kReplacement) + "b");
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98"), kReplacement);
  EXPECT_EQ(replace_invalid("\xE2\x82\xE2\x82\xAC"), std::string(kReplacement) + "\xE2\x82\xAC");
  EXPECT_EQ(replace_invalid("\xC0\x80"), repeat(kReplacement, 2));
  EXPECT_EQ(replace_invalid(kHigh), repeat(kReplacement, 3));
  EXPECT_TRUE(is_valid(replace_invalid("\x80\xED\xA0\xF4\x90\xE0\x80")));
}

TEST(Wtf8, HalvesOfAPairJoinWhenAppended) {
  std::string text(kHigh);
  append_wtf8(text, kLow);
  EXPECT_EQ(text, kEmoji);
  append_wtf8(text, kLow);
  EXPECT_EQ(text, std::string(kEmoji) + std::string(kLow));
  append_wtf8(text, kHigh);
  append_wtf8(text, kHigh);
  append_wtf8(text, std::string(kLow) + "x");
  EXPECT_EQ(text, std::string(kEmoji) + std::string(kLow) + std::string(kHigh) + std::string(kEmoji) + "x");
  std::string korean = "\xED\x95\x9C";  // begins with ED and is no surrogate
  append_wtf8(korean, "\xED\x95\x9C");
  EXPECT_EQ(korean, "\xED\x95\x9C\xED\x95\x9C");
  std::string empty;
  append_wtf8(empty, "");
  append_wtf8(empty, kLow);
  EXPECT_EQ(empty, kLow);
}

// AI-40
TEST(Wtf8, LoneSurrogatesCanBeRemoved) {
  EXPECT_TRUE(has_lone_surrogates("a" + std::string(kHigh)));
  EXPECT_FALSE(has_lone_surrogates("\xED\x95\x9C" + std::string(kEmoji)));
  EXPECT_EQ(remove_lone_surrogates("a" + std::string(kHigh) + "b" + std::string(kEmoji) + std::string(kLow)),
            "ab" + std::string(kEmoji));
  EXPECT_EQ(remove_lone_surrogates("\xED\x95\x9C"), "\xED\x95\x9C");
}

// AI-8
TEST(Utf8, LengthsCountUnitsOrCharacters) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC" + std::string(kEmoji) + std::string(kHigh);
  EXPECT_EQ(utf16_length(text), 6U);
  EXPECT_EQ(length(text), 5U);
  EXPECT_EQ(utf16_length(""), 0U);
}

TEST(Utf8, PrefixesDoNotSplitCharacters) {
  const std::string text = "a" + std::string(kEmoji) + "b";
  EXPECT_EQ(prefix_utf16(text, 0), "");
  EXPECT_EQ(prefix_utf16(text, 1), "a");
  EXPECT_EQ(prefix_utf16(text, 2), "a");
  EXPECT_EQ(prefix_utf16(text, 3), "a" + std::string(kEmoji));
  EXPECT_EQ(prefix_utf16(text, 99), text);
  EXPECT_EQ(prefix(text, 2), "a" + std::string(kEmoji));
  EXPECT_EQ(prefix(text, 99), text);
}

// FF-34
TEST(Utf8, AStreamMayBeCutAnywhere) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC" + std::string(kEmoji) + "z";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    std::string decoded;
    std::string pending = text.substr(0, cut);
    const std::size_t tail = incomplete_tail(pending);
    decoded = replace_invalid(std::string_view(pending).substr(0, pending.size() - tail));
    decoded += replace_invalid(pending.substr(pending.size() - tail) + text.substr(cut));
    EXPECT_EQ(decoded, text) << cut;
  }
  for (const char* hopeless : {"", "a", "\x80", "\xFF", "\xC0", "\xC1", "\xF5", "\xE0\x80", "\xF4\x90", "\xE2\x82\xAC",
                               "\xE2(", "\xC3\xA9\x80"}) {
    EXPECT_EQ(incomplete_tail(hopeless), 0U) << testing::PrintToString(hopeless);
  }
  EXPECT_EQ(incomplete_tail("\xE2"), 1U);
  EXPECT_EQ(incomplete_tail("x\xE2\x82"), 2U);
  EXPECT_EQ(incomplete_tail("\xF0\x9F\x98"), 3U);
}

// SES-34
TEST(Utf8, TrimsWhatJavaScriptTrims) {
  EXPECT_EQ(trim(" \t\n\v\f\r\xC2\xA0\xEF\xBB\xBF\xE2\x80\xA8 a b\xE3\x80\x80\xE2\x80\xA9"), "a b");
  EXPECT_EQ(trim_end(" a \xC2\xA0"), " a");
  EXPECT_EQ(trim("\xC2\x85x"), "\xC2\x85x") << "U+0085 is no white space to JavaScript";
  EXPECT_EQ(trim("\xE2\x80\x8B"), "\xE2\x80\x8B") << "nor is U+200B";
  EXPECT_TRUE(is_blank(""));
  EXPECT_TRUE(is_blank(" \r\n\xE2\x80\x83"));
  EXPECT_FALSE(is_blank(" \xFF "));
}

}  // namespace
}  // namespace tau::utf8
