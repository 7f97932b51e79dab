#pragma once

#include <string>
#include <string_view>

namespace tau {

/// "/srv/url dir" for "file:///srv/url%20dir"; any other text as it is.
std::string path_from_file_url(std::string_view text);

}  // namespace tau
