// The order in which people expect model ids, close enough to the root collation of ICU, which pi sorts with (CA-340):
// letters after digits after punctuation, case only as a tie-break.
#pragma once

#include <string_view>

namespace tau::coding {

/// Below, equal to or above zero. Characters beyond ASCII follow the letters, by code point.
int collate(std::string_view a, std::string_view b);

}  // namespace tau::coding
