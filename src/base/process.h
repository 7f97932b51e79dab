// Child processes: each in its own session and process group, without the terminal, so that the whole tree can be ended
// and no signal meant for it reaches us (CA-62, FF-55 to FF-64).
#pragma once

#include <chrono>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/error.h"

namespace tau {

namespace asio = boost::asio;

struct ProcessOptions {
  std::vector<std::string> argv;  // argv[0] is looked up on PATH
  std::filesystem::path working_directory;
  std::map<std::string, std::optional<std::string>> environment;  // changes to our own; nothing = removed
  std::optional<std::chrono::milliseconds> timeout;               // none = no limit
  /// Where stderr goes when it is to be kept apart; when empty it goes where stdout goes.
  std::function<void(std::string_view bytes)> on_errors;
  /// After the program has exited, output of children that hold the pipe is awaited until it was quiet for so long.
  std::chrono::milliseconds quiet_period{100};
};

struct ProcessExit {
  int code = 0;    // exit code; 128 + signal when ended by a signal
  int signal = 0;  // 0 unless ended by a signal
  bool timed_out = false;
  bool aborted = false;  // `stop` was requested
};

/// Runs a program to its end. stdin is /dev/null; stdout and stderr go to `on_output` in the order of arrival.
/// On timeout or stop the whole tree is ended: SIGTERM, after a short grace SIGKILL, first the group, then every
/// remaining descendant, also those that made a session of their own. Fails when the program cannot be started.
/// Children that it leaves in the background go on; their later output is read and dropped, and they are reaped when
/// they end, as long as the executor runs.
asio::awaitable<std::expected<ProcessExit, Error>> run_process(ProcessOptions options,
                                                               std::function<void(std::string_view bytes)> on_output,
                                                               std::stop_token stop);

/// Ends every tree that run_process still tracks. For the way out of the program; safe to call twice.
void end_all_processes();

/// "SIGSEGV" for 11.
std::string signal_name(int signal);

}  // namespace tau
