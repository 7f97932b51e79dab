// The command line as values (MO-1 to MO-7).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/cli/options.h"

namespace tau::app {

enum class OutputMode { kText, kJson, kRpc };

/// An option that is not listed: an extension may have registered it (MO-6).
struct UnlistedFlag {
  std::string name;                  // without the dashes
  std::optional<std::string> value;  // nothing = given without a value
};

struct Arguments {
  bool help = false;
  std::string help_topic;  // empty: the overview
  bool version = false;
  bool verbose = false;
  bool offline = false;
  bool print = false;
  bool plain = false;
  std::optional<OutputMode> mode;
  std::optional<std::string> tui_mode;
  std::optional<std::string> export_file;
  bool list_models = false;
  std::string list_models_search;

  std::optional<std::string> model;
  std::optional<std::string> provider;
  std::optional<std::vector<std::string>> models;
  std::optional<std::string> thinking;
  std::optional<std::string> api_key;

  bool continue_session = false;
  bool resume = false;
  std::optional<std::string> session;
  std::optional<std::string> session_id;
  std::optional<std::string> fork;
  std::optional<std::string> session_dir;
  bool no_session = false;
  std::optional<std::string> name;

  std::optional<std::vector<std::string>> tools;
  std::vector<std::string> exclude_tools;
  bool no_tools = false;
  bool no_builtin_tools = false;

  std::optional<std::string> system_prompt;
  std::vector<std::string> append_system_prompt;
  bool no_context_files = false;
  std::optional<bool> approve;

  std::vector<std::string> extensions, skills, prompt_templates, themes;
  bool no_extensions = false, no_skills = false, no_prompt_templates = false, no_themes = false;
  std::optional<std::string> use_theme;

  std::vector<std::string> messages;
  std::vector<std::string> files;  // `@path` arguments, without the `@`
  std::vector<UnlistedFlag> unlisted;

  /// One line each. Any error ends the program before anything else happens (MO-7).
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
};

/// A flag of an extension (MO-6).
struct RegisteredFlag {
  std::string name;  // without the dashes
  bool takes_value = false;
};
struct FlagCheck {
  std::vector<std::pair<std::string, std::string>> values;  // name, value; "true" for a switch
  std::vector<std::string> errors;
};
/// The values of the flags that somebody registered; an error for the others. Called when extensions are loaded.
FlagCheck check_flags(const std::vector<UnlistedFlag>& flags, const std::vector<RegisteredFlag>& registered);

/// `words`: the arguments without the program's name.
Arguments parse_arguments(const std::vector<std::string>& words);

/// "Unknown option: --foo. Did you mean --fork?" for the flags that nobody registered.
std::string unknown_option_error(const std::vector<std::string>& names);

/// What `--help` prints: an overview that fits a screen. With the name of a topic ("session"), or "all": its options in
/// full. Nothing for an unknown topic.
std::string help_text(std::string_view program);
std::optional<std::string> help_topic(std::string_view program, std::string_view topic);

}  // namespace tau::app
