#include "ai/short_hash.h"

#include <charconv>
#include <cstdint>

#include "base/utf8.h"

namespace tau::ai {

namespace {

void append_base36(std::string& out, std::uint32_t number) {
  char digits[8];
  const auto [end, ec] = std::to_chars(digits, digits + sizeof digits, number, 36);
  out.append(digits, end);
}

}  // namespace

std::string short_hash(std::string_view text) {
  constexpr std::uint32_t kFirst = 2246822507;
  constexpr std::uint32_t kSecond = 3266489909;
  std::uint32_t h1 = 0xdeadbeef;
  std::uint32_t h2 = 0x41c6ce57;
  const auto mix = [&](std::uint32_t unit) {
    h1 = (h1 ^ unit) * 2654435761U;  // unsigned: a signed product would overflow
    h2 = (h2 ^ unit) * 1597334677U;
  };
  while (!text.empty()) {
    const utf8::Decoded d = utf8::decode(text);
    text.remove_prefix(d.length);
    if (d.code_point >= 0x10000) {
      mix(0xD800 + ((d.code_point - 0x10000) >> 10));
      mix(0xDC00 + ((d.code_point - 0x10000) & 0x3FF));
    } else {
      mix(d.code_point);
    }
  }
  h1 = ((h1 ^ (h1 >> 16)) * kFirst) ^ ((h2 ^ (h2 >> 13)) * kSecond);
  h2 = ((h2 ^ (h2 >> 16)) * kFirst) ^ ((h1 ^ (h1 >> 13)) * kSecond);
  std::string out;
  append_base36(out, h2);
  append_base36(out, h1);
  return out;
}

}  // namespace tau::ai
