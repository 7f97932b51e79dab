#include "coding/tools/image_codec.h"

#include <jpeglib.h>
#include <png.h>
#include <webp/decode.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace tau::coding {

namespace {

const std::uint8_t* raw(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());  // NOLINT: the libraries take unsigned bytes
}

std::size_t area(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

constexpr png_uint_32 kLongestSide = 1U << 30;

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

std::optional<Bitmap> decode_png(std::string_view bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) return std::nullopt;
  const std::unique_ptr<png_image, decltype(&png_image_free)> owner(&image, &png_image_free);
  image.format = PNG_FORMAT_RGBA;
  if (image.width > kLongestSide || image.height > kLongestSide) return std::nullopt;
  Bitmap bitmap{static_cast<int>(image.width), static_cast<int>(image.height), {}};
  if (!fits(bitmap.width, bitmap.height)) return std::nullopt;
  bitmap.rgba.resize(area(bitmap.width, bitmap.height) * 4);
  if (png_image_finish_read(&image, nullptr, bitmap.rgba.data(), bitmap.width * 4, nullptr) == 0) return std::nullopt;
  return bitmap;
}

/// libjpeg reports errors by a call that must not return. Only plain values live across the jump.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf out;
};

void leave(j_common_ptr info) {
  std::longjmp(reinterpret_cast<JpegErrors*>(info->err)->out, 1);  // NOLINT: the manager is its first member
}

void stay_silent(j_common_ptr, int) {}

void install(JpegErrors& errors, jpeg_error_mgr*& slot) {
  slot = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = &leave;
  errors.manager.emit_message = &stay_silent;
}

bool read_jpeg_size(jpeg_decompress_struct& info, JpegErrors& errors, std::string_view bytes) {
  if (setjmp(errors.out) != 0) return false;
  jpeg_mem_src(&info, raw(bytes), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_EXT_RGBA;
  jpeg_calc_output_dimensions(&info);
  return true;
}

bool read_jpeg_rows(jpeg_decompress_struct& info, JpegErrors& errors, std::uint8_t* rgba) {
  if (setjmp(errors.out) != 0) return false;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = rgba + std::size_t{info.output_scanline} * info.output_width * 4;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

std::optional<Bitmap> decode_jpeg(std::string_view bytes) {
  JpegErrors errors;
  jpeg_decompress_struct info{};
  install(errors, info.err);
  jpeg_create_decompress(&info);
  const std::unique_ptr<jpeg_decompress_struct, decltype(&jpeg_destroy_decompress)> owner(&info,
                                                                                          &jpeg_destroy_decompress);
  if (!read_jpeg_size(info, errors, bytes)) return std::nullopt;
  Bitmap bitmap{static_cast<int>(info.output_width), static_cast<int>(info.output_height), {}};
  if (!fits(bitmap.width, bitmap.height)) return std::nullopt;
  bitmap.rgba.resize(area(bitmap.width, bitmap.height) * 4);
  if (!read_jpeg_rows(info, errors, bitmap.rgba.data())) return std::nullopt;
  return bitmap;
}

bool write_jpeg(jpeg_compress_struct& info, JpegErrors& errors, std::uint8_t* rgb, int quality) {
  if (setjmp(errors.out) != 0) return false;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = rgb + std::size_t{info.next_scanline} * info.image_width * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
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

}  // namespace

std::optional<Bitmap> decode_image(std::string_view bytes, std::string_view mime_type) {
  if (mime_type == "image/webp") return decode_webp(bytes);
  if (mime_type == "image/png") return decode_png(bytes);
  if (mime_type == "image/gif") return decode_gif(bytes);
  if (mime_type == "image/bmp") return decode_bmp(bytes);
  std::optional<Bitmap> bitmap = decode_jpeg(bytes);
  if (bitmap) bitmap = turned_upright(*std::move(bitmap), orientation_of(bytes));
  return bitmap;
}

std::string encode_png(const Bitmap& bitmap) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(bitmap.width);
  image.height = static_cast<png_uint_32>(bitmap.height);
  image.format = PNG_FORMAT_RGBA;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(size, '\0');
  if (png_image_write_to_memory(&image, out.data(), &size, 0, bitmap.rgba.data(), bitmap.width * 4, nullptr) == 0) {
    return {};
  }
  out.resize(size);
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
  JpegErrors errors;
  jpeg_compress_struct info{};
  install(errors, info.err);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(bitmap.width);
  info.image_height = static_cast<JDIMENSION>(bitmap.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  const bool written = write_jpeg(info, errors, rgb.data(), quality);
  std::string out;
  if (written) out.assign(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  jpeg_destroy_compress(&info);
  std::free(bytes);  // NOLINT: allocated by libjpeg
  return out;
}

}  // namespace tau::coding
