#pragma once

#include "coding/tools/tool_environment.h"

namespace tau::coding {

/// ls: the names in a folder (CA-79).
BuiltinTool make_ls_tool(ToolEnvironment environment);

}  // namespace tau::coding
