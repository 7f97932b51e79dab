// Recognising images by what is in the file, not by its name (CA-23, FF-72).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tau::coding {

struct ImageInfo {
  std::string mime_type;  // image/png, image/jpeg, image/gif, image/webp or image/bmp
  int width = 0;          // 0 when the header does not say
  int height = 0;
};

/// From the first bytes of a file (4100 are enough for the type; the size of a JPEG may stand further back).
std::optional<ImageInfo> image_info(std::string_view bytes);

/// Largest side in pixels, and largest base64 text in bytes, that is sent to a model (CA-36, FF-11).
inline constexpr int kImageMaxSide = 2000;
inline constexpr std::size_t kImageMaxBase64 = 4718592;

/// Why the image cannot be sent as it is; nothing when it can.
std::optional<std::string> image_refusal(const ImageInfo& info, std::size_t bytes);

}  // namespace tau::coding
