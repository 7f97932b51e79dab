#include "coding/resources/skills.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "coding/resources/front_matter.h"

namespace tau::coding {

namespace {

constexpr std::size_t kMaxName = 64;  // characters, CA-122
constexpr std::size_t kMaxDescription = 1024;

std::vector<std::string> name_problems(std::string_view name) {
  std::vector<std::string> out;
  if (utf8::utf16_length(name) > kMaxName) out.push_back(fmt::format("name is longer than {} characters", kMaxName));
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string_view::npos) {
    out.emplace_back("name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)");
  }
  if (name.starts_with('-') || name.ends_with('-')) out.emplace_back("name must not begin or end with a hyphen");
  if (name.find("--") != std::string_view::npos) out.emplace_back("name must not contain two hyphens in a row");
  return out;
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

Skills load_skills(const std::vector<ResourceFile>& files) {
  Skills out;
  const auto warn = [&](const ResourceFile& file, std::string message) {
    out.diagnostics.push_back({SkillDiagnostic::Kind::kWarning, file.path, std::move(message), {}});
  };
  for (const ResourceFile& file : files) {
    const auto bytes = read_file(file.path);
    if (!bytes) {
      warn(file, bytes.error().message);
      continue;
    }
    const auto front = split_front_matter(*bytes);
    if (!front) {
      warn(file, front.error().message);
      continue;
    }
    Skill skill;
    skill.file = file.path;
    skill.origin = file.origin;
    skill.name = scalar_text(front->values, "name");
    if (skill.name.empty()) skill.name = skill.folder().filename().string();  // CA-351
    skill.description = scalar_text(front->values, "description");
    skill.hidden_from_model = json::bool_or(front->values, "disable-model-invocation");
    if (utf8::is_blank(skill.description)) {
      if (!file.loose) warn(file, "description is required");
      continue;
    }
    for (std::string& problem : name_problems(skill.name))
      warn(file, std::move(problem));
    if (utf8::utf16_length(skill.description) > kMaxDescription) {
      warn(file, fmt::format("description is longer than {} characters", kMaxDescription));
    }
    const auto winner = std::find_if(out.skills.begin(), out.skills.end(),
                                     [&](const Skill& existing) { return existing.name == skill.name; });
    if (winner != out.skills.end()) {
      out.diagnostics.push_back({SkillDiagnostic::Kind::kCollision, file.path,
                                 fmt::format("name \"{}\" collision", skill.name), winner->file});
      continue;
    }
    out.skills.push_back(std::move(skill));
  }
  return out;
}

std::string skills_block(const std::vector<Skill>& skills, bool with_read) {
  std::string list;
  for (const Skill& skill : skills) {
    if (skill.hidden_from_model) continue;
    list += fmt::format(
        "  <skill>\n    <name>{}</name>\n    <description>{}</description>\n    <location>{}</location>\n  </skill>\n",
        xml(skill.name), xml(skill.description), xml(skill.file.string()));
  }
  if (list.empty()) return {};
  return fmt::format(
      "\n\nThe skills below hold instructions for particular kinds of work.\n"
      "When a task fits the description of one, load its file with {} before you begin.\n"
      "Paths inside a skill are relative to the folder that its file is in.\n\n"
      "<available_skills>\n{}</available_skills>",
      with_read ? "the read tool" : "bash (cat)", list);
}

std::expected<std::optional<std::string>, Error> expand_skill_command(std::string_view input,
                                                                      const std::vector<Skill>& skills) {
  constexpr std::string_view kPrefix = "/skill:";
  if (!input.starts_with(kPrefix)) return std::nullopt;
  input.remove_prefix(kPrefix.size());
  const std::size_t space = input.find(' ');
  const std::string_view name = input.substr(0, space);
  const std::string_view arguments = space == std::string_view::npos ? "" : utf8::trim(input.substr(space + 1));
  const auto skill = std::find_if(skills.begin(), skills.end(), [&](const Skill& s) { return s.name == name; });
  if (skill == skills.end()) return std::nullopt;
  const auto bytes = read_file(skill->file);  // again: it may have been edited
  if (!bytes) return std::unexpected(bytes.error());
  const auto front = split_front_matter(*bytes);
  if (!front) return std::unexpected(error(fmt::format("{}: {}", skill->file.string(), front.error().message)));
  std::string text = fmt::format("<skill name=\"{}\" location=\"{}\">\nReferences are relative to {}.\n\n{}\n</skill>",
                                 skill->name, skill->file.string(), skill->folder().string(), utf8::trim(front->body));
  if (!arguments.empty()) text += fmt::format("\n\n{}", arguments);
  return text;
}

}  // namespace tau::coding
