#pragma once

#include "coding/tools/tool_environment.h"

namespace tau::coding {

/// write: creates or replaces a file as a whole, atomically, with the mode of the one it replaces (CA-28).
BuiltinTool make_write_tool(ToolEnvironment environment);

}  // namespace tau::coding
