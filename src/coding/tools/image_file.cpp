#include "coding/tools/image_file.h"

#include <cstdint>
#include <cstring>

#include <fmt/format.h>

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
  if (!b.starts_with("\x89PNG\r\n\x1a\n") || big32(b, 8) != 13 || b.substr(12, 4) != "IHDR") return std::nullopt;
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
  if (!b.starts_with("RIFF") || b.substr(8, 4) != "WEBP") return std::nullopt;
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

std::optional<std::string> image_refusal(const ImageInfo& image, std::size_t bytes) {
  if (image.mime_type == "image/bmp") return "BMP is not a format that models take";
  if (image.mime_type == "image/png" && bytes < 45) return "the file is damaged";
  if (image.width > kImageMaxSide || image.height > kImageMaxSide) {
    return fmt::format("{}x{} pixels are more than {} on a side", image.width, image.height, kImageMaxSide);
  }
  if ((bytes + 2) / 3 * 4 >= kImageMaxBase64) return "the file is too large to be sent";
  return std::nullopt;
}

}  // namespace tau::coding
