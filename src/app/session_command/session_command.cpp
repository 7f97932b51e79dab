#include "app/session_command/session_command.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "app/modes/print_mode.h"
#include "app/startup.h"
#include "base/files.h"
#include "coding/config/paths.h"

namespace tau::app {

namespace fs = std::filesystem;

namespace {

struct Command {
  std::string_view name;
  std::string_view operands;
  std::string_view help;
  std::size_t least;  // operands
  std::size_t most;
  CommandResult (*run)(const SessionCommand& command, Output& out);
};

// clang-format off
constexpr Command kCommands[] = {
    {"list", "[FOLDER] [--all] [--json]", "the sessions of this project, or of all", 0, 1, list_sessions},
    {"show", "SESSION [--json]", "what is in a session", 1, 1, show_session},
    {"tree", "SESSION [--json]", "its branches", 1, 1, show_tree},
    {"context", "SESSION [--leaf ID] [--model M] [--wire API] [--json]", "who sees which entry: disk, screen, model; with --wire the request itself", 1, 1, show_context},
    {"stats", "SESSION [--json]", "tokens and cost", 1, 1, show_stats},
    {"check", "SESSION [--json]", "everything that is wrong, with line numbers", 1, 1, check_session},
    {"repair", "SESSION", "a mended copy beside the file", 1, 1, repair_session},
    {"export", "SESSION [OUT.html|OUT.jsonl]", "a web page, or the current path as a session file", 1, 2, export_session_file},
    {"import", "FILE", "a copy in this project's sessions; nothing is replaced", 1, 1, import_session_file},
};
// clang-format on

std::string usage() {
  std::string text =
      "tau session COMMAND ...\n\nLooks at session files. SESSION is a file, or the beginning of a session's id.\n\n";
  for (const Command& command : kCommands)
    text += fmt::format("  {} {}\n      {}\n", command.name, command.operands, command.help);
  text += "\n  --session-dir DIR works with every command, as it does for tau itself.\n";
  return text;
}

std::expected<SessionCommand, std::string> parse(const std::vector<std::string>& words) {
  SessionCommand command;
  std::pair<std::string_view, std::optional<std::string>*> texts[] = {{"--leaf", &command.leaf},
                                                                      {"--model", &command.model},
                                                                      {"--wire", &command.wire},
                                                                      {"--session-dir", &command.session_dir}};
  bool only_operands = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto text = std::find_if(std::begin(texts), std::end(texts), [&](const auto& t) { return t.first == word; });
    if (only_operands || word.size() < 2 || word.front() != '-') {
      (command.name.empty() ? command.name : command.operands.emplace_back()) = word;
    } else if (word == "--") {
      only_operands = true;
    } else if (word == "--json") {
      command.json = true;
    } else if (word == "--all") {
      command.all = true;
    } else if (text == std::end(texts)) {
      return std::unexpected(fmt::format("Unknown option: {}", word));
    } else if (i + 1 == words.size()) {
      return std::unexpected(fmt::format("{} needs a value", word));
    } else {
      *text->second = words[++i];
    }
  }
  return command;
}

}  // namespace

std::expected<fs::path, Error> session_file_of(const SessionCommand& command) {
  // Unlike --session, which may name a file to be made, these commands need one that is there: a name without a slash
  // can be one, too.
  const std::string& name = command.operands.front();
  std::error_code ignored;
  const fs::path here = resolve_path(name, command.cwd);
  if (fs::exists(here, ignored)) return here;
  auto found = find_session_file(name, command.place, command.cwd);
  if (!found) return std::unexpected(std::move(found.error()));
  if (!fs::exists(found->path, ignored)) {
    return std::unexpected(error(fmt::format("File not found: {}", found->path.string())));
  }
  return found->path;
}

std::expected<std::shared_ptr<const coding::Session>, Error> session_of(const SessionCommand& command) {
  const auto file = session_file_of(command);
  if (!file) return std::unexpected(file.error());
  return coding::Session::view(*file, command.cwd);
}

int run_session_command(const std::vector<std::string>& words) {
  Output out(STDOUT_FILENO);
  if (words.empty() || words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
    out.write(usage());
    return words.empty() ? 2 : 0;
  }
  auto parsed = parse(words);
  if (!parsed) {
    tell("Error", parsed.error());
    return 2;
  }
  SessionCommand& command = *parsed;
  const auto row = std::find_if(std::begin(kCommands), std::end(kCommands),
                                [&](const Command& c) { return c.name == command.name; });
  if (row == std::end(kCommands)) {
    tell("Error", fmt::format("Unknown session command: {}. tau session --help lists them", command.name));
    return 2;
  }
  if (command.operands.size() < row->least || command.operands.size() > row->most) {
    tell("Error", fmt::format("Usage: tau session {} {}", row->name, row->operands));
    return 2;
  }
  auto cwd = current_folder();
  if (!cwd) {
    tell("Error", cwd.error().message);
    return 1;
  }
  command.cwd = *std::move(cwd);
  const coding::Settings settings = coding::Settings::load(coding::agent_folder(), command.cwd, false);
  command.place = session_place(command.session_dir, settings, command.cwd);
  const CommandResult result = row->run(command, out);
  if (!result) {
    tell("Error", result.error().message);
    return 1;
  }
  return out.closed() ? 1 : *result;
}

}  // namespace tau::app
