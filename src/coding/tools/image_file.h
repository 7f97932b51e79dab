// Images for models: recognised by what is in the file, not by its name (CA-23, FF-72), and brought below the limits,
// so that one large picture does not make every further request fail (CA-35, CA-36, FF-11).
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

struct PreparedImage {
  std::string bytes;
  std::string mime_type;           // image/png, image/jpeg, image/gif or image/webp
  std::vector<std::string> notes;  // for the model, each in brackets: what was done to it
};

/// The image as it can be sent. With `resize` one that is too large is scaled down until it fits; an image that fits is
/// left as it is, byte for byte. BMP becomes PNG. The error is the reason why it cannot be sent. Slow for large images:
/// see base/blocking.h.
std::expected<PreparedImage, std::string> prepare_image(std::string bytes, bool resize);

}  // namespace tau::coding
