#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tau {

/// Standard alphabet, with padding.
std::string base64_encode(std::string_view bytes);

/// The bytes of a base64 text with padding; nothing when it is none.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace tau
