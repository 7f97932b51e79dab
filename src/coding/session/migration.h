// Session files of versions 1 and 2 (SES-40 to SES-44).
#pragma once

#include <vector>

#include "base/json.h"

namespace tau::coding {

/// The version of a header: a missing one is 1, the text "2" counts as 2 (SES-21).
double session_version(const json::object& header);

inline constexpr int kSessionVersion = 3;

/// Brings header and records to version 3. `records`: everything behind the header, in file order, values that are no
/// objects included.
void migrate_session(json::object& header, std::vector<json::value>& records);

}  // namespace tau::coding
