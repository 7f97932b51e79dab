// Shell completions and the manual page, made from the table of options (cli/options.h): what the parser takes and what
// these offer cannot drift apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tau::app {

/// The script for "bash", "zsh" or "fish"; nothing for another shell.
std::optional<std::string> completion_script(std::string_view shell);

/// tau(1), in man's macros.
std::string manual_page(std::string_view version);

}  // namespace tau::app
