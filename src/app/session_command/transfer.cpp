// `tau session export` and `import`, and `--export`.
#include <unistd.h>

#include <fmt/format.h>

#include "app/modes/print_mode.h"
#include "app/session_command/session_command.h"
#include "base/files.h"
#include "base/printable.h"
#include "coding/session/html_export.h"
#include "coding/session/session_fork.h"

namespace tau::app {

namespace fs = std::filesystem;

namespace {

/// Returns the path as it is told to the user.
std::expected<std::string, Error> export_to(const coding::Session& session, const std::optional<std::string>& target,
                                            const fs::path& cwd) {
  const std::string name = target ? *target : coding::html_file_name(*session.file());
  const fs::path path = resolve_path(name, cwd);
  std::error_code ignored;
  if (fs::equivalent(path, *session.file(), ignored)) {
    return std::unexpected(error(fmt::format("{} is the session itself", path.string())));
  }
  const auto written = path.extension() == ".jsonl" ? write_file_atomically(path, coding::export_jsonl(session))
                                                    : coding::export_html(session, path);
  if (!written) return std::unexpected(written.error());
  return name;
}

}  // namespace

CommandResult export_session_file(const SessionCommand& command, Output& out) {
  const auto session = session_of(command);
  if (!session) return std::unexpected(session.error());
  const auto target = command.operands.size() > 1 ? std::optional(command.operands[1]) : std::nullopt;
  const auto name = export_to(**session, target, command.cwd);
  if (!name) return std::unexpected(name.error());
  out.write(fmt::format("Exported to: {}\n", printable_line(*name)));
  return 0;
}

CommandResult import_session_file(const SessionCommand& command, Output& out) {
  const fs::path file = resolve_path(command.operands.front(), command.cwd);
  const auto copy = coding::import_session(file, command.place.folder);
  if (!copy) return std::unexpected(copy.error());
  out.write(fmt::format("Imported to: {}\n", printable_line(copy->string())));
  return 0;
}

int export_session(const fs::path& file, const std::optional<std::string>& target, const fs::path& cwd) {
  const fs::path path = resolve_path(file.string(), cwd);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    tell("Error", fmt::format("File not found: {}", path.string()));
    return 1;
  }
  const auto session = coding::Session::view(path, cwd);
  if (!session) {
    tell("Error", session.error().message);
    return 1;
  }
  const auto name = export_to(**session, target, cwd);
  if (!name) {
    tell("Error", name.error().message);
    return 1;
  }
  Output out(STDOUT_FILENO);
  out.write(fmt::format("Exported to: {}\n", printable_line(*name)));
  return 0;
}

}  // namespace tau::app
