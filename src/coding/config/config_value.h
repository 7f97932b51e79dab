// Values of configuration files that may name a secret instead of holding it (CA-180 to CA-182):
//
//   "!op read op://vault/key"    the trimmed output of a command
//   "$NAME", "x-${NAME}-y"       variables of the environment; one that is missing or empty leaves the whole unresolved
//   "$$", "$!"                   a literal `$`, `!`
//   anything else                itself
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "ai/auth/environment.h"
#include "base/error.h"

namespace tau::coding {

namespace asio = boost::asio;

bool is_command(std::string_view value);
/// Names of the variables in a template, in order, each once. Empty for a command.
std::vector<std::string> variables_of(std::string_view value);

/// Whether the value could be resolved; a command counts and is not run (CA-182).
bool is_available(std::string_view value, const ai::Environment& environment);

/// The value of a template. The error names the missing variable, never a value. A command is an error.
std::expected<std::string, Error> expand_template(std::string_view value, const ai::Environment& environment);

/// The value, commands included: those run in `sh` with stdin closed and stderr dropped, for at most ten seconds; a
/// failure and empty output are errors. Errors do not show the command or its output, which may hold secrets (FF-108).
asio::awaitable<std::expected<std::string, Error>> resolve_value(std::string value, ai::Environment environment);

}  // namespace tau::coding
