#include "coding/tools/grep.h"

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/process.h"
#include "base/utf8.h"
#include "coding/tools/ripgrep_events.h"
#include "coding/tools/search_result.h"
#include "coding/tools/truncate.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

using agent::ToolFailure;
using agent::ToolResult;

constexpr std::size_t kMostErrors = 16 * 1024;
/// Far more than can be shown. A search that finds more is ended.
constexpr std::size_t kMostBytes = 8 * 1024 * 1024;

/// Lines as ripgrep reports them, in the one pass over the files that finds the matches (FF-74).
class Findings {
 public:
  Findings(std::size_t limit, std::size_t context, std::stop_source enough)
      : limit_(limit), context_(context), enough_(std::move(enough)) {}

  void add(GrepLine line) {
    if (enough_.stop_requested()) return;
    const bool new_file = files_.empty() || files_.back().path != line.path;
    if (line.match && matches_ == limit_) more_ = true;
    // One match too many is still context of the last one, if it is near enough; behind it nothing is needed.
    const bool in_reach = !new_file && line.number <= files_.back().last_match + context_;
    if (more_ && !in_reach) {
      enough_.request_stop();
      return;
    }
    if (new_file) files_.push_back({line.path, {}, 0});
    File& file = files_.back();
    const bool counts = line.match && !more_;
    if (counts) {
      ++matches_;
      file.last_match = line.number;
    }
    std::string text = truncate_line(line.text);
    const bool cut = text.size() != line.text.size();
    bytes_ += text.size() + 64;
    file.lines.push_back({line.number, std::move(text), counts, cut, line.ended});
    if (bytes_ > kMostBytes) enough_.request_stop();
  }

  std::size_t matches() const { return matches_; }
  bool more() const { return more_; }
  bool lines_were_cut() const { return lines_were_cut_; }

  /// A block for each match: the lines around it, as often as blocks overlap (CA-76). Files come in the order of their
  /// names: ripgrep's threads find them in any order.
  std::string text(const fs::path& root) {
    std::sort(files_.begin(), files_.end(), [](const File& a, const File& b) { return a.path < b.path; });
    std::string out;
    for (const File& file : files_) {
      const std::string path = shown_path(file.path, root);
      for (auto match = file.lines.begin(); match != file.lines.end(); ++match) {
        if (match->match) append_block(out, path, file, match);
      }
    }
    return out;
  }

 private:
  struct Line {
    std::size_t number;
    std::string text;
    bool match;
    bool cut;
    bool ended;
  };
  struct File {
    std::string path;
    std::vector<Line> lines;  // in their order
    std::size_t last_match;   // 0 before the first
  };

  void append_block(std::string& out, const std::string& path, const File& file,
                    std::vector<Line>::const_iterator match) {
    auto line = match;
    while (line != file.lines.begin() && std::prev(line)->number + context_ >= match->number)
      --line;
    for (; line != file.lines.end() && line->number <= match->number + context_; ++line) {
      const char mark = line == match ? ':' : '-';
      if (!out.empty()) out += '\n';
      fmt::format_to(std::back_inserter(out), "{}{}{}{} {}", path, mark, line->number, mark, line->text);
      lines_were_cut_ = lines_were_cut_ || line->cut;
    }
    // Behind a line end at the end of a file there is an empty line, as read counts them (CA-25).
    const Line& last = file.lines.back();
    if (line == file.lines.end() && last.ended && last.number < match->number + context_) {
      fmt::format_to(std::back_inserter(out), "\n{}-{}- ", path, last.number + 1);
    }
  }

  std::size_t limit_;
  std::size_t context_;
  std::stop_source enough_;
  std::vector<File> files_;
  std::size_t matches_ = 0;
  std::size_t bytes_ = 0;
  bool more_ = false;
  bool lines_were_cut_ = false;
};

/// A glob with a slash is anchored at the folder that ripgrep runs in. It may be meant from the session's folder or
/// from the folder that is searched: both are asked for.
std::vector<std::string> globs(std::string_view glob, const fs::path& root, const fs::path& folder) {
  std::vector<std::string> out;
  const bool negated = glob.starts_with('!');
  if (negated) glob.remove_prefix(1);
  while (glob.starts_with("./"))
    glob.remove_prefix(2);
  if (glob.empty()) return out;
  const auto add = [&](std::string_view prefix) {
    out.push_back(fmt::format("--glob={}{}{}", negated ? "!" : "", prefix, glob));
  };
  add("");
  const std::string below = root.lexically_relative(folder).string();
  if (glob.substr(0, glob.size() - 1).find('/') != std::string_view::npos && !glob.starts_with('/') && below != ".") {
    add(glob_of_path(below) + "/");
  }
  return out;
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

std::vector<std::string> arguments_for_rg(const std::string& program, const json::object& arguments,
                                          const fs::path& root, const fs::path& folder, std::size_t limit,
                                          std::size_t context) {
  // Without memory maps a large file costs ripgrep a fixed buffer; its own configuration would change the output.
  std::vector<std::string> argv = {
      program, "--json", "--no-config", "--hidden", "--no-mmap", "--max-count", std::to_string(limit + 1)};
  if (context > 0) argv.push_back(fmt::format("--context={}", context));
  if (json::bool_or(arguments, "ignoreCase")) argv.emplace_back("--ignore-case");
  if (json::bool_or(arguments, "literal")) argv.emplace_back("--fixed-strings");
  for (std::string& glob : globs(json::string_or(arguments, "glob"), root, folder))
    argv.push_back(std::move(glob));
  argv.insert(argv.end(), {"--", json::string_or(arguments, "pattern"), root.string()});
  return argv;
}

asio::awaitable<ToolResult> run(std::shared_ptr<const ToolEnvironment> environment, json::object arguments,
                                std::stop_token stop) {
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");
  const fs::path root = search_root(arguments, environment->cwd);
  const std::size_t limit = count_argument(arguments, "limit", 100, 1);
  const std::size_t context = count_argument(arguments, "context", 0, 0);
  const auto program = find_program(environment->programs, {"rg"});
  if (!program) {
    throw ToolFailure("ripgrep (rg) is not available. Install it (Debian: ripgrep), or use bash with grep.");
  }
  std::error_code failed;
  const fs::path start = fs::is_directory(root, failed) ? root : root.parent_path();
  const fs::path folder = lies_in(start, environment->cwd) ? environment->cwd : start;

  std::stop_source enough;
  const std::stop_callback on_stop(stop, [enough]() mutable { enough.request_stop(); });
  const auto findings = std::make_shared<Findings>(limit, context, enough);
  const auto events = std::make_shared<RipgrepEvents>([findings](GrepLine line) { findings->add(std::move(line)); });
  const auto errors = std::make_shared<std::string>();
  ProcessOptions options;
  options.argv = arguments_for_rg(*program, arguments, root, folder, limit, context);
  options.working_directory = folder;
  options.on_errors = [errors](std::string_view bytes) {
    *errors += bytes.substr(0, kMostErrors - std::min(kMostErrors, errors->size()));
  };
  std::function<void(std::string_view)> on_output = [events](std::string_view bytes) { events->add(bytes); };
  const auto exit = co_await run_process(std::move(options), std::move(on_output), enough.get_token());
  if (!exit) throw ToolFailure(exit.error().message);
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");

  const std::string problem = utf8::replace_invalid(utf8::trim_end(*errors));
  const bool broken = !exit->aborted && exit->code > 1;
  if (broken && !events->complete()) {
    throw ToolFailure(problem.empty() ? fmt::format("ripgrep ended with code {}", exit->code) : problem);
  }
  SearchResult result;
  const std::string lines = findings->text(root);
  if (findings->more()) result.reached_limit(limit_notice(limit, "matches", true), "matchLimitReached", limit);
  if (findings->lines_were_cut()) {
    result.add_notice("Some lines truncated to 500 chars. Use read tool to see full lines", "linesTruncated", true);
  }
  if (broken) {  // some files could not be read: what was found elsewhere still counts
    result.add_notice(fmt::format("Not all could be searched: {}", problem.substr(0, problem.find('\n'))));
  }
  co_return std::move(result).finish(findings->matches() == 0 ? "No matches found" : lines);
}

}  // namespace

BuiltinTool make_grep_tool(ToolEnvironment environment) {
  BuiltinTool grep;
  grep.tool.label = "grep";
  grep.tool.declaration.name = "grep";
  grep.tool.declaration.description =
      "Search the contents of files. Returns the matching lines with file and line number. What .gitignore names is "
      "left out. Cut after 100 matches or 50KB, long lines after 500 characters.";
  const auto text = [](std::string_view about) { return json::object{{"type", "string"}, {"description", about}}; };
  const auto flag = [](std::string_view about) { return json::object{{"type", "boolean"}, {"description", about}}; };
  const auto number = [](std::string_view about) { return json::object{{"type", "number"}, {"description", about}}; };
  grep.tool.declaration.parameters = {
      {"type", "object"},
      {"required", json::array{"pattern"}},
      {"properties", json::object{{"pattern", text("Regular expression, or plain text with literal")},
                                  {"path", text("Folder or file to search, by default the working folder")},
                                  {"glob", text("Only files that match, for example *.ts or src/**/*.json")},
                                  {"ignoreCase", flag("Capitals do not matter (by default they do)")},
                                  {"literal", flag("The pattern is plain text (by default a regular expression)")},
                                  {"context", number("Lines to show before and after each match, by default 0")},
                                  {"limit", number("Most matches, by default 100")}}}};
  const auto shared = std::make_shared<const ToolEnvironment>(std::move(environment));
  grep.tool.execute = [shared](std::string, json::object arguments, std::stop_token stop, agent::ToolUpdate) {
    return run(shared, std::move(arguments), std::move(stop));
  };
  grep.tool.stop_grace = std::chrono::milliseconds(1500);
  grep.snippet = "Search the contents of files; honours .gitignore";
  grep.active_by_default = false;
  return grep;
}

}  // namespace tau::coding
