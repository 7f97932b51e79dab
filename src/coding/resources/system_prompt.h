// The system prompt (CA-100 to CA-106): who the agent is, what it can use, what this user and this project ask for, and
// where it works. It holds no date, so that it stays the same from request to request and can be cached.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "coding/resources/context_files.h"
#include "coding/resources/skills.h"

namespace tau::coding {

/// What a tool wants said about itself.
struct ToolNotes {
  std::string name;
  std::optional<std::string> snippet;   // one line for the list of tools; none = not listed
  std::vector<std::string> guidelines;  // each becomes a bullet
};

struct SystemPromptParts {
  std::vector<ToolNotes> tools;       // the active ones, in order
  std::optional<std::string> custom;  // takes the place of tau's own text (CA-102)
  std::vector<std::string> append;    // joined by empty lines
  std::vector<ContextFile> context_files;
  std::vector<Skill> skills;            // shown when the model can read files
  std::filesystem::path documentation;  // folder of tau's own documents; empty = not mentioned
  std::filesystem::path cwd;
};

std::string build_system_prompt(const SystemPromptParts& parts);

/// SYSTEM.md and APPEND_SYSTEM.md: the project's when it is trusted, else the user's; the first that is there (CA-105).
struct PromptFiles {
  std::optional<std::string> system;
  std::optional<std::string> append;
  std::vector<std::string> warnings;
};
PromptFiles find_prompt_files(const std::filesystem::path& agent_folder, const std::filesystem::path& cwd,
                              bool project_trusted);

/// `--system-prompt` and `--append-system-prompt`: the content of the file when the argument names one, else the
/// argument itself (CA-104).
std::expected<std::string, Error> prompt_argument(const std::string& argument, const std::filesystem::path& cwd);

}  // namespace tau::coding
