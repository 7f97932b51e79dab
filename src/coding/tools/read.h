#pragma once

#include "coding/tools/tool_environment.h"

namespace tau::coding {

/// read: lines of a text file, or an image (CA-20 to CA-27). Text is streamed: reading at an offset in a large file
/// holds no more than what is shown.
BuiltinTool make_read_tool(ToolEnvironment environment);

}  // namespace tau::coding
