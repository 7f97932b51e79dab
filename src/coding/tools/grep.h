#pragma once

#include "coding/tools/tool_environment.h"

namespace tau::coding {

/// grep: lines of files by a pattern, with ripgrep (CA-75 to CA-77, FF-74).
BuiltinTool make_grep_tool(ToolEnvironment environment);

}  // namespace tau::coding
