// What the built-in tools need to know of the session they work for.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/tool.h"
#include "coding/tools/mutation_queue.h"

namespace tau::coding {

struct ToolEnvironment {
  std::filesystem::path cwd;
  std::optional<std::string> shell_path;      // setting shellPath
  std::optional<std::string> command_prefix;  // setting shellCommandPrefix: a line before every command
  /// Changes to the environment of commands (PI_SESSION_ID and the like: CA-62), asked for at each call.
  std::function<std::map<std::string, std::optional<std::string>>()> environment;
  /// Whether the current model takes images; asked for at each call.
  std::function<bool()> model_takes_images;
  std::shared_ptr<MutationQueue> mutations;  // one for all tools of a session
  std::filesystem::path programs;            // folder that is searched for rg and fd before PATH (CA-80); may be empty
  bool resize_images = true;                 // setting images.autoResize
};

/// A tool with what the system prompt says about it (CA-101, CA-103).
struct BuiltinTool {
  agent::AgentTool tool;
  std::string snippet;                  // one line: what it is for
  std::vector<std::string> guidelines;  // how to use it
  bool active_by_default = true;        // otherwise only when it is asked for by name (CA-2)
};

/// "ENOENT: no such file or directory, access '/x'": how tools report what the system refused (CA-22).
std::string system_error_text(int code, std::string_view operation, const std::filesystem::path& path);

/// read, bash, edit, write, and, not active by default, grep, find, ls: in the order in which models get them (CA-1).
std::vector<BuiltinTool> builtin_tools(const ToolEnvironment& environment);

}  // namespace tau::coding
