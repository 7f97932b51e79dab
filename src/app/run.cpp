#include "app/run.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "app/cli/arguments.h"
#include "app/cli/shell_completion.h"
#include "app/modes/print_mode.h"
#include "app/modes/rpc_mode.h"
#include "app/output.h"
#include "app/session_command/session_command.h"
#include "app/startup.h"
#include "app/version.h"
#include "base/process.h"
#include "base/utf8.h"

namespace tau::app {

namespace asio = boost::asio;

namespace {

enum class Mode { kText, kJson, kPlain, kRpc };

struct Plan {
  Mode mode = Mode::kText;
  bool interactive = false;
};

/// MO-8. On a terminal, without -p, the linear mode asks for messages.
Plan choose_mode(const Arguments& arguments) {
  if (arguments.mode == OutputMode::kRpc) return {Mode::kRpc, false};
  if (arguments.mode == OutputMode::kJson) return {Mode::kJson, false};
  const bool terminals = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (arguments.plain || (terminals && !arguments.print)) return {Mode::kPlain, terminals && !arguments.print};
  return {Mode::kText, false};
}

/// Ends the run on SIGINT, SIGTERM and SIGHUP; a second SIGINT ends the program at once.
class Signals {
 public:
  /// `on_request`: asks what is at work to end.
  Signals(asio::io_context& io, std::function<void()> on_request)
      : set_(io, SIGINT, SIGTERM, SIGHUP), deadline_(io), on_request_(std::move(on_request)) {
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
      on_request_();
      // A run that does not come to an end must not keep the program (FF-63, MO-245).
      deadline_.expires_after(std::chrono::milliseconds(900));
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
  std::function<void()> on_request_;
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
    case Mode::kRpc:  // has a loop of its own
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

/// Runs a mode to its end. `stop` asks it to end.
int run_to_end(asio::io_context& io, asio::awaitable<int> mode, std::function<void()> stop) {
  Signals signals(io, std::move(stop));
  int code = 1;
  std::exception_ptr failure;
  asio::co_spawn(io, std::move(mode), [&](const std::exception_ptr& thrown, int result) {
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

int serve_rpc(asio::io_context& io, const Arguments& arguments, std::unique_ptr<Runtime>& runtime) {
  Output out(STDOUT_FILENO);
  RpcServer server(arguments, runtime, out);
  return run_to_end(io, server.serve(), [&server] { server.stop(); });
}

NoModel when_no_model(Mode mode) {
  switch (mode) {
    case Mode::kPlain:
      return NoModel::kTour;
    case Mode::kRpc:
      return NoModel::kPlaceholder;
    default:
      return NoModel::kFail;
  }
}

/// `/skill:name` and `/template` in what the command line says.
std::expected<void, Error> expand_prompts(const Runtime& runtime, Prompts& prompts) {
  std::vector<std::string*> texts{&prompts.first.text};
  for (std::string& text : prompts.rest)
    texts.push_back(&text);
  for (std::string* text : texts) {
    auto expanded = expand_prompt(runtime, *text);
    if (!expanded) return std::unexpected(std::move(expanded.error()));
    *text = *std::move(expanded);
  }
  return {};
}

int run_session(const Arguments& arguments) {
  const Plan plan = choose_mode(arguments);
  asio::io_context io(1);
  auto runtime = start(arguments, io.get_executor(), when_no_model(plan.mode));
  if (!runtime) {
    tell("Error", runtime.error().message);
    return 1;
  }
  for (const std::string& warning : (*runtime)->warnings)
    tell("Warning", warning);
  if (arguments.verbose) describe(**runtime);
  if (plan.mode == Mode::kRpc) return serve_rpc(io, arguments, *runtime);

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
  if (const auto expanded = expand_prompts(**runtime, prompts); !expanded) {
    tell("Error", expanded.error().message);
    return 1;
  }

  Output out(STDOUT_FILENO);
  return run_to_end(io, run_mode(**runtime, plan, std::move(prompts), out),
                    [&agent = *(*runtime)->agent] { agent.abort(); });
}

}  // namespace

int run(const std::vector<std::string>& words) {
  ::signal(SIGPIPE, SIG_IGN);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (utf8::replace_invalid(words[i]) == words[i]) continue;
    tell("Error", fmt::format("Argument {} is not valid UTF-8: {}", i + 1, utf8::replace_invalid(words[i])));
    return 1;
  }
  if (words.size() == 2 && words[0] == "completion") {
    if (const auto script = words[1] == "man" ? std::optional(manual_page(version())) : completion_script(words[1])) {
      Output(STDOUT_FILENO).write(*script);
      return 0;
    }
    tell("Error", fmt::format("tau completion takes bash, zsh, fish or man, not '{}'", words[1]));
    return 1;
  }
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
  if (!arguments.version) {
    const FlagCheck flags = check_flags(arguments.unlisted, {});
    arguments.errors.insert(arguments.errors.end(), flags.errors.begin(), flags.errors.end());
  }
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
    // With -p or --mode stdout is for answers only (MO-9).
    Output(arguments.print || arguments.mode ? STDERR_FILENO : STDOUT_FILENO)
        .write(help_topic("tau", arguments.help_topic).value_or(help_text("tau")));
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
