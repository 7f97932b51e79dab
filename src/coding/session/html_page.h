// The texts of the exported page around its data: see html_export.h.
#pragma once

#include <string_view>

namespace tau::coding {

std::string_view html_style();
std::string_view html_script();

}  // namespace tau::coding
