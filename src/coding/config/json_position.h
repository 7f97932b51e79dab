// Where a value stands in a JSON text: for messages about configuration files, long after it was parsed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tau::coding {

/// A member's name or an array's index.
using JsonStep = std::variant<std::string, std::size_t>;

/// The line (from 1) on which the value at `path` begins; the line of the last step that exists when it is missing. The
/// text must have been parsed before, with `//` comments and trailing commas or without.
std::size_t line_of(std::string_view text, const std::vector<JsonStep>& path);

/// "providers.brook.models[0].id"
std::string to_text(const std::vector<JsonStep>& path);

}  // namespace tau::coding
