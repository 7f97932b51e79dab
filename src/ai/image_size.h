// How large a stored image is, without decoding it.
//
// Providers refuse a whole request for one image beyond their limits, and a session that holds such an image would be
// refused for ever (FF-11). An encoder asks here before it sends one. Only the few header bytes that are needed are
// looked at, straight in the base64 text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tau::ai {

struct ImageSize {
  std::uint32_t width = 0;  // pixels
  std::uint32_t height = 0;
};

/// Of a PNG, GIF, WebP or JPEG; nothing for other formats and for headers that make no sense.
std::optional<ImageSize> image_size(std::string_view base64);

}  // namespace tau::ai
