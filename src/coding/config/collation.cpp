#include "coding/config/collation.h"

#include "base/utf8.h"

namespace tau::coding {

namespace {

/// Blanks, then punctuation in ICU's order; digits and letters follow.
constexpr std::string_view kPunctuation = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

unsigned weight(char32_t c) {
  if (c >= U'0' && c <= U'9') return 100 + (c - U'0');
  if (c >= U'a' && c <= U'z') return 200 + (c - U'a');
  if (c >= U'A' && c <= U'Z') return 200 + (c - U'A');
  if (c >= 0x80) return 1000 + c;
  const std::size_t at = kPunctuation.find(static_cast<char>(c));
  return at == std::string_view::npos ? 0 : static_cast<unsigned>(at + 1);
}

char32_t take(std::string_view& text) {
  const auto c = utf8::decode(text);
  text.remove_prefix(c.length);
  return c.code_point;
}

}  // namespace

int collate(std::string_view a, std::string_view b) {
  int tie = 0;
  while (!a.empty() && !b.empty()) {
    const char32_t x = take(a);
    const char32_t y = take(b);
    if (weight(x) != weight(y)) return weight(x) < weight(y) ? -1 : 1;
    if (tie == 0 && x != y) tie = x > y ? -1 : 1;  // equal weights: a lower-case letter comes before its capital
  }
  if (a.empty() != b.empty()) return a.empty() ? -1 : 1;
  return tie;
}

}  // namespace tau::coding
