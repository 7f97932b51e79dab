#include "app/cli/arguments.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "ai/model.h"
#include "base/utf8.h"

namespace tau::app {

namespace {

bool looks_like_option_or_file(std::string_view word) {
  return word.starts_with('-') || word.starts_with('@');
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = utf8::trim(text.substr(0, comma));
    if (!item.empty()) items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& words) : words_(words) {}

  Arguments parse() {
    bool options_over = false;
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (options_over || !word.starts_with('-')) {
        positional(word);
      } else if (word == "--") {
        options_over = true;
      } else if (const Option* option = find_option(word); option != nullptr && value_is_there(*option)) {
        take(*option);
      } else if (word.starts_with("--")) {
        unlisted(word);
      } else {
        out_.errors.push_back(unknown_option_error({word}));
      }
    }
    return std::move(out_);
  }

 private:
  bool has_next() const { return at_ < words_.size(); }

  /// A value option as the last word is not an option at all (MO-3), except that --name and its kind say what is
  /// missing.
  bool value_is_there(const Option& option) const { return option.value != OptionValue::kRequired || has_next(); }

  void positional(const std::string& word) {
    if (word.starts_with('@')) {
      out_.files.push_back(word.substr(1));
    } else {
      out_.messages.push_back(word);
    }
  }

  void unlisted(const std::string& word) {
    const Option* listed = find_option(word);
    if (listed != nullptr) {  // it needs a value and is the last word
      out_.errors.push_back(fmt::format("--{} requires a value ({})", listed->name, listed->value_name));
      return;
    }
    const std::string name = word.substr(2);
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      out_.unlisted.push_back({name.substr(0, equals), name.substr(equals + 1)});
    } else if (has_next() && !looks_like_option_or_file(words_[at_])) {
      out_.unlisted.push_back({name, words_[at_++]});
    } else {
      out_.unlisted.push_back({name, std::nullopt});
    }
  }

  void set_mode(const std::string& value) {
    if (value == "text") {
      out_.mode = OutputMode::kText;
    } else if (value == "json") {
      out_.mode = OutputMode::kJson;
    } else if (value == "rpc") {
      out_.mode = OutputMode::kRpc;
    } else {
      out_.errors.push_back(fmt::format("--mode takes text, json or rpc, not '{}'", value));  // FF-97
    }
  }

  void take(const Option& option) {
    std::string value;
    if (option.value == OptionValue::kRequired) value = words_[at_++];
    switch (option.id) {
      case OptionId::kHelp:
        out_.help = true;
        if (has_next() && !looks_like_option_or_file(words_[at_]) && help_topic("", words_[at_])) {
          out_.help_topic = words_[at_++];
        }
        break;
      case OptionId::kVersion:
        out_.version = true;
        break;
      case OptionId::kVerbose:
        out_.verbose = true;
        break;
      case OptionId::kOffline:
        out_.offline = true;
        break;
      case OptionId::kPrint:
        out_.print = true;
        if (has_next() && !words_[at_].starts_with('@') &&
            (!words_[at_].starts_with('-') || words_[at_].starts_with("---"))) {
          out_.messages.push_back(words_[at_++]);
        }
        break;
      case OptionId::kPlain:
        out_.plain = true;
        break;
      case OptionId::kMode:
        set_mode(value);
        break;
      case OptionId::kTuiMode:
        if (value != "regular" && value != "fullscreen") {
          out_.errors.push_back(fmt::format("--tui-mode takes regular or fullscreen, not '{}'", value));
        }
        out_.tui_mode = value;
        break;
      case OptionId::kExport:
        out_.export_file = value;
        break;
      case OptionId::kListModels:
        out_.list_models = true;
        if (has_next() && !looks_like_option_or_file(words_[at_])) out_.list_models_search = words_[at_++];
        break;
      case OptionId::kModel:
        out_.model = value;
        break;
      case OptionId::kProvider:
        out_.provider = value;
        break;
      case OptionId::kModels:
        out_.models = split_list(value);
        break;
      case OptionId::kThinking:
        if (ai::thinking_level_from(value)) {
          out_.thinking = value;
        } else {
          out_.warnings.push_back(
              fmt::format("--thinking {} is ignored: it takes off, minimal, low, medium, high, xhigh or max", value));
        }
        break;
      case OptionId::kApiKey:
        out_.api_key = value;
        break;
      case OptionId::kContinue:
        out_.continue_session = true;
        break;
      case OptionId::kResume:
        out_.resume = true;
        break;
      case OptionId::kSession:
        out_.session = value;
        break;
      case OptionId::kSessionId:
        out_.session_id = value;
        break;
      case OptionId::kFork:
        out_.fork = value;
        break;
      case OptionId::kSessionDir:
        out_.session_dir = value;
        break;
      case OptionId::kNoSession:
        out_.no_session = true;
        break;
      case OptionId::kName:
        out_.name = value;
        break;
      case OptionId::kTools:
        out_.tools = split_list(value);
        break;
      case OptionId::kExcludeTools:
        out_.exclude_tools = split_list(value);
        break;
      case OptionId::kNoTools:
        out_.no_tools = true;
        break;
      case OptionId::kNoBuiltinTools:
        out_.no_builtin_tools = true;
        break;
      case OptionId::kSystemPrompt:
        out_.system_prompt = value;
        break;
      case OptionId::kAppendSystemPrompt:
        out_.append_system_prompt.push_back(value);
        break;
      case OptionId::kNoContextFiles:
        out_.no_context_files = true;
        break;
      case OptionId::kApprove:
        out_.approve = true;
        break;
      case OptionId::kNoApprove:
        out_.approve = false;
        break;
      case OptionId::kExtension:
        out_.extensions.push_back(value);
        break;
      case OptionId::kSkill:
        out_.skills.push_back(value);
        break;
      case OptionId::kPromptTemplate:
        out_.prompt_templates.push_back(value);
        break;
      case OptionId::kTheme:
        out_.themes.push_back(value);
        break;
      case OptionId::kNoExtensions:
        out_.no_extensions = true;
        break;
      case OptionId::kNoSkills:
        out_.no_skills = true;
        break;
      case OptionId::kNoPromptTemplates:
        out_.no_prompt_templates = true;
        break;
      case OptionId::kNoThemes:
        out_.no_themes = true;
        break;
      case OptionId::kUseTheme:
        if (value.starts_with('-')) out_.errors.emplace_back("--use-theme requires the name of a theme");
        out_.use_theme = value;
        break;
    }
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  Arguments out_;
};

/// Flags that contradict each other (MO-11, step 6).
void check_conflicts(Arguments& a) {
  const auto conflict = [&](bool both, std::string_view x, std::string_view y) {
    if (both) a.errors.push_back(fmt::format("{} cannot be combined with {}", x, y));
  };
  conflict(a.fork && a.session, "--fork", "--session");
  conflict(a.fork && a.continue_session, "--fork", "--continue");
  conflict(a.fork && a.resume, "--fork", "--resume");
  conflict(a.fork && a.no_session, "--fork", "--no-session");
  conflict(a.session_id && a.session, "--session-id", "--session");
  conflict(a.session_id && a.continue_session, "--session-id", "--continue");
  conflict(a.session_id && a.resume, "--session-id", "--resume");
  conflict(a.session && a.continue_session, "--session", "--continue");
  conflict(a.session && a.resume, "--session", "--resume");
  conflict(a.continue_session && a.resume, "--continue", "--resume");
  conflict(a.no_session && a.session, "--no-session", "--session");
  conflict(a.no_session && a.continue_session, "--no-session", "--continue");
  conflict(a.no_session && a.resume, "--no-session", "--resume");
  conflict(a.tools && a.no_tools, "--tools", "--no-tools");
  if (a.name && utf8::is_blank(*a.name)) a.errors.emplace_back("--name requires a non-empty value");
  if (a.provider && !a.model) {  // FF-97
    a.errors.push_back(fmt::format("--provider {} needs --model as well", *a.provider));
  }
  if (a.mode == OutputMode::kRpc && !a.files.empty()) {
    a.errors.emplace_back("@file arguments are not supported in RPC mode");
  }
  if (a.plain && (a.mode == OutputMode::kJson || a.mode == OutputMode::kRpc)) {
    a.errors.emplace_back("--plain cannot be combined with --mode json or --mode rpc");
  }
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments = Parser(words).parse();
  if (arguments.errors.empty() && !arguments.help && !arguments.version) check_conflicts(arguments);
  return arguments;
}

std::string unknown_option_error(const std::vector<std::string>& names) {
  std::string text = names.size() == 1 ? "Unknown option: " : "Unknown options: ";
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() == 1) {
    if (const Option* near = nearest_option(names.front())) text += fmt::format(". Did you mean --{}?", near->name);
  }
  return text;
}

FlagCheck check_flags(const std::vector<UnlistedFlag>& flags, const std::vector<RegisteredFlag>& registered) {
  FlagCheck check;
  std::vector<std::string> unknown;
  for (const UnlistedFlag& flag : flags) {
    const auto found = std::find_if(registered.begin(), registered.end(),
                                    [&](const RegisteredFlag& known) { return known.name == flag.name; });
    if (found == registered.end()) {
      unknown.push_back("--" + flag.name);
    } else if (!found->takes_value) {
      check.values.emplace_back(flag.name, "true");
    } else if (flag.value) {
      check.values.emplace_back(flag.name, *flag.value);
    } else {
      check.errors.push_back(fmt::format("Extension flag \"--{}\" requires a value", flag.name));
    }
  }
  if (!unknown.empty()) check.errors.push_back(unknown_option_error(unknown));
  return check;
}

namespace {

std::string left_side(const Option& option) {
  std::string left = fmt::format("  --{}", option.name);
  if (!option.short_name.empty()) left += fmt::format(", -{}", option.short_name);
  if (option.value == OptionValue::kRequired) left += fmt::format(" <{}>", option.value_name);
  if (option.value == OptionValue::kMessage || option.value == OptionValue::kSearch) {
    left += fmt::format(" [{}]", option.value_name);
  }
  return left;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// The options of one topic, or of all.
std::string list_options(std::string_view wanted) {
  std::string text;
  std::string_view topic;
  for (const Option& option : options()) {
    if (!wanted.empty() && lower(option.topic) != wanted) continue;
    if (option.topic != topic) {
      topic = option.topic;
      text += fmt::format("\n{}\n", topic);
    }
    text += fmt::format("{:<42} {}\n", left_side(option), option.help);
  }
  return text;
}

}  // namespace

std::string help_text(std::string_view program) {
  std::string text = fmt::format(
      "{0} - a coding agent for the terminal\n"
      "Usage: {0} [options] [@file ...] [message ...]\n"
      "Text piped in and @files become part of the first message.\n\n",
      program);
  std::string_view topic;
  std::string line;
  for (const Option& option : options()) {
    const std::string name = fmt::format(
        " --{}{}", option.name, option.short_name.empty() ? std::string() : fmt::format("/-{}", option.short_name));
    const bool next_topic = option.topic != topic;
    if (next_topic || line.size() + name.size() > 79) {
      if (!line.empty()) text += line + "\n";
      line = fmt::format("{:<10}", next_topic ? option.topic : "");
      topic = option.topic;
    }
    line += name;
  }
  text += line + "\n\n";
  text += fmt::format(
      "More: {0} --help general|modes|model|session|tools|project|resources|all\n"
      "      {0} completion bash|zsh|fish|man\n",
      program);
  return text;
}

std::optional<std::string> help_topic(std::string_view program, std::string_view topic) {
  if (topic.empty()) return help_text(program);
  const std::string options = list_options(topic == "all" ? std::string() : lower(topic));
  if (options.empty()) return std::nullopt;
  std::string text = fmt::format("{} - options\n{}", program, options);
  if (topic == "all") {
    text +=
        "\nExamples\n"
        "  tau -p \"Which files does the build need?\"\n"
        "  git diff | tau -p \"Review this\"\n"
        "  tau --continue -p @notes.md \"Go on with these\"\n"
        "  tau --plain --provider scripted --model tour -p \"Look around\"      no key needed\n";
  }
  return text;
}

}  // namespace tau::app
