#include "ai/image_size.h"

#include <array>
#include <cstddef>

namespace tau::ai {

namespace {

constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  return digits;
}

constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

/// Bytes of a base64 text, at any place. Beyond its end, and where the text is no base64, they read as 0 and `failed`
/// says so.
class Bytes {
 public:
  explicit Bytes(std::string_view base64) : text_(base64) {}

  std::uint32_t at(std::size_t index) {
    // Byte i is the bits 8i to 8i+7 of the text, six bits a digit.
    const std::size_t first = index / 3 * 4 + index % 3;
    const unsigned shift = static_cast<unsigned>(index % 3) * 2;
    const unsigned pair = digit(first) << 6 | digit(first + 1);
    return pair >> (4 - shift) & 0xFF;
  }

  std::uint32_t big_endian(std::size_t index, int bytes) {
    std::uint32_t number = 0;
    for (int i = 0; i < bytes; ++i)
      number = number << 8 | at(index + static_cast<std::size_t>(i));
    return number;
  }

  std::uint32_t little_endian(std::size_t index, int bytes) {
    std::uint32_t number = 0;
    for (int i = bytes - 1; i >= 0; --i)
      number = number << 8 | at(index + static_cast<std::size_t>(i));
    return number;
  }

  bool has(std::size_t index, std::string_view expected) {
    for (const char c : expected) {
      if (at(index++) != static_cast<unsigned char>(c)) return false;
    }
    return !failed_;
  }

  bool failed() const { return failed_; }

 private:
  unsigned digit(std::size_t index) {
    const std::uint8_t value = index < text_.size() ? kDigits[static_cast<unsigned char>(text_[index])] : kNoDigit;
    if (value != kNoDigit) return value;
    failed_ = true;
    return 0;
  }

  std::string_view text_;
  bool failed_ = false;
};

ImageSize webp_size(Bytes& bytes) {
  if (bytes.has(12, "VP8X")) return {bytes.little_endian(24, 3) + 1, bytes.little_endian(27, 3) + 1};
  if (bytes.has(12, "VP8L")) {
    const std::uint32_t packed = bytes.little_endian(21, 4);
    return {(packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1};
  }
  if (bytes.has(12, "VP8 ")) return {bytes.little_endian(26, 2) & 0x3FFF, bytes.little_endian(28, 2) & 0x3FFF};
  return {};
}

/// Walks over the segments to the first start of frame.
ImageSize jpeg_size(Bytes& bytes) {
  std::size_t at = 2;
  while (!bytes.failed()) {
    if (bytes.at(at) != 0xFF) return {};
    const std::uint32_t marker = bytes.at(at + 1);
    if (marker == 0xFF) {  // padding
      ++at;
      continue;
    }
    const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame) return {bytes.big_endian(at + 7, 2), bytes.big_endian(at + 5, 2)};
    const bool is_alone = marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
    if (marker == 0xD9 || marker == 0xDA) return {};
    const std::uint32_t length = is_alone ? 0 : bytes.big_endian(at + 2, 2);
    if (!is_alone && length < 2) return {};
    at += 2 + length;
  }
  return {};
}

}  // namespace

std::optional<ImageSize> image_size(std::string_view base64) {
  Bytes bytes(base64);
  ImageSize size;
  if (bytes.has(0, "\x89PNG\r\n\x1A\n") && bytes.has(12, "IHDR")) {
    size = {bytes.big_endian(16, 4), bytes.big_endian(20, 4)};
  } else if (bytes.has(0, "GIF87a") || bytes.has(0, "GIF89a")) {
    size = {bytes.little_endian(6, 2), bytes.little_endian(8, 2)};
  } else if (bytes.has(0, "RIFF") && bytes.has(8, "WEBP")) {
    size = webp_size(bytes);
  } else if (bytes.has(0, "\xFF\xD8")) {
    size = jpeg_size(bytes);
  }
  if (bytes.failed() || size.width == 0 || size.height == 0) return std::nullopt;
  return size;
}

}  // namespace tau::ai
