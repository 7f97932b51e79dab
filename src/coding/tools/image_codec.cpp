#include "coding/tools/image_codec.h"

#include <webp/decode.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_NO_STDIO
#define STBI_NO_SIMD
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_GIF
#define STBI_ONLY_BMP
#define STBI_MAX_DIMENSIONS 65535
#include <stb/stb_image.h>

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>

namespace tau::coding {

namespace {

const std::uint8_t* raw(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());  // NOLINT: the libraries take unsigned bytes
}

std::size_t area(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

bool fits(int width, int height) {
  return width > 0 && height > 0 && std::int64_t{width} * height <= kMostPixels;
}

std::optional<Bitmap> decode_webp(std::string_view bytes) {
  Bitmap bitmap;
  if (WebPGetInfo(raw(bytes), bytes.size(), &bitmap.width, &bitmap.height) == 0) return std::nullopt;
  if (!fits(bitmap.width, bitmap.height)) return std::nullopt;
  bitmap.rgba.resize(area(bitmap.width, bitmap.height) * 4);
  if (WebPDecodeRGBAInto(raw(bytes), bytes.size(), bitmap.rgba.data(), bitmap.rgba.size(), bitmap.width * 4) ==
      nullptr) {
    return std::nullopt;
  }
  return bitmap;
}

std::optional<Bitmap> decode_with_stb(std::string_view bytes) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return std::nullopt;
  const int size = static_cast<int>(bytes.size());
  Bitmap bitmap;
  int channels = 0;
  if (stbi_info_from_memory(raw(bytes), size, &bitmap.width, &bitmap.height, &channels) == 0) return std::nullopt;
  if (!fits(bitmap.width, bitmap.height)) return std::nullopt;
  const std::unique_ptr<stbi_uc, decltype(&std::free)> pixels(
      stbi_load_from_memory(raw(bytes), size, &bitmap.width, &bitmap.height, &channels, 4), &std::free);
  if (!pixels) return std::nullopt;
  bitmap.rgba.assign(pixels.get(), pixels.get() + area(bitmap.width, bitmap.height) * 4);
  return bitmap;
}

// ---- EXIF --------------------------------------------------------------------------------------------------------

/// The numbers of a TIFF structure, in its byte order.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), big_(bytes.starts_with("MM")) {}

  std::uint32_t number(std::size_t at, std::size_t size) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t place = big_ ? at + i : at + size - 1 - i;
      value = value << 8 | (place < bytes_.size() ? static_cast<unsigned char>(bytes_[place]) : 0U);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_;
};

/// 1 to 8; 1 is upright.
int orientation_of(std::string_view jpeg) {
  constexpr std::uint32_t kOrientation = 0x0112;
  const auto big16 = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(jpeg[at])) << 8 |
           static_cast<unsigned char>(jpeg[at + 1]);
  };
  for (std::size_t at = 2; at + 4 <= jpeg.size() && jpeg[at] == '\xFF';) {
    const auto marker = static_cast<unsigned char>(jpeg[at + 1]);
    if (marker == 0xDA) return 1;  // the picture itself
    const std::size_t size = big16(at + 2);
    const std::string_view segment = jpeg.substr(at + 4, size < 2 ? 0 : size - 2);
    at += 2 + size;
    if (marker != 0xE1 || !segment.starts_with(std::string_view("Exif\0\0", 6))) continue;
    const std::string_view tiff_bytes = segment.substr(6);
    const Tiff tiff(tiff_bytes);
    const std::size_t directory = tiff.number(4, 4);
    const std::uint32_t entries = tiff.number(directory, 2);
    for (std::uint32_t i = 0; i < entries && directory + 2 + 12 * (i + 1) <= tiff_bytes.size(); ++i) {
      const std::size_t entry = directory + 2 + std::size_t{12} * i;
      if (tiff.number(entry, 2) != kOrientation) continue;
      const std::uint32_t value = tiff.number(entry + 8, 2);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

Bitmap turned_upright(Bitmap from, int orientation) {
  if (orientation == 1) return from;
  const bool swaps_sides = orientation >= 5;
  Bitmap to;
  to.width = swaps_sides ? from.height : from.width;
  to.height = swaps_sides ? from.width : from.height;
  to.rgba.resize(from.rgba.size());
  const bool mirrors_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirrors_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (int y = 0; y < to.height; ++y) {
    for (int x = 0; x < to.width; ++x) {
      int source_x = swaps_sides ? y : x;
      int source_y = swaps_sides ? x : y;
      if (mirrors_x) source_x = from.width - 1 - source_x;
      if (mirrors_y) source_y = from.height - 1 - source_y;
      const std::size_t source = (area(from.width, source_y) + static_cast<std::size_t>(source_x)) * 4;
      const std::size_t target = (area(to.width, y) + static_cast<std::size_t>(x)) * 4;
      std::copy_n(from.rgba.begin() + static_cast<std::ptrdiff_t>(source), 4,
                  to.rgba.begin() + static_cast<std::ptrdiff_t>(target));
    }
  }
  return to;
}

void append_to_string(void* context, void* data, int size) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

}  // namespace

std::optional<Bitmap> decode_image(std::string_view bytes, std::string_view mime_type) {
  if (mime_type == "image/webp") return decode_webp(bytes);
  std::optional<Bitmap> bitmap = decode_with_stb(bytes);
  if (bitmap && mime_type == "image/jpeg") bitmap = turned_upright(*std::move(bitmap), orientation_of(bytes));
  return bitmap;
}

std::string encode_png(const Bitmap& bitmap) {
  std::string out;
  stbi_write_png_to_func(&append_to_string, &out, bitmap.width, bitmap.height, 4, bitmap.rgba.data(), bitmap.width * 4);
  return out;
}

std::string encode_jpeg(const Bitmap& bitmap, int quality) {
  std::vector<std::uint8_t> rgb;
  rgb.reserve(bitmap.rgba.size() / 4 * 3);
  for (std::size_t i = 0; i < bitmap.rgba.size(); i += 4) {
    const unsigned alpha = bitmap.rgba[i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      rgb.push_back(static_cast<std::uint8_t>((bitmap.rgba[i + c] * alpha + 255U * (255U - alpha) + 127U) / 255U));
    }
  }
  std::string out;
  stbi_write_jpg_to_func(&append_to_string, &out, bitmap.width, bitmap.height, 3, rgb.data(), quality);
  return out;
}

}  // namespace tau::coding
