// Plays one golden case (tests/fixtures/agent/<case>.script.json) on the real loop and the real Agent and returns what
// happened, in the log form of that folder's README.md.
#pragma once

#include <vector>

#include "base/json.h"

namespace tau::test {

std::vector<json::value> play_script(const json::object& script);

/// Both sides of a comparison: timestamps are 0, usages are "<usage>", texts that may be worded freely are replaced by
/// their {{MARK}}.
json::value normalized(json::value line);

}  // namespace tau::test
