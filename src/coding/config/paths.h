// Where tau finds and keeps its files: pi's own places, so that both programs share settings, keys and sessions.
#pragma once

#include <filesystem>
#include <string_view>

namespace tau::coding {

/// PI_CODING_AGENT_DIR (with ~), else ~/.pi/agent. Absolute.
std::filesystem::path agent_folder();

/// The folder of a project's own settings and resources: `<cwd>/.pi`.
std::filesystem::path project_folder(const std::filesystem::path& cwd);

// Names below the agent folder; settings.json and the resource folders exist below the project folder too.
inline constexpr std::string_view kSettingsFile = "settings.json";
inline constexpr std::string_view kAuthFile = "auth.json";
inline constexpr std::string_view kModelsFile = "models.json";
inline constexpr std::string_view kTrustFile = "trust.json";
inline constexpr std::string_view kSystemPromptFile = "SYSTEM.md";
inline constexpr std::string_view kAppendSystemPromptFile = "APPEND_SYSTEM.md";
inline constexpr std::string_view kSkillsFolder = "skills";
inline constexpr std::string_view kPromptsFolder = "prompts";

/// The home folder.
std::filesystem::path home_folder();

}  // namespace tau::coding
