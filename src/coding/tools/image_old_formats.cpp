#include <algorithm>
#include <array>
#include <cstdlib>

#include "coding/tools/image_codec.h"

namespace tau::coding {

namespace {

/// Bytes by position; what lies behind the end is 0.
class Bytes {
 public:
  explicit Bytes(std::string_view text) : text_(text) {}
  std::size_t size() const { return text_.size(); }
  std::uint32_t u8(std::size_t at) const { return at < text_.size() ? static_cast<unsigned char>(text_[at]) : 0U; }
  std::uint32_t u16(std::size_t at) const { return u8(at) | u8(at + 1) << 8; }
  std::uint32_t u32(std::size_t at) const { return u16(at) | u16(at + 2) << 16; }

 private:
  std::string_view text_;
};

struct Size {
  std::int64_t width, height;
};

std::optional<Bitmap> blank(Size size) {
  if (size.width < 1 || size.height < 1 || size.width > kMostPixels / size.height) return std::nullopt;
  Bitmap bitmap{static_cast<int>(size.width), static_cast<int>(size.height), {}};
  bitmap.rgba.resize(static_cast<std::size_t>(size.width * size.height) * 4);
  return bitmap;
}

std::uint8_t* pixel(Bitmap& bitmap, std::size_t x, std::size_t y) {
  return bitmap.rgba.data() + (y * static_cast<std::size_t>(bitmap.width) + x) * 4;
}

// ---- GIF -----------------------------------------------------------------------------------------------------------

constexpr std::size_t kMostCodes = 4096;

/// The data of a picture: codes of growing width in blocks of up to 255 bytes.
class GifCodes {
 public:
  GifCodes(const Bytes& bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  std::optional<std::uint32_t> next(unsigned width) {
    while (held_ < width) {
      if (left_ == 0) {
        left_ = bytes_.u8(at_++);
        if (left_ == 0) return std::nullopt;
      }
      if (at_ >= bytes_.size()) return std::nullopt;
      bits_ |= bytes_.u8(at_++) << held_;
      held_ += 8;
      --left_;
    }
    const std::uint32_t code = bits_ & ((1U << width) - 1U);
    bits_ >>= width;
    held_ -= width;
    return code;
  }

 private:
  const Bytes& bytes_;
  std::size_t at_;
  std::uint32_t left_ = 0;  // bytes of the block
  std::uint32_t bits_ = 0;
  unsigned held_ = 0;
};

/// Colour numbers of `count` pixels, or as many as there are.
std::vector<std::uint8_t> unpack_gif(const Bytes& bytes, std::size_t at, std::size_t count) {
  const std::uint32_t root = bytes.u8(at);
  if (root < 1 || root > 11) return {};
  GifCodes codes(bytes, at + 1);
  const std::uint32_t clear = 1U << root;
  std::array<std::uint16_t, kMostCodes> prefix{};
  std::array<std::uint8_t, kMostCodes> suffix{};
  for (std::uint32_t i = 0; i < clear; ++i)
    suffix[i] = static_cast<std::uint8_t>(i);
  std::vector<std::uint8_t> out;
  out.reserve(count);
  std::array<std::uint8_t, kMostCodes + 1> word{};
  std::uint32_t used = clear + 2;
  unsigned width = root + 1;
  std::optional<std::uint32_t> previous;
  std::uint8_t first = 0;
  while (out.size() < count) {
    const auto code = codes.next(width);
    if (!code || *code == clear + 1) break;
    if (*code == clear) {
      used = clear + 2;
      width = root + 1;
      previous.reset();
      continue;
    }
    if (*code > used || (*code == used && !previous) || (!previous && *code >= clear)) break;
    // Words are stored from their end; one that is not complete yet is the previous one with its own first pixel.
    std::size_t length = 0;
    std::uint32_t at_code = *code;
    if (*code == used) {
      word[length++] = first;
      at_code = *previous;
    }
    while (at_code >= clear + 2 && length < kMostCodes) {
      word[length++] = suffix[at_code];
      at_code = prefix[at_code];
    }
    word[length++] = suffix[at_code];
    first = word[length - 1];
    while (length > 0 && out.size() < count)
      out.push_back(word[--length]);
    if (previous && used < kMostCodes) {
      prefix[used] = static_cast<std::uint16_t>(*previous);
      suffix[used] = first;
      if (++used == (1U << width) && width < 12) ++width;
    }
    previous = code;
  }
  return out;
}

std::size_t skip_blocks(const Bytes& bytes, std::size_t at) {
  while (at < bytes.size() && bytes.u8(at) != 0)
    at += bytes.u8(at) + 1;
  return at + 1;
}

std::size_t table_size(std::uint32_t flags) {
  return (flags & 0x80U) != 0 ? std::size_t{3} << ((flags & 7U) + 1) : 0;
}

}  // namespace

std::optional<Bitmap> decode_gif(std::string_view text) {
  const Bytes bytes(text);
  auto bitmap = blank({bytes.u16(6), bytes.u16(8)});
  if (!bitmap) return std::nullopt;
  std::size_t colours = 13;
  std::size_t at = colours + table_size(bytes.u8(10));
  std::optional<std::uint32_t> transparent;
  while (at < bytes.size() && bytes.u8(at) == '!') {  // extensions
    if (bytes.u8(at + 1) == 0xF9 && (bytes.u8(at + 3) & 1U) != 0) transparent = bytes.u8(at + 6);
    at = skip_blocks(bytes, at + 2);
  }
  if (bytes.u8(at) != ',') return std::nullopt;
  const std::size_t left = bytes.u16(at + 1);
  const std::size_t top = bytes.u16(at + 3);
  const std::size_t width = bytes.u16(at + 5);
  const std::size_t height = bytes.u16(at + 7);
  const std::uint32_t flags = bytes.u8(at + 9);
  at += 10;
  if ((flags & 0x80U) != 0) colours = at;
  at += table_size(flags);
  if (width == 0 || height == 0 || width * height > static_cast<std::size_t>(kMostPixels)) return std::nullopt;
  const std::vector<std::uint8_t> numbers = unpack_gif(bytes, at, width * height);
  if (numbers.empty()) return std::nullopt;

  std::vector<std::size_t> rows;  // in the order in which they are stored
  if ((flags & 0x40U) != 0) {     // interlaced
    for (const auto& [begin, step] : {std::pair<std::size_t, std::size_t>{0, 8}, {4, 8}, {2, 4}, {1, 2}}) {
      for (std::size_t y = begin; y < height; y += step)
        rows.push_back(y);
    }
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t x = left + i % width;
    const std::size_t y = top + (rows.empty() ? i / width : rows[i / width]);
    const std::uint32_t number = numbers[i];
    if (x >= static_cast<std::size_t>(bitmap->width) || y >= static_cast<std::size_t>(bitmap->height)) continue;
    if (transparent == number) continue;
    std::uint8_t* to = pixel(*bitmap, x, y);
    for (std::size_t c = 0; c < 3; ++c)
      to[c] = static_cast<std::uint8_t>(bytes.u8(colours + std::size_t{3} * number + c));
    to[3] = 255;
  }
  return bitmap;
}

// ---- BMP -----------------------------------------------------------------------------------------------------------

std::optional<Bitmap> decode_bmp(std::string_view text) {
  constexpr std::uint32_t kPlain = 0;
  constexpr std::uint32_t kMasks = 3;  // as the common masks: RGB in the usual places
  const Bytes bytes(text);
  const std::uint32_t header = bytes.u32(14);
  const auto signed_height = static_cast<std::int32_t>(bytes.u32(22));
  const std::uint32_t bits = bytes.u16(28);
  const std::uint32_t packing = bytes.u32(30);
  if (header < 40 || (packing != kPlain && packing != kMasks)) return std::nullopt;
  auto bitmap = blank({static_cast<std::int32_t>(bytes.u32(18)), std::abs(std::int64_t{signed_height})});
  if (!bitmap) return std::nullopt;
  const auto width = static_cast<std::size_t>(bitmap->width);
  const auto height = static_cast<std::size_t>(bitmap->height);
  const std::size_t stride = (width * bits + 31) / 32 * 4;
  const std::size_t begin = bytes.u32(10);
  const std::size_t needed = stride * (height - 1) + (width * bits + 7) / 8;  // the last row may lack its padding
  if (begin > bytes.size() || needed > bytes.size() - begin) return std::nullopt;
  const std::size_t palette = 14 + std::size_t{header};
  bool any_alpha = false;
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t row = begin + (signed_height > 0 ? height - 1 - y : y) * stride;
    for (std::size_t x = 0; x < width; ++x) {
      std::uint8_t* to = pixel(*bitmap, x, y);
      std::size_t at = row + x * bits / 8;
      if (bits == 16) {
        const std::uint32_t v = bytes.u16(at);
        const bool green6 = packing == kMasks && bytes.u32(58) == 0x07E0;
        const std::uint32_t red = green6 ? v >> 11 : v >> 10 & 31U;
        const std::uint32_t green = green6 ? v >> 5 & 63U : v >> 5 & 31U;
        to[0] = static_cast<std::uint8_t>(red * 255 / 31);
        to[1] = static_cast<std::uint8_t>(green * 255 / (green6 ? 63 : 31));
        to[2] = static_cast<std::uint8_t>((v & 31U) * 255 / 31);
        to[3] = 255;
        continue;
      }
      if (bits < 16) {
        const std::uint32_t shift = 8 - bits - static_cast<std::uint32_t>(x * bits % 8);
        at = palette + std::size_t{4} * (bytes.u8(at) >> shift & ((1U << bits) - 1U));
      }
      for (std::size_t c = 0; c < 3; ++c)
        to[c] = static_cast<std::uint8_t>(bytes.u8(at + 2 - c));
      to[3] = bits == 32 ? static_cast<std::uint8_t>(bytes.u8(at + 3)) : 255;
      any_alpha = any_alpha || to[3] != 0;
    }
  }
  // Most writers leave the fourth byte of a pixel 0 and mean a picture that can be seen.
  for (std::size_t i = 3; !any_alpha && i < bitmap->rgba.size(); i += 4)
    bitmap->rgba[i] = 255;
  return bitmap;
}

}  // namespace tau::coding
