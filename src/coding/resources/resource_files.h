// Which files of one kind (skills, prompt templates) there are: the user's and the project's folders, entries of the
// settings, packages and the command line, in the order in which the first of two equal names wins (CA-120, CA-130,
// CA-141).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "coding/config/settings.h"

namespace tau::coding {

enum class ResourceOrigin { kProject, kUser, kPackage, kCommandLine };

struct ResourceFile {
  std::filesystem::path path;
  ResourceOrigin origin;
  bool loose = false;  // a skill that is a file of its own, not a folder with SKILL.md
};

struct ResourceRequest {
  const Settings* settings = nullptr;  // knows the agent folder and whether the project is trusted
  std::filesystem::path cwd;
  std::filesystem::path home;
  std::vector<std::string> command_line;               // --skill, --prompt-template: files or folders
  bool discover = true;                                // false: --no-skills, --no-prompt-templates
  std::vector<std::filesystem::path> package_folders;  // the packages' own skills or prompts folders
};

struct ResourceFiles {
  std::vector<ResourceFile> files;
  std::vector<std::string> warnings;  // named paths that do not exist
};

ResourceFiles skill_files(const ResourceRequest& request);
ResourceFiles prompt_template_files(const ResourceRequest& request);

/// The skills below one folder. `loose_in_root`: whether `*.md` count directly in the folder (as in .pi/skills) or in
/// its sub-folders only (as in .agents/skills).
std::vector<ResourceFile> find_skills(const std::filesystem::path& folder, bool loose_in_root, ResourceOrigin origin);

/// The folder that holds `.git`, from `folder` upwards; empty when there is none.
std::filesystem::path git_root_of(const std::filesystem::path& folder);

}  // namespace tau::coding
