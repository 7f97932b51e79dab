#include "coding/tools/ls.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/blocking.h"
#include "base/utf8.h"
#include "coding/config/collation.h"
#include "coding/tools/search_result.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

using agent::ToolFailure;
using agent::ToolResult;

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// Sorted names; nothing but names is looked at, so a folder with many entries costs one pass.
std::vector<std::string> names_in(const fs::path& folder, const std::stop_token& stop) {
  std::error_code failed;
  std::vector<std::pair<std::string, std::string>> names;  // lower-cased, as it is
  for (fs::directory_iterator entry(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    if (stop.stop_requested()) throw ToolFailure("Operation aborted");
    std::string name = entry->path().filename().string();
    std::string key = lower_case(name);
    names.emplace_back(std::move(key), std::move(name));
  }
  if (failed) throw ToolFailure(system_error_text(failed.value(), "scandir", folder));
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    const int order = collate(a.first, b.first);
    return order != 0 ? order < 0 : a.second < b.second;
  });
  std::vector<std::string> out;
  out.reserve(names.size());
  for (auto& [key, name] : names)
    out.push_back(std::move(name));
  return out;
}

ToolResult list(const fs::path& folder, std::size_t limit, const std::stop_token& stop) {
  std::string lines;
  std::size_t shown = 0;
  bool more = false;
  for (const std::string& name : names_in(folder, stop)) {
    std::error_code failed;
    const fs::file_status status = fs::status(folder / name, failed);
    if (failed || !fs::exists(status)) continue;  // a broken link
    if (shown == limit) {
      more = true;  // said only when there is more (FF-75)
      break;
    }
    if (shown++ > 0) lines += '\n';
    lines += utf8::replace_invalid(name);
    if (fs::is_directory(status)) lines += '/';
  }
  SearchResult result;
  if (more) result.reached_limit(limit_notice(limit, "entries", false), "entryLimitReached", limit);
  return std::move(result).finish(shown == 0 ? "(empty directory)" : lines);
}

asio::awaitable<ToolResult> run(std::shared_ptr<const ToolEnvironment> environment, json::object arguments,
                                std::stop_token stop) {
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");
  const fs::path folder = search_root(arguments, environment->cwd);
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) throw ToolFailure(fmt::format("Not a directory: {}", folder.string()));
  const std::size_t limit = count_argument(arguments, "limit", 500, 1);
  auto work = [folder, limit, stop] { return list(folder, limit, stop); };
  ToolResult result = co_await run_blocking(std::move(work));
  co_return result;
}

}  // namespace

BuiltinTool make_ls_tool(ToolEnvironment environment) {
  BuiltinTool ls;
  ls.tool.label = "ls";
  ls.tool.declaration.name = "ls";
  ls.tool.declaration.description =
      "List the names in a folder, sorted, dotfiles included; folders end with a slash. Cut after 500 entries or 50KB.";
  ls.tool.declaration.parameters = {
      {"type", "object"},
      {"properties",
       json::object{{"path", json::object{{"type", "string"}, {"description", "Folder, by default the working one"}}},
                    {"limit", json::object{{"type", "number"}, {"description", "Most entries, by default 500"}}}}}};
  const auto shared = std::make_shared<const ToolEnvironment>(std::move(environment));
  ls.tool.execute = [shared](std::string, json::object arguments, std::stop_token stop, agent::ToolUpdate) {
    return run(shared, std::move(arguments), std::move(stop));
  };
  ls.snippet = "List a folder";
  ls.active_by_default = false;
  return ls;
}

}  // namespace tau::coding
