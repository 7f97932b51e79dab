#pragma once

#include <string_view>

namespace tau::ai {

/// The text of data/<provider>.json, or nothing. Part of the program; costs nothing until it is read.
std::string_view catalog_data(std::string_view provider);

}  // namespace tau::ai
