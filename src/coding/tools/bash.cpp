#include "coding/tools/bash.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "base/files.h"
#include "base/process.h"
#include "coding/tools/output_accumulator.h"

namespace tau::coding {

namespace {

using agent::ToolFailure;
using agent::ToolResult;
using Clock = std::chrono::steady_clock;

constexpr double kLongestTimeout = 2147483.647;  // seconds (CA-63)
constexpr std::chrono::milliseconds kUpdatePause{100};

std::string seconds_text(double seconds) {
  std::string text;
  json::write_number(text, seconds);
  return text;
}

std::optional<std::chrono::milliseconds> timeout_of(const json::object& arguments) {
  const auto seconds = json::find_number(arguments, "timeout");
  if (!seconds) return std::nullopt;
  if (!std::isfinite(*seconds) || *seconds <= 0) {
    throw ToolFailure("Invalid timeout: must be a finite number of seconds");
  }
  if (*seconds > kLongestTimeout) {
    throw ToolFailure(fmt::format("Invalid timeout: maximum is {} seconds", seconds_text(kLongestTimeout)));
  }
  return std::chrono::milliseconds(std::max<std::int64_t>(1, std::llround(*seconds * 1000)));
}

/// "…, full output in PATH": what was cut, and where all of it is (CA-68).
std::string cut_note(const Truncation& t, const OutputAccumulator& output) {
  const std::string where = output.full_output() ? fmt::format(" Full output: {}", output.full_output()->string()) : "";
  if (t.last_line_partial) {
    return fmt::format("[Showing last {} of line {} (line is {}).{}]", format_size(t.output_bytes), t.total_lines,
                       format_size(output.last_line_bytes()), where);
  }
  const std::string by_bytes =
      t.truncated_by == "bytes" ? fmt::format(" ({} limit)", format_size(t.limits.max_bytes)) : "";
  return fmt::format("[Showing lines {}-{} of {}{}.{}]", t.total_lines - t.output_lines + 1, t.total_lines,
                     t.total_lines, by_bytes, where);
}

std::optional<json::value> details_of(const Truncation& t, const OutputAccumulator& output) {
  if (!t.truncated) return std::nullopt;
  json::object details{{"truncation", to_json(t)}};
  if (output.full_output()) details.emplace("fullOutputPath", output.full_output()->string());
  return json::value(std::move(details));
}

/// Shows the output while the command runs, at most ten times a second (CA-70).
class LiveView : public std::enable_shared_from_this<LiveView> {
 public:
  LiveView(const asio::any_io_executor& executor, std::shared_ptr<OutputAccumulator> output, agent::ToolUpdate update)
      : output_(std::move(output)), update_(std::move(update)), timer_(executor) {}

  void begin() { update_(ToolResult{}); }

  void changed() {
    stale_ = true;
    if (waiting_) return;
    if (Clock::now() - last_ >= kUpdatePause) {
      show();
      return;
    }
    waiting_ = true;
    timer_.expires_at(last_ + kUpdatePause);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& stopped) {
      const auto self = weak.lock();
      if (stopped || !self) return;
      self->waiting_ = false;
      self->show();
    });
  }

  void end() {
    timer_.cancel();
    if (stale_) show();
  }

 private:
  void show() {
    last_ = Clock::now();
    stale_ = false;
    const Truncation t = output_->snapshot();
    ToolResult partial;
    partial.content.emplace_back(ai::TextContent{t.content, {}, {}});
    partial.details = details_of(t, *output_).value_or(json::object{});
    update_(std::move(partial));
  }

  std::shared_ptr<OutputAccumulator> output_;
  agent::ToolUpdate update_;
  asio::steady_timer timer_;
  Clock::time_point last_;
  bool waiting_ = false;
  bool stale_ = false;  // there is output that has not been shown
};

/// The text after the output, or nothing for a success. An abort comes before a timeout, that before an exit code
/// (CA-320).
std::optional<std::string> failure_of(const ProcessExit& exit, const json::object& arguments) {
  if (exit.aborted) return "Command aborted";
  if (exit.timed_out) {
    return fmt::format("Command timed out after {} seconds", seconds_text(json::number_or(arguments, "timeout")));
  }
  if (exit.signal != 0) {  // FF-59
    return fmt::format("Command was ended by {} (exit code {})", signal_name(exit.signal), exit.code);
  }
  if (exit.code != 0) return fmt::format("Command exited with code {}", exit.code);
  return std::nullopt;
}

asio::awaitable<ToolResult> run(std::shared_ptr<const ToolEnvironment> environment, json::object arguments,
                                std::stop_token stop, agent::ToolUpdate update) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  ProcessOptions options;
  options.timeout = timeout_of(arguments);
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");
  std::string command = json::string_or(arguments, "command");
  if (environment->command_prefix) command = *environment->command_prefix + "\n" + command;
  options.argv = {command_shell(environment->shell_path), "-c", std::move(command)};
  options.working_directory = environment->cwd;
  std::error_code ignored;
  if (!std::filesystem::is_directory(environment->cwd, ignored)) {
    throw ToolFailure(fmt::format("Working directory does not exist: {}\nCommands cannot run until it is there again.",
                                  environment->cwd.string()));
  }
  if (environment->environment) options.environment = environment->environment();

  const auto output = std::make_shared<OutputAccumulator>();
  const auto view = std::make_shared<LiveView>(executor, output, std::move(update));
  view->begin();
  std::function<void(std::string_view)> on_output = [output, view](std::string_view bytes) {
    output->add(bytes);
    view->changed();
  };
  const auto exit = co_await run_process(std::move(options), std::move(on_output), stop);
  if (!exit) throw ToolFailure(exit.error().message);
  output->finish();
  view->end();

  const Truncation t = output->snapshot();
  std::string text = t.content;
  if (t.truncated) text += "\n\n" + cut_note(t, *output);
  if (const std::optional<std::string> failure = failure_of(*exit, arguments)) {
    const bool quiet = exit->aborted || exit->timed_out;  // says nothing about an output that never came
    if (text.empty() && !quiet) text = "(no output)";
    throw ToolFailure(text.empty() ? *failure : text + "\n\n" + *failure);
  }
  ToolResult result;
  result.content.emplace_back(ai::TextContent{text.empty() ? "(no output)" : std::move(text), {}, {}});
  result.details = details_of(t, *output);
  co_return result;
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const std::size_t colon = rest.find(':');
    const std::string file = std::string(rest.substr(0, colon)) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return true;
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace

std::string command_shell(const std::optional<std::string>& shell_path) {
  if (shell_path) {
    const std::filesystem::path path = expand_home(*shell_path);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      throw ToolFailure(fmt::format("Custom shell path not found: {}", path.string()));
    }
    return path.string();
  }
  if (::access("/bin/bash", X_OK) == 0) return "/bin/bash";
  return on_path("bash") ? "bash" : "sh";
}

BuiltinTool make_bash_tool(ToolEnvironment environment) {
  BuiltinTool bash;
  bash.tool.label = "bash";
  bash.tool.declaration.name = "bash";
  bash.tool.declaration.description =
      "Run a command with bash in the working directory. Returns stdout and stderr together. Of long output the end is "
      "returned (2000 lines or 50KB) and the whole is kept in a temporary file. There is no time limit unless timeout "
      "says one. stdin is empty and there is no terminal.";
  bash.tool.declaration.parameters = {
      {"type", "object"},
      {"required", json::array{"command"}},
      {"properties",
       json::object{{"command", json::object{{"type", "string"}, {"description", "Command for bash -c"}}},
                    {"timeout", json::object{{"type", "number"}, {"description", "Time limit in seconds"}}}}}};
  const auto shared = std::make_shared<const ToolEnvironment>(std::move(environment));
  bash.tool.execute = [shared](std::string, json::object arguments, std::stop_token stop, agent::ToolUpdate update) {
    return run(shared, std::move(arguments), std::move(stop), std::move(update));
  };
  // Ending the tree of a command takes up to a second (FF-55).
  bash.tool.stop_grace = std::chrono::milliseconds(1500);
  bash.snippet = "Run commands";
  bash.guidelines = {"Commands see PI_PROVIDER, PI_MODEL, PI_REASONING_LEVEL and PI_SESSION_ID in their environment."};
  return bash;
}

}  // namespace tau::coding
