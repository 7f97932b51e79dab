// Text in addresses and forms (RFC 3986).
#pragma once

#include <string>
#include <string_view>

namespace tau {

/// Every byte but letters, digits and "-_.~" as %XX. `keep`: further bytes that stay as they are.
std::string percent_encode(std::string_view text, std::string_view keep = {});

}  // namespace tau
