#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "coding/tools/tool_environment.h"

namespace tau::coding {

/// find: files and folders by name, with fd (CA-78, FF-73).
BuiltinTool make_find_tool(ToolEnvironment environment);

/// How a pattern reaches fd. A pattern with a slash is matched against whole paths, and is therefore put below the
/// search root, so that folders above it never take part (FF-73).
struct FindPattern {
  std::string glob;
  bool full_path = false;
  bool ignore_case = true;  // as fd does it: unless the pattern has a capital letter
};
FindPattern find_pattern(std::string_view pattern, const std::filesystem::path& root);

}  // namespace tau::coding
