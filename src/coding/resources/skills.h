// Skills: instructions for a special task, read by the model when the task comes up (CA-120 to CA-127).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coding/resources/resource_files.h"

namespace tau::coding {

struct Skill {
  std::string name;
  std::string description;
  std::filesystem::path file;      // SKILL.md
  bool hidden_from_model = false;  // `disable-model-invocation`: only the user calls it
  ResourceOrigin origin = ResourceOrigin::kUser;

  std::filesystem::path folder() const { return file.parent_path(); }
};

struct SkillDiagnostic {
  enum class Kind { kWarning, kCollision } kind;
  std::filesystem::path file;  // of the loser, in a collision
  std::string message;
  std::filesystem::path winner;  // in a collision
};

struct Skills {
  std::vector<Skill> skills;  // of equal names the first
  std::vector<SkillDiagnostic> diagnostics;
};

Skills load_skills(const std::vector<ResourceFile>& files);

/// The block for the system prompt (CA-125), beginning with an empty line; nothing when no skill is visible to the
/// model. `with_read`: whether the model has the read tool; else it is told to use bash.
std::string skills_block(const std::vector<Skill>& skills, bool with_read);

/// `/skill:name arguments` as the text that is sent (CA-126). Nothing for any other input and for unknown names. The
/// error says which file cannot be read.
std::expected<std::optional<std::string>, Error> expand_skill_command(std::string_view input,
                                                                      const std::vector<Skill>& skills);

}  // namespace tau::coding
