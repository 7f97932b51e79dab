// The built-in script of the scripted provider: a tour of the current folder with real tools.
#pragma once

#include <string_view>

namespace tau::coding {

/// A script (docs/scripted.md) for the tools bash and read.
extern const std::string_view kTourScript;

}  // namespace tau::coding
