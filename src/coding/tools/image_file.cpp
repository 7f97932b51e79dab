#include "coding/tools/image_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "coding/tools/image_codec.h"

namespace tau::coding {

namespace {

std::uint32_t at(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
}
std::uint32_t big16(std::string_view b, std::size_t i) {
  return at(b, i) << 8 | at(b, i + 1);
}
std::uint32_t big32(std::string_view b, std::size_t i) {
  return big16(b, i) << 16 | big16(b, i + 2);
}
std::uint32_t little16(std::string_view b, std::size_t i) {
  return at(b, i) | at(b, i + 1) << 8;
}
std::uint32_t little24(std::string_view b, std::size_t i) {
  return little16(b, i) | at(b, i + 2) << 16;
}
std::uint32_t little32(std::string_view b, std::size_t i) {
  return little16(b, i) | little16(b, i + 2) << 16;
}

ImageInfo info(const char* mime, std::uint32_t width, std::uint32_t height) {
  return {mime, static_cast<int>(width), static_cast<int>(height)};
}

std::optional<ImageInfo> png(std::string_view b) {
  if (b.size() < 16 || !b.starts_with("\x89PNG\r\n\x1a\n") || big32(b, 8) != 13 || b.substr(12, 4) != "IHDR")
    return std::nullopt;
  // An animation control chunk before the image data: an animated PNG, which no model takes.
  for (std::size_t chunk = 8; chunk + 8 <= b.size();) {
    const std::string_view type = b.substr(chunk + 4, 4);
    if (type == "acTL") return std::nullopt;
    if (type == "IDAT") break;
    chunk += std::size_t{12} + big32(b, chunk);
  }
  return info("image/png", big32(b, 16), big32(b, 20));
}

std::optional<ImageInfo> jpeg(std::string_view b) {
  if (!b.starts_with("\xff\xd8\xff") || at(b, 3) == 0xF7) return std::nullopt;
  for (std::size_t i = 2; i + 9 < b.size() && at(b, i) == 0xFF;) {
    const std::uint32_t marker = at(b, i + 1);
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame) return info("image/jpeg", big16(b, i + 7), big16(b, i + 5));
    i += std::size_t{2} + big16(b, i + 2);
  }
  return info("image/jpeg", 0, 0);
}

std::optional<ImageInfo> webp(std::string_view b) {
  if (b.size() < 16 || !b.starts_with("RIFF") || b.substr(8, 4) != "WEBP") return std::nullopt;
  const std::string_view kind = b.substr(12, 4);
  if (kind == "VP8X") return info("image/webp", little24(b, 24) + 1, little24(b, 27) + 1);
  if (kind == "VP8L") {
    const std::uint32_t bits = little32(b, 21);
    return info("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1);
  }
  return info("image/webp", little16(b, 26) & 0x3FFF, little16(b, 28) & 0x3FFF);
}

std::optional<ImageInfo> bmp(std::string_view b) {
  if (!b.starts_with("BM") || b.size() < 30) return std::nullopt;
  const std::uint32_t bits = little16(b, 28);
  const bool sane =
      little16(b, 26) == 1 && (bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32);
  return sane ? std::optional(info("image/bmp", little32(b, 18), little32(b, 22))) : std::nullopt;
}

// ---- bringing below the limits -----------------------------------------------------------------------------------

/// Nothing shorter holds a picture.
constexpr std::size_t kSmallestImage = 26;

bool fits(std::size_t bytes) {
  return (bytes + 2) / 3 * 4 < kImageMaxBase64;
}

struct Shrunk {
  std::string bytes;
  const char* mime_type;
  int width;
  int height;
};

/// The first encoding that is small enough, at the largest size that allows one (CA-36).
std::optional<Shrunk> shrink(const Bitmap& original) {
  const double ratio = std::min(
      {1.0, static_cast<double>(kImageMaxSide) / original.width, static_cast<double>(kImageMaxSide) / original.height});
  int width = std::max(1, static_cast<int>(std::lround(original.width * ratio)));
  int height = std::max(1, static_cast<int>(std::lround(original.height * ratio)));
  while (true) {
    const bool same = width == original.width && height == original.height;
    const Bitmap scaled = same ? Bitmap{} : scale(original, width, height);
    const Bitmap& bitmap = same ? original : scaled;
    std::string bytes = encode_png(bitmap);
    if (!bytes.empty() && fits(bytes.size())) return Shrunk{std::move(bytes), "image/png", width, height};
    for (const int quality : {80, 85, 70, 55, 40}) {
      bytes = encode_jpeg(bitmap, quality);
      if (!bytes.empty() && fits(bytes.size())) return Shrunk{std::move(bytes), "image/jpeg", width, height};
    }
    if (width == 1 && height == 1) return std::nullopt;
    width = std::max(1, width * 3 / 4);
    height = std::max(1, height * 3 / 4);
  }
}

}  // namespace

std::optional<ImageInfo> image_info(std::string_view bytes) {
  if (auto found = png(bytes)) return found;
  if (auto found = jpeg(bytes)) return found;
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) {
    return info("image/gif", little16(bytes, 6), little16(bytes, 8));
  }
  if (auto found = webp(bytes)) return found;
  return bmp(bytes);
}

std::expected<PreparedImage, std::string> prepare_image(std::string bytes, bool resize) {
  const ImageInfo info = image_info(bytes).value_or(ImageInfo{});
  const bool takes_format = !info.mime_type.empty() && info.mime_type != "image/bmp";
  const bool sane = info.width > 0 && info.height > 0 && bytes.size() >= kSmallestImage;
  const bool small = info.width <= kImageMaxSide && info.height <= kImageMaxSide && fits(bytes.size());
  if (takes_format && sane && (small || !resize)) return PreparedImage{std::move(bytes), info.mime_type, {}};

  if (std::int64_t{info.width} * std::abs(std::int64_t{info.height}) > kMostPixels) {
    return std::unexpected(
        fmt::format("{}x{} pixels are too many to be scaled down", info.width, std::abs(info.height)));
  }
  const std::optional<Bitmap> original = decode_image(bytes, info.mime_type);
  if (!original) return std::unexpected("the file is damaged");
  auto shrunk = shrink(*original);
  if (!shrunk) return std::unexpected("it could not be made small enough to be sent");
  PreparedImage image{std::move(shrunk->bytes), shrunk->mime_type, {}};
  if (!takes_format) {
    image.notes.push_back(fmt::format("[Image converted from {} to {}.]", info.mime_type, image.mime_type));
  }
  if (shrunk->width != original->width || shrunk->height != original->height) {
    image.notes.push_back(
        fmt::format("[Image scaled down: original {}x{}, shown {}x{}. Multiply coordinates by {:.2f} to get those of "
                    "the original.]",
                    original->width, original->height, shrunk->width, shrunk->height,
                    static_cast<double>(original->width) / shrunk->width));
  }
  return image;
}

}  // namespace tau::coding
