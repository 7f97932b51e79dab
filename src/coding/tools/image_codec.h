// Pictures as pixels: reading and writing the formats that models take (CA-35, CA-36).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tau::coding {

struct Bitmap {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgba;  // four bytes a pixel, rows from the top, colours not multiplied by alpha
};

/// More pixels than this are not decoded: four bytes each, and twice that while scaling.
inline constexpr std::int64_t kMostPixels = 80'000'000;

/// Of PNG, JPEG, GIF (its first picture), BMP and WebP, the right way up: the orientation that a camera wrote into a
/// JPEG is applied. Nothing when the file is damaged or has too many pixels.
std::optional<Bitmap> decode_image(std::string_view bytes, std::string_view mime_type);

/// The two old formats, read here: no library for them is as well kept as those of the others.
std::optional<Bitmap> decode_gif(std::string_view bytes);  // the first picture; the rest of the canvas is transparent
std::optional<Bitmap> decode_bmp(std::string_view bytes);  // 1, 4, 8, 16, 24 and 32 bits, not compressed

/// Empty when it fails.
std::string encode_png(const Bitmap& bitmap);
/// Transparent parts become white. `quality` is 1 to 100.
std::string encode_jpeg(const Bitmap& bitmap, int quality);

/// To another size, with a Lanczos filter of three lobes.
Bitmap scale(const Bitmap& bitmap, int width, int height);

}  // namespace tau::coding
