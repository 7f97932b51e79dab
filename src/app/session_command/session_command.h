// `tau session …`: looking at session files, checking and mending them, taking them elsewhere. No model is asked.
//
// Everything but `import` and `repair`, which make new files, and `export` only reads: a file is shown as it is, not
// even a missing line end is added.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/output.h"
#include "app/session_selection.h"

namespace tau::app {

/// `words`: what follows "session". Returns the exit code: 0, 1 for failures and for findings of `check`, 2 for a
/// command line that cannot be used.
int run_session_command(const std::vector<std::string>& words);

/// `--export FILE [OUT]` (MO-60); OUT ending in .jsonl takes the current path as a session file.
int export_session(const std::filesystem::path& file, const std::optional<std::string>& target,
                   const std::filesystem::path& cwd);

/// One parsed command line, and where sessions are.
struct SessionCommand {
  std::string name;
  std::vector<std::string> operands;
  bool json = false;
  bool all = false;
  std::optional<std::string> leaf;
  std::optional<std::string> model;
  std::optional<std::string> wire;
  std::optional<std::string> session_dir;

  std::filesystem::path cwd;
  SessionPlace place;
};

/// The file that the first operand means.
std::expected<std::filesystem::path, Error> session_file_of(const SessionCommand& command);
/// That file, open for reading.
std::expected<std::shared_ptr<const coding::Session>, Error> session_of(const SessionCommand& command);

// The commands. Each returns the exit code, or what to tell the user.
using CommandResult = std::expected<int, Error>;
CommandResult list_sessions(const SessionCommand& command, Output& out);
CommandResult show_session(const SessionCommand& command, Output& out);
CommandResult show_stats(const SessionCommand& command, Output& out);
CommandResult show_tree(const SessionCommand& command, Output& out);
CommandResult show_context(const SessionCommand& command, Output& out);
CommandResult check_session(const SessionCommand& command, Output& out);
CommandResult repair_session(const SessionCommand& command, Output& out);
CommandResult export_session_file(const SessionCommand& command, Output& out);
CommandResult import_session_file(const SessionCommand& command, Output& out);

}  // namespace tau::app
