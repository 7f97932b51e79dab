#include "app/cli/shell_completion.h"

#include <vector>

#include <fmt/format.h>

#include "app/cli/options.h"

namespace tau::app {

namespace {

bool takes_value(const Option& option) {
  return option.value == OptionValue::kRequired;
}

/// Words to choose from, separated by blanks; empty when the value is free or names a file.
std::string choices_of(const Option& option) {
  switch (option.id) {
    case OptionId::kThinking:
      return "off minimal low medium high xhigh max";
    case OptionId::kMode:
      return "text json rpc";
    case OptionId::kTuiMode:
      return "regular fullscreen";
    case OptionId::kTools:
    case OptionId::kExcludeTools:
      return "read bash edit write grep find ls";
    default:
      return {};
  }
}

bool takes_path(const Option& option) {
  return option.value_name.find("file") != std::string_view::npos ||
         option.value_name.find("path") != std::string_view::npos ||
         option.value_name.find("folder") != std::string_view::npos;
}

/// For single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string bash_script() {
  std::string names;
  std::string values;
  for (const Option& option : options()) {
    names += fmt::format(" --{}", option.name);
    std::string pattern = fmt::format("--{}", option.name);
    if (!option.short_name.empty()) {
      names += fmt::format(" -{}", option.short_name);
      pattern += fmt::format("|-{}", option.short_name);
    }
    if (!takes_value(option)) continue;
    const std::string choices = choices_of(option);
    if (!choices.empty()) {
      values += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n", pattern, choices);
    } else if (takes_path(option)) {
      values += fmt::format("    {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", pattern);
    } else {
      values += fmt::format("    {}) return ;;\n", pattern);
    }
  }
  return fmt::format(
      "# bash completion of tau\n"
      "_tau() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  COMPREPLY=()\n"
      "  case \"$before\" in\n{}  esac\n"
      "  case \"$word\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")) ;;\n"
      "    @*) COMPREPLY=($(compgen -P @ -f -- \"${{word#@}}\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _tau tau\n",
      values, names.substr(1));
}

/// A description between brackets of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_script() {
  std::string script = "#compdef tau\n_arguments -S \\\n";
  for (const Option& option : options()) {
    std::string value;
    if (takes_value(option)) {
      const std::string choices = choices_of(option);
      const std::string action = !choices.empty() ? "(" + choices + ")" : takes_path(option) ? "_files" : " ";
      value = fmt::format(":{}:{}", zsh_text(option.value_name), action);
    }
    std::vector<std::string> names{fmt::format("--{}", option.name)};
    if (!option.short_name.empty()) names.push_back(fmt::format("-{}", option.short_name));
    for (const std::string& name : names) {
      script += fmt::format("  {} \\\n", quoted(fmt::format("*{}[{}]{}", name, zsh_text(option.help), value)));
    }
  }
  return script + "  '*:message or @file:_files'\n";
}

std::string fish_script() {
  std::string script = "# fish completion of tau\n";
  for (const Option& option : options()) {
    script += fmt::format("complete -c tau -l {}", option.name);
    if (option.short_name.size() == 1) script += fmt::format(" -s {}", option.short_name);
    if (option.short_name.size() > 1) script += fmt::format(" -o {}", option.short_name);
    if (takes_value(option)) {
      const std::string choices = choices_of(option);
      script += " -r";
      if (!choices.empty()) {
        script += fmt::format(" -f -a {}", quoted(choices));
      } else if (!takes_path(option)) {
        script += " -f";
      }
    }
    script += fmt::format(" -d {}\n", quoted(option.help));
  }
  return script;
}

/// Text for man: a hyphen is a hyphen, a leading dot is no request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

}  // namespace

std::optional<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return std::nullopt;
}

std::string manual_page(std::string_view version) {
  std::string page = fmt::format(
      ".TH TAU 1 \"\" \"tau {}\" \"User Commands\"\n"
      ".SH NAME\ntau \\- a coding agent for the terminal\n"
      ".SH SYNOPSIS\n.B tau\n[options] [@file ...] [message ...]\n"
      ".SH DESCRIPTION\n"
      "Talks to a language model that reads, edits and runs things in the current folder. Text that is piped in and "
      "files "
      "named with @ become part of the first message. After \\-\\- every word is a message or an @file.\n"
      ".SH OPTIONS\n",
      roff(version));
  std::string_view topic;
  for (const Option& option : options()) {
    if (option.topic != topic) {
      topic = option.topic;
      page += fmt::format(".SS {}\n", topic);
    }
    std::string names = fmt::format("\\-\\-{}", roff(option.name));
    if (!option.short_name.empty()) names += fmt::format(", \\-{}", roff(option.short_name));
    page += fmt::format(".TP\n.B {}", names);
    if (!option.value_name.empty()) page += fmt::format(" \\fI{}\\fR", roff(option.value_name));
    page += fmt::format("\n{}\n", roff(option.help));
  }
  page +=
      ".SH EXIT STATUS\n.TP\n.B 0\nSuccess.\n.TP\n.B 1\nWrong arguments, a failed start, or an answer that failed, was "
      "aborted or was cut.\n.TP\n.B 129, 130, 143\nEnded by SIGHUP, SIGINT or SIGTERM.\n"
      ".SH FILES\n.TP\n.I ~/.pi/agent\nSettings, keys, models and sessions (PI_CODING_AGENT_DIR names another "
      "folder).\n"
      ".TP\n.I .pi\nA project's own settings and resources.\n"
      ".SH EXAMPLES\n.EX\ntau \\-p \"Which files does the build need?\"\ngit diff | tau \\-p \"Review this\"\n"
      "tau \\-\\-continue \\-p @notes.md \"Go on with these\"\n.EE\n";
  return page;
}

}  // namespace tau::app
