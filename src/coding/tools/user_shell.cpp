#include "coding/tools/user_shell.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/process.h"
#include "coding/tools/bash.h"
#include "coding/tools/output_accumulator.h"
#include "coding/tools/plain_output.h"

namespace tau::coding {

namespace {

/// PATH with the folder first, unless it is there already.
std::string search_path(const std::string& folder) {
  const char* set = std::getenv("PATH");
  const std::string path = set != nullptr ? set : "/usr/local/bin:/usr/bin:/bin";
  return (":" + path + ":").find(":" + folder + ":") == std::string::npos ? folder + ":" + path : path;
}

std::expected<std::string, Error> shell_program(const std::optional<std::string>& configured) {
  try {
    return command_shell(configured);
  } catch (const agent::ToolFailure& failure) {
    return std::unexpected(error(failure.what()));
  }
}

struct Received {
  PlainOutput plain;
  OutputAccumulator output;
  std::function<void(std::string_view)> on_output;

  void add(std::string_view text) {
    if (text.empty()) return;
    output.add(text);
    if (on_output) on_output(text);
  }
};

}  // namespace

asio::awaitable<std::expected<BashExecution, Error>> run_user_command(
    UserShell shell, std::string command, std::function<void(std::string_view text)> on_output, std::stop_token stop) {
  ProcessOptions options;
  std::error_code failed;
  if (!std::filesystem::is_directory(shell.cwd, failed)) {
    co_return std::unexpected(error(fmt::format("Working directory does not exist: {}", shell.cwd.string())));
  }
  auto program = shell_program(shell.shell_path);
  if (!program) co_return std::unexpected(std::move(program.error()));
  options.argv = {*std::move(program), "-c", shell.command_prefix ? *shell.command_prefix + "\n" + command : command};
  options.working_directory = shell.cwd;
  for (const char* name : {"PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"}) {
    options.environment.emplace(name, std::nullopt);
  }
  if (!shell.programs.empty()) options.environment["PATH"] = search_path(shell.programs.string());

  const auto state = std::make_shared<Received>();
  state->on_output = std::move(on_output);
  std::function<void(std::string_view)> receive = [state](std::string_view bytes) {
    state->add(state->plain.add(bytes));
  };
  const auto exit = co_await run_process(std::move(options), std::move(receive), std::move(stop));
  if (!exit) co_return std::unexpected(exit.error());
  state->add(state->plain.finish());
  state->output.finish();

  Truncation shown = state->output.snapshot();
  BashExecution record;
  record.command = std::move(command);
  record.output = std::move(shown.content);
  record.cancelled = exit->aborted;
  if (!exit->aborted) record.exit_code = exit->code;
  record.truncated = shown.truncated;
  if (const auto& file = state->output.full_output()) record.full_output_path = file->string();
  record.timestamp = now_milliseconds();
  co_return record;
}

}  // namespace tau::coding
