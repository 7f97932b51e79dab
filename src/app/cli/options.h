// The table of command-line options (MO-3): one row an option. The parser, the help texts, shell completions and the
// manual page all come from it.
#pragma once

#include <span>
#include <string_view>

namespace tau::app {

enum class OptionValue {
  kNone,      // a switch
  kRequired,  // takes the next argument, whatever it looks like
  kMessage,   // --print: takes the next argument as a message unless it looks like an option or a file
  kSearch,    // --list-models: takes the next argument unless it looks like an option or a file
};

enum class OptionId {
  kHelp,
  kVersion,
  kMode,
  kPrint,
  kPlain,
  kContinue,
  kResume,
  kSession,
  kSessionId,
  kFork,
  kSessionDir,
  kNoSession,
  kName,
  kProvider,
  kModel,
  kModels,
  kApiKey,
  kThinking,
  kSystemPrompt,
  kAppendSystemPrompt,
  kTools,
  kExcludeTools,
  kNoTools,
  kNoBuiltinTools,
  kExtension,
  kNoExtensions,
  kSkill,
  kPromptTemplate,
  kTheme,
  kNoSkills,
  kNoPromptTemplates,
  kNoThemes,
  kNoContextFiles,
  kUseTheme,
  kTuiMode,
  kExport,
  kListModels,
  kVerbose,
  kApprove,
  kNoApprove,
  kOffline,
};

struct Option {
  OptionId id;
  std::string_view name;        // without the dashes
  std::string_view short_name;  // without the dash; empty when there is none
  OptionValue value;
  std::string_view value_name;  // for help
  std::string_view topic;       // heading in help
  std::string_view help;        // one line
};

std::span<const Option> options();
const Option* find_option(std::string_view argument);  // "--model" or "-p"; null when unlisted

/// The listed long option that is written most like `argument`, or null when none is close.
const Option* nearest_option(std::string_view argument);

}  // namespace tau::app
