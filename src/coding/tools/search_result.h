// What grep, find and ls have in common: limits, the byte cut, and the notices below a list (CA-76 to CA-79, FF-75).
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/tool.h"
#include "coding/tools/tool_environment.h"

namespace tau::coding {

/// A count as a model gives it: `fallback` when absent, at least `least`, whole.
std::size_t count_argument(const json::object& arguments, std::string_view key, std::size_t fallback,
                           std::size_t least);

/// The result for a list: cut after 50 KiB, with all notices in one bracket below it.
class SearchResult {
 public:
  /// `detail` is what programs find under `key` in the details.
  void reached_limit(std::string notice, std::string_view key, json::value detail);
  /// Said after the limits. An empty key: nothing in the details.
  void add_notice(std::string notice, std::string_view key = {}, json::value detail = {});
  agent::ToolResult finish(std::string_view lines) &&;

 private:
  struct Notice {
    std::string text;
    std::string key;
    json::value detail;
  };
  std::vector<Notice> limits_;
  std::vector<Notice> others_;
};

/// "3 matches limit reached. Use limit=6 for more, or refine pattern"
std::string limit_notice(std::size_t limit, std::string_view what, bool refine);

/// The folder or file that a search begins at: the argument `path`, or the session's folder. Throws ToolFailure when it
/// does not exist.
std::filesystem::path search_root(const json::object& arguments, const std::filesystem::path& cwd);

/// `path` as results show it: below `root`, or its name when the root is the file itself.
std::string shown_path(std::string_view path, const std::filesystem::path& root);

/// A glob that matches this path and nothing else.
std::string glob_of_path(std::string_view path);

/// The first of these programs that exists: in `folder`, then on PATH (CA-80).
std::optional<std::string> find_program(const std::filesystem::path& folder, std::vector<std::string_view> names);

}  // namespace tau::coding
