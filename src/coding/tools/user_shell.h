// Commands that the user runs with `!` and `!!` (CA-86 to CA-88).
#pragma once

#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "base/error.h"
#include "coding/roles/bash_execution.h"

namespace tau::coding {

namespace asio = boost::asio;

struct UserShell {
  std::filesystem::path cwd;
  std::optional<std::string> shell_path;      // setting shellPath
  std::optional<std::string> command_prefix;  // setting shellCommandPrefix
  std::filesystem::path programs;             // put first on PATH; may be empty
};

/// Runs the command as the bash tool does, but without a time limit and without what tells a tool of the session.
/// `on_output` gets the cleaned text piece by piece. The record has everything but excludeFromContext; a death by
/// signal is exit code 128 + signal. Fails when the command cannot be started at all.
asio::awaitable<std::expected<BashExecution, Error>> run_user_command(
    UserShell shell, std::string command, std::function<void(std::string_view text)> on_output, std::stop_token stop);

}  // namespace tau::coding
