#pragma once

#include <string>
#include <string_view>

namespace tau {

/// Standard alphabet, with padding.
std::string base64_encode(std::string_view bytes);

}  // namespace tau
