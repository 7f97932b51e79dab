// The hash by which pi shortens ids that an API would refuse; shared files and caches depend on its exact value.
#pragma once

#include <string>
#include <string_view>

namespace tau::ai {

/// AI-45. `text` is WTF-8; the hash runs over its UTF-16 code units. The result is at most 14 characters of base 36.
std::string short_hash(std::string_view text);

}  // namespace tau::ai
