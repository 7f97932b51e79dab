// The schema of models.json (CA-171, CA-172, CA-342), as a walk that collects every violation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tau::coding {

/// One line for each violation: "providers.brook.models[0].id: expected a text that is not empty (line 7)". `text` is
/// what `file` was parsed from.
std::vector<std::string> models_file_violations(const json::value& file, std::string_view text);

}  // namespace tau::coding
