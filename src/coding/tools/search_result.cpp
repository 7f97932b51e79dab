#include "coding/tools/search_result.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.h"
#include "coding/tools/tool_path.h"
#include "coding/tools/truncate.h"

namespace tau::coding {

namespace fs = std::filesystem;

std::size_t count_argument(const json::object& arguments, std::string_view key, std::size_t fallback,
                           std::size_t least) {
  constexpr double kMost = 1e9;
  const auto number = json::find_number(arguments, key);
  if (!number || std::isnan(*number)) return fallback;
  return std::max(least, static_cast<std::size_t>(std::clamp(std::floor(*number), 0.0, kMost)));
}

void SearchResult::reached_limit(std::string notice, std::string_view key, json::value detail) {
  limits_.push_back({std::move(notice), std::string(key), std::move(detail)});
}

void SearchResult::add_notice(std::string notice, std::string_view key, json::value detail) {
  others_.push_back({std::move(notice), std::string(key), std::move(detail)});
}

agent::ToolResult SearchResult::finish(std::string_view lines) && {
  TruncationLimits limits;
  limits.max_lines = static_cast<std::size_t>(1) << 53;  // only bytes count here
  const Truncation t = truncate_head(lines, limits);
  if (t.truncated)
    reached_limit(fmt::format("{} limit reached", format_size(limits.max_bytes)), "truncation", to_json(t));
  std::vector<std::string> notices;
  json::object details;
  for (std::vector<Notice>* list : {&limits_, &others_}) {
    for (Notice& notice : *list) {
      notices.push_back(std::move(notice.text));
      if (!notice.key.empty()) details.emplace(notice.key, std::move(notice.detail));
    }
  }
  std::string text = t.content;
  if (!notices.empty()) text += fmt::format("\n\n[{}]", fmt::join(notices, ". "));
  agent::ToolResult result;
  result.content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  if (!details.empty()) result.details = std::move(details);
  return result;
}

std::string limit_notice(std::size_t limit, std::string_view what, bool refine) {
  return fmt::format("{} {} limit reached. Use limit={} for more{}", limit, what, limit * 2,
                     refine ? ", or refine pattern" : "");
}

fs::path search_root(const json::object& arguments, const fs::path& cwd) {
  const std::string given = json::string_or(arguments, "path");
  fs::path root = given.empty() ? cwd : existing_tool_path(given, cwd);
  std::error_code failed;
  if (!fs::exists(root, failed)) throw agent::ToolFailure(fmt::format("Path not found: {}", root.string()));
  return root;
}

std::string shown_path(std::string_view path, const fs::path& root) {
  std::string below = root.string();
  if (path == below) return utf8::replace_invalid(root.filename().string());
  if (!below.ends_with('/')) below += '/';
  if (path.starts_with(below)) path.remove_prefix(below.size());
  return utf8::replace_invalid(path);
}

std::string glob_of_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (std::string_view("\\*?[]{}!,").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::optional<std::string> find_program(const fs::path& folder, std::vector<std::string_view> names) {
  const auto is_program = [](const std::string& file) {
    std::error_code failed;
    return ::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, failed);
  };
  if (!folder.empty()) {
    for (const std::string_view name : names) {
      std::string file = (folder / name).string();
      if (is_program(file)) return file;
    }
  }
  const char* path = std::getenv("PATH");
  const std::string_view list = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (const std::string_view name : names) {
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(':', at), list.size());
      std::string file = fmt::format("{}/{}", list.substr(at, end - at), name);
      // An empty entry means the current folder, which may belong to the project: never run programs from there.
      if (end > at && is_program(file)) return file;
      at = end + 1;
    }
  }
  return std::nullopt;
}

}  // namespace tau::coding
