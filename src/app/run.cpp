#include "app/run.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "app/cli/arguments.h"
#include "app/modes/print_mode.h"
#include "app/output.h"
#include "app/session_command/session_command.h"
#include "app/startup.h"
#include "app/version.h"
#include "base/process.h"

namespace tau::app {

namespace asio = boost::asio;

namespace {

enum class Mode { kText, kJson, kPlain };

struct Plan {
  Mode mode = Mode::kText;
  bool interactive = false;
};

/// MO-8. On a terminal, without -p, the linear mode asks for messages.
Plan choose_mode(const Arguments& arguments) {
  if (arguments.mode == OutputMode::kJson) return {Mode::kJson, false};
  const bool terminals = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (arguments.plain || (terminals && !arguments.print)) return {Mode::kPlain, terminals && !arguments.print};
  return {Mode::kText, false};
}

/// Ends the run on SIGINT, SIGTERM and SIGHUP; a second SIGINT ends the program at once.
class Signals {
 public:
  Signals(asio::io_context& io, coding::AgentSession& agent)
      : set_(io, SIGINT, SIGTERM, SIGHUP), deadline_(io), agent_(agent) {
    wait();
  }

  /// 128 + number of the signal that asked the program to end; nothing after SIGINT, which only aborts the run.
  std::optional<int> exit_code() const { return exit_code_; }
  void stop() {
    set_.cancel();
    deadline_.cancel();
  }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& stopped, int signal) {
      if (stopped) return;
      if (signal != SIGINT) exit_code_ = 128 + signal;
      if (asked_) leave(128 + signal);
      asked_ = true;
      agent_.abort();
      // A run that does not come to an end must not keep the program (FF-63).
      deadline_.expires_after(std::chrono::milliseconds(2000));
      deadline_.async_wait([signal](const boost::system::error_code& settled) {
        if (!settled) leave(128 + signal);
      });
      wait();
    });
  }

  [[noreturn]] static void leave(int code) {
    end_all_processes();
    std::_Exit(code);
  }

  asio::signal_set set_;
  asio::steady_timer deadline_;
  coding::AgentSession& agent_;
  bool asked_ = false;
  std::optional<int> exit_code_;
};

asio::awaitable<int> run_mode(Runtime& runtime, Plan plan, Prompts prompts, Output& out) {
  int code = 0;
  switch (plan.mode) {
    case Mode::kText:
      code = co_await run_text_mode(runtime, std::move(prompts), out);
      break;
    case Mode::kJson:
      code = co_await run_json_mode(runtime, std::move(prompts), out);
      break;
    case Mode::kPlain:
      code = co_await run_plain_mode(runtime, std::move(prompts), out, plan.interactive);
      break;
  }
  co_return code;
}

int print_models(const Arguments& arguments) {
  const auto registry = make_registry();
  for (const std::string& problem : registry->problems())
    tell("Warning", problem);
  const coding::ModelListing listing = coding::list_models(*registry, arguments.list_models_search);
  const bool plain_command = !arguments.print && !arguments.mode;  // MO-9
  Output out(plain_command ? STDOUT_FILENO : STDERR_FILENO);
  out.write(listing.table);
  if (!listing.note.empty()) out.write(listing.note + "\n");
  return 0;
}

void describe(const Runtime& runtime) {
  tell("Model", fmt::format("{}/{} (thinking {})", runtime.agent->model().provider, runtime.agent->model().id,
                            ai::to_string(runtime.agent->thinking_level())));
  const auto file = runtime.session->file();
  tell("Session", file ? file->string() : "in memory");
}

int run_session(const Arguments& arguments) {
  const Plan plan = choose_mode(arguments);
  asio::io_context io(1);
  auto runtime = start(arguments, io.get_executor(), plan.mode == Mode::kPlain);
  if (!runtime) {
    tell("Error", runtime.error().message);
    return 1;
  }
  for (const std::string& warning : (*runtime)->warnings)
    tell("Warning", warning);
  if (arguments.verbose) describe(**runtime);

  Prompts prompts;
  std::optional<std::string> message;
  if (!arguments.messages.empty()) {
    message = arguments.messages.front();
    prompts.rest.assign(arguments.messages.begin() + 1, arguments.messages.end());
  }
  const std::optional<std::string> piped = plan.interactive ? std::nullopt : read_piped_input();
  auto first = make_first_prompt(piped, arguments.files, message, *current_folder());
  if (!first) {
    tell("Error", first.error().message);
    return 1;
  }
  prompts.first = *std::move(first);

  Output out(STDOUT_FILENO);
  Signals signals(io, *(*runtime)->agent);
  int code = 1;
  std::exception_ptr failure;
  asio::co_spawn(io, run_mode(**runtime, plan, std::move(prompts), out),
                 [&](const std::exception_ptr& thrown, int result) {
                   failure = thrown;
                   code = result;
                   signals.stop();
                   io.stop();
                 });
  io.run();
  end_all_processes();
  if (failure) std::rethrow_exception(failure);
  return signals.exit_code().value_or(code);
}

}  // namespace

int run(const std::vector<std::string>& words) {
  ::signal(SIGPIPE, SIG_IGN);
  if (!words.empty() && words.front() == "session") {
    try {
      return run_session_command({words.begin() + 1, words.end()});
    } catch (const std::exception& e) {
      tell("Error", e.what());
      return 1;
    }
  }
  Arguments arguments = parse_arguments(words);
  for (const std::string& warning : arguments.warnings)
    tell("Warning", warning);
  std::vector<std::string> unknown;
  for (const UnlistedFlag& flag : arguments.unlisted)
    unknown.push_back("--" + flag.name);
  if (!unknown.empty() && !arguments.version) arguments.errors.push_back(unknown_option_error(unknown));
  if (!arguments.errors.empty()) {
    for (const std::string& message : arguments.errors)
      tell("Error", message);
    return 1;
  }
  const char* offline = std::getenv("PI_OFFLINE");
  if (arguments.offline || (offline != nullptr && *offline != '\0')) {  // children inherit it (MO-1)
    ::setenv("PI_OFFLINE", "1", 1);
    ::setenv("PI_SKIP_VERSION_CHECK", "1", 1);
  }
  Output out(STDOUT_FILENO);
  if (arguments.version) {
    out.write(fmt::format("{}\n", version()));
    return 0;
  }
  if (arguments.help) {
    out.write(help_text("tau"));
    return 0;
  }
  try {
    if (arguments.export_file) {
      const auto target = arguments.messages.empty() ? std::nullopt : std::optional(arguments.messages.front());
      return export_session(*arguments.export_file, target, *current_folder());
    }
    return arguments.list_models ? print_models(arguments) : run_session(arguments);
  } catch (const std::exception& e) {
    tell("Error", e.what());
    return 1;
  }
}

}  // namespace tau::app
