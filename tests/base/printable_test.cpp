#include "base/printable.h"

#include <gtest/gtest.h>

namespace tau {
namespace {

TEST(Printable, EscapeSequencesVanishWhole) {  // FF-107
  EXPECT_EQ(printable("a\x1b[31mred\x1b[0mb"), "aredb");
  EXPECT_EQ(printable("t\x1b]0;title\x07x"), "tx");
  EXPECT_EQ(printable("t\x1b]8;;http://x\x1b\\link"), "tlink");
  EXPECT_EQ(printable("a\x1b[2J\x1b(Bb"), "ab");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31mb"),
            "ab");
  EXPECT_EQ(printable("cut\x1b["), "cut");
  EXPECT_EQ(printable("cut\x1b]0;never ends"), "cut");
}

TEST(Printable, ControlCharactersVanishAndLinesStay) {
  EXPECT_EQ(printable(std::string("a\0b\rc\x7f\x08"
                                  "d\n\te",
                                  11)),
            "abcd\n\te");
  EXPECT_EQ(printable_line("a\nb\tc"), "a b c");
}

TEST(Printable, ResultIsValidUtf8) {
  EXPECT_EQ(printable("\xff\xed\xa0\xbdok\xc3\xa9"), "\xef\xbf\xbd\xef\xbf\xbdok\xc3\xa9");
}

}  // namespace
}  // namespace tau
