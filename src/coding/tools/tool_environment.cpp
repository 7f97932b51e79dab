#include "coding/tools/tool_environment.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "coding/tools/bash.h"
#include "coding/tools/edit.h"
#include "coding/tools/find.h"
#include "coding/tools/grep.h"
#include "coding/tools/ls.h"
#include "coding/tools/read.h"
#include "coding/tools/write.h"

namespace tau::coding {

namespace {

/// The words that pi, a Node program, uses for the common ones: models know them.
std::string describe(int code) {
  switch (code) {
    case ENOENT:
      return "ENOENT: no such file or directory";
    case EACCES:
      return "EACCES: permission denied";
    case EISDIR:
      return "EISDIR: illegal operation on a directory";
    case ENOTDIR:
      return "ENOTDIR: not a directory";
    case EPERM:
      return "EPERM: operation not permitted";
    case ENOSPC:
      return "ENOSPC: no space left on device";
    case EROFS:
      return "EROFS: read-only file system";
    case ELOOP:
      return "ELOOP: too many symbolic links encountered";
    case ENAMETOOLONG:
      return "ENAMETOOLONG: name too long";
    default: {
      const char* name = strerrorname_np(code);
      return fmt::format("{}: {}", name != nullptr ? name : "error", std::strerror(code));
    }
  }
}

}  // namespace

std::string system_error_text(int code, std::string_view operation, const std::filesystem::path& path) {
  return fmt::format("{}, {} '{}'", describe(code), operation, path.string());
}

std::vector<BuiltinTool> builtin_tools(const ToolEnvironment& environment) {
  std::vector<BuiltinTool> tools;
  tools.push_back(make_read_tool(environment));
  tools.push_back(make_bash_tool(environment));
  tools.push_back(make_edit_tool(environment));
  tools.push_back(make_write_tool(environment));
  tools.push_back(make_grep_tool(environment));
  tools.push_back(make_find_tool(environment));
  tools.push_back(make_ls_tool(environment));
  return tools;
}

}  // namespace tau::coding
