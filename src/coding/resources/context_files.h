// AGENTS.md and its kin: what a project and its user tell every agent (CA-110 to CA-112).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tau::coding {

struct ContextFile {
  std::filesystem::path path;
  std::string content;
};

struct ContextFiles {
  std::vector<ContextFile> files;     // the agent folder's first, then from the root down to cwd
  std::vector<std::string> warnings;  // files that could not be read
};

/// Both folders absolute. Reads at most one file a folder.
ContextFiles load_context_files(const std::filesystem::path& agent_folder, const std::filesystem::path& cwd);

}  // namespace tau::coding
