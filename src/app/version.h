#pragma once

#include <string_view>

namespace tau::app {

/// "0.1.0"
std::string_view version();

}  // namespace tau::app
