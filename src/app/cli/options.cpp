#include "app/cli/options.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace tau::app {

namespace {

using enum OptionId;
using enum OptionValue;

// clang-format off
constexpr Option kOptions[] = {
    {kHelp, "help", "h", kNone, "", "General", "Show this text"},
    {kVersion, "version", "v", kNone, "", "General", "Show the version"},
    {kVerbose, "verbose", "", kNone, "", "General", "Say more on stderr: model, session file, project files in use"},
    {kOffline, "offline", "", kNone, "", "General", "No network except to the model's provider"},

    {kPrint, "print", "p", kMessage, "message", "Modes", "Print the answer and exit"},
    {kPlain, "plain", "", kNone, "", "Modes", "Linear text with role markers, streamed as it arrives"},
    {kMode, "mode", "", kRequired, "text|json|rpc", "Modes", "Kind of output"},
    {kTuiMode, "tui-mode", "", kRequired, "regular|fullscreen", "Modes", "How the interactive screen is drawn"},
    {kExport, "export", "", kRequired, "file", "Modes", "Write a session file as HTML and exit"},
    {kListModels, "list-models", "", kSearch, "search", "Modes", "List the models that can be used and exit"},

    {kModel, "model", "", kRequired, "pattern", "Model", "Model: provider/id, id or part of it, with :level for thinking"},
    {kProvider, "provider", "", kRequired, "name", "Model", "Provider of --model"},
    {kModels, "models", "", kRequired, "list", "Model", "Models to cycle through, separated by commas"},
    {kThinking, "thinking", "", kRequired, "level", "Model", "off, minimal, low, medium, high, xhigh or max"},
    {kApiKey, "api-key", "", kRequired, "key", "Model", "Key for this run; never stored"},

    {kContinue, "continue", "c", kNone, "", "Session", "Go on with this folder's latest session"},
    {kResume, "resume", "r", kNone, "", "Session", "Choose a session"},
    {kSession, "session", "", kRequired, "path|id", "Session", "Go on with this session"},
    {kSessionId, "session-id", "", kRequired, "id", "Session", "Open or create the session with exactly this id"},
    {kFork, "fork", "", kRequired, "path|id", "Session", "Copy a session into a new one and go on with that"},
    {kSessionDir, "session-dir", "", kRequired, "folder", "Session", "Where session files are kept"},
    {kNoSession, "no-session", "", kNone, "", "Session", "Keep the session in memory only"},
    {kName, "name", "n", kRequired, "text", "Session", "Name of the session"},

    {kTools, "tools", "t", kRequired, "list", "Tools", "Only these tools, separated by commas"},
    {kExcludeTools, "exclude-tools", "xt", kRequired, "list", "Tools", "All but these tools"},
    {kNoTools, "no-tools", "nt", kNone, "", "Tools", "No tools"},
    {kNoBuiltinTools, "no-builtin-tools", "nbt", kNone, "", "Tools", "Only tools of extensions"},

    {kSystemPrompt, "system-prompt", "", kRequired, "text|file", "Project", "Replace the system prompt"},
    {kAppendSystemPrompt, "append-system-prompt", "", kRequired, "text|file", "Project", "Add to the system prompt (repeatable)"},
    {kNoContextFiles, "no-context-files", "nc", kNone, "", "Project", "Leave out AGENTS.md and CLAUDE.md"},
    {kApprove, "approve", "a", kNone, "", "Project", "Trust this project's .pi folder for this run"},
    {kNoApprove, "no-approve", "na", kNone, "", "Project", "Do not trust it for this run"},

    {kExtension, "extension", "e", kRequired, "path", "Resources", "Load an extension (repeatable)"},
    {kNoExtensions, "no-extensions", "ne", kNone, "", "Resources", "Load no other extensions"},
    {kSkill, "skill", "", kRequired, "path", "Resources", "Load a skill (repeatable)"},
    {kNoSkills, "no-skills", "ns", kNone, "", "Resources", "Load no other skills"},
    {kPromptTemplate, "prompt-template", "", kRequired, "path", "Resources", "Load a prompt template (repeatable)"},
    {kNoPromptTemplates, "no-prompt-templates", "np", kNone, "", "Resources", "Load no other prompt templates"},
    {kTheme, "theme", "", kRequired, "path", "Resources", "Load a theme (repeatable)"},
    {kNoThemes, "no-themes", "", kNone, "", "Resources", "Load no other themes"},
    {kUseTheme, "use-theme", "", kRequired, "name", "Resources", "Theme for this run"},
};
// clang-format on

/// Edits (insert, delete, replace) between two words.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::span<const Option> options() {
  return kOptions;
}

const Option* find_option(std::string_view argument) {
  const bool is_long = argument.starts_with("--");
  if (!is_long && !argument.starts_with('-')) return nullptr;
  const std::string_view name = argument.substr(is_long ? 2 : 1);
  for (const Option& option : kOptions) {
    if (!name.empty() && name == (is_long ? option.name : option.short_name)) return &option;
  }
  return nullptr;
}

const Option* nearest_option(std::string_view argument) {
  while (argument.starts_with('-'))
    argument.remove_prefix(1);
  argument = argument.substr(0, argument.find('='));
  const Option* best = nullptr;
  std::size_t best_distance = argument.size() / 3 + 1;
  for (const Option& option : kOptions) {
    const std::size_t d = distance(argument, option.name);
    if (d <= best_distance && (best == nullptr || d < best_distance)) {
      best = &option;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace tau::app
