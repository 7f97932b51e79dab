#include "coding/tools/find.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/process.h"
#include "base/utf8.h"
#include "coding/tools/search_result.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

using agent::ToolFailure;
using agent::ToolResult;

struct Output {
  std::string paths;   // each ends with a NUL
  std::string errors;  // the first few kilobytes
};

constexpr std::size_t kMostErrors = 16 * 1024;

std::vector<std::string> arguments_for_fd(const std::string& program, const FindPattern& pattern, const fs::path& root,
                                          std::size_t limit, bool old_fd) {
  std::vector<std::string> argv = {
      program, "--glob", "--hidden", "--color=never", "--print0", "--max-results", std::to_string(limit + 1)};
  argv.emplace_back(pattern.ignore_case ? "--ignore-case" : "--case-sensitive");
  if (pattern.full_path) argv.emplace_back("--full-path");
  // .gitignore counts outside of a repository, too. An old fd can be told so only for one file.
  std::error_code failed;
  if (!old_fd) {
    argv.emplace_back("--no-require-git");
  } else if (fs::exists(root / ".gitignore", failed)) {
    argv.insert(argv.end(), {"--ignore-file", (root / ".gitignore").string()});
  }
  argv.insert(argv.end(), {"--", pattern.glob, root.string()});
  return argv;
}

asio::awaitable<std::expected<ProcessExit, Error>> run_fd(std::vector<std::string> argv, fs::path folder,
                                                          std::shared_ptr<Output> output, std::stop_token stop) {
  ProcessOptions options;
  options.argv = std::move(argv);
  options.working_directory = std::move(folder);
  options.on_errors = [output](std::string_view bytes) {
    output->errors += bytes.substr(0, kMostErrors - std::min(kMostErrors, output->errors.size()));
  };
  std::function<void(std::string_view)> on_output = [output](std::string_view bytes) { output->paths += bytes; };
  auto exit = co_await run_process(std::move(options), std::move(on_output), std::move(stop));
  co_return exit;
}

ToolResult present(std::string_view output, const fs::path& root, std::size_t limit) {
  std::vector<std::string> paths;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\0'), output.size());
    paths.push_back(shown_path(output.substr(0, end), root));
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  SearchResult result;
  if (paths.empty()) return std::move(result).finish("No files found matching pattern");
  if (paths.size() > limit) {
    paths.resize(limit);
    result.reached_limit(limit_notice(limit, "results", true), "resultLimitReached", limit);
  }
  std::sort(paths.begin(), paths.end());  // fd's threads find them in any order
  std::string lines;
  for (const std::string& path : paths) {
    if (!lines.empty()) lines += '\n';
    lines += path;
  }
  return std::move(result).finish(lines);
}

/// What the calls of one tool learn about the program.
struct Program {
  std::atomic<bool> old_fd = false;  // before 8.7: has no --no-require-git
};

asio::awaitable<ToolResult> run(std::shared_ptr<const ToolEnvironment> environment, std::shared_ptr<Program> known,
                                json::object arguments, std::stop_token stop) {
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");
  const std::string wanted = json::string_or(arguments, "pattern");
  const fs::path root = search_root(arguments, environment->cwd);
  std::error_code failed;
  if (!fs::is_directory(root, failed)) throw ToolFailure(fmt::format("Not a directory: {}", root.string()));
  const std::size_t limit = count_argument(arguments, "limit", 1000, 1);
  const auto program = find_program(environment->programs, {"fd", "fdfind"});
  if (!program) {
    throw ToolFailure("fd is not available. Install it (Debian: fd-find), or use bash with find.");
  }
  const FindPattern pattern = find_pattern(wanted, root);

  auto output = std::make_shared<Output>();
  std::vector<std::string> argv = arguments_for_fd(*program, pattern, root, limit, known->old_fd);
  auto exit = co_await run_fd(std::move(argv), root, output, stop);
  if (exit && exit->code != 0 && !known->old_fd && output->errors.find("no-require-git") != std::string::npos) {
    known->old_fd = true;
    output = std::make_shared<Output>();
    argv = arguments_for_fd(*program, pattern, root, limit, true);
    exit = co_await run_fd(std::move(argv), root, output, stop);
  }
  if (!exit) throw ToolFailure(exit.error().message);
  if (exit->aborted) throw ToolFailure("Operation aborted");
  if (exit->code != 0 && output->paths.empty() && !output->errors.empty()) {
    throw ToolFailure(utf8::replace_invalid(utf8::trim(output->errors)));
  }
  co_return present(output->paths, root, limit);
}

bool has_capital(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

FindPattern find_pattern(std::string_view pattern, const fs::path& root) {
  FindPattern found;
  while (pattern.starts_with("./")) {
    pattern.remove_prefix(2);
    while (pattern.starts_with('/'))
      pattern.remove_prefix(1);
  }
  std::string below = root.string();
  if (!below.ends_with('/')) below += '/';
  if (pattern.starts_with(below)) pattern.remove_prefix(below.size() - 1);  // the slash stays
  found.ignore_case = !has_capital(pattern);
  found.full_path = pattern.find('/') != std::string_view::npos;
  if (!found.full_path) {
    found.glob = pattern;
    return found;
  }
  found.glob = glob_of_path(below);
  if (pattern.starts_with('/')) {
    pattern.remove_prefix(1);  // a leading slash holds the pattern to the root
  } else if (!pattern.starts_with("**/")) {
    found.glob += "**/";
  }
  found.glob += pattern;
  return found;
}

BuiltinTool make_find_tool(ToolEnvironment environment) {
  BuiltinTool find;
  find.tool.label = "find";
  find.tool.declaration.name = "find";
  find.tool.declaration.description =
      "Find files and folders by a glob pattern. A pattern without a slash is matched against names; with one, against "
      "paths below the folder, at any depth. What .gitignore names is left out. Cut after 1000 results or 50KB.";
  find.tool.declaration.parameters = {
      {"type", "object"},
      {"required", json::array{"pattern"}},
      {"properties",
       json::object{
           {"pattern", json::object{{"type", "string"}, {"description", "Glob, for example *.ts or src/**/*.json"}}},
           {"path", json::object{{"type", "string"}, {"description", "Folder, by default the working one"}}},
           {"limit", json::object{{"type", "number"}, {"description", "Most results, by default 1000"}}}}}};
  const auto shared = std::make_shared<const ToolEnvironment>(std::move(environment));
  const auto known = std::make_shared<Program>();
  find.tool.execute = [shared, known](std::string, json::object arguments, std::stop_token stop, agent::ToolUpdate) {
    return run(shared, known, std::move(arguments), std::move(stop));
  };
  find.tool.stop_grace = std::chrono::milliseconds(1500);
  find.snippet = "Find files by name; honours .gitignore";
  find.active_by_default = false;
  return find;
}

}  // namespace tau::coding
