#pragma once

#include "coding/tools/tool_environment.h"

namespace tau::coding {

/// bash: runs a command in the session's folder (CA-60 to CA-70).
BuiltinTool make_bash_tool(ToolEnvironment environment);

/// The shell that commands run in: `shell_path`, else /bin/bash, else bash or sh on PATH (CA-61). Throws ToolFailure
/// when the configured one does not exist.
std::string command_shell(const std::optional<std::string>& shell_path);

}  // namespace tau::coding
