#include "coding/resources/resource_files.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/files.h"
#include "coding/config/glob.h"
#include "coding/config/paths.h"
#include "coding/resources/ignore_rules.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSkillFile = "SKILL.md";

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());  // CA-350: byte order decides ties
  return names;
}

/// `!glob`, `+path` and `-path` of one settings file.
struct Overrides {
  fs::path base;  // the folder of the settings file
  std::vector<std::string> exclude, force_include, force_exclude;

  bool keeps(const fs::path& file) const {
    std::vector<fs::path> subjects{file};
    if (file.filename() == kSkillFile) subjects.push_back(file.parent_path());
    const auto any = [&](const std::vector<std::string>& patterns, auto&& matches) {
      return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        return std::any_of(subjects.begin(), subjects.end(),
                           [&](const fs::path& subject) { return matches(pattern, subject); });
      });
    };
    const auto by_glob = [&](const std::string& pattern, const fs::path& subject) {
      return glob_matches(pattern, subject.lexically_relative(base).generic_string()) ||
             glob_matches(pattern, subject.filename().string()) || glob_matches(pattern, subject.generic_string());
    };
    const auto by_path = [&](const std::string& pattern, const fs::path& subject) {
      return resolve_path(pattern, base) == subject;
    };
    bool kept = !any(exclude, by_glob);
    if (any(force_include, by_path)) kept = true;
    if (any(force_exclude, by_path)) kept = false;
    return kept;
  }
};

struct Entries {
  std::vector<fs::path> paths;
  Overrides overrides;
};

Entries read_entries(const Settings& settings, std::string_view kind, SettingsScope scope, const fs::path& base) {
  Entries out;
  out.overrides.base = base;
  for (const std::string& entry : settings.resource_entries(kind, scope)) {
    if (entry.empty()) continue;
    const std::string rest = entry.substr(1);
    switch (entry[0]) {
      case '!':
        out.overrides.exclude.push_back(rest);
        break;
      case '+':
        out.overrides.force_include.push_back(rest);
        break;
      case '-':
        out.overrides.force_exclude.push_back(rest);
        break;
      default:
        out.paths.push_back(resolve_path(entry, base));
    }
  }
  return out;
}

class SkillSearch {
 public:
  SkillSearch(fs::path root, bool loose_in_root, ResourceOrigin origin)
      : root_(std::move(root)), loose_in_root_(loose_in_root), origin_(origin) {}

  std::vector<ResourceFile> run() {
    scan("");
    return std::move(found_);
  }

 private:
  void scan(const std::string& folder) {  // relative to the root
    const fs::path here = folder.empty() ? root_ : root_ / folder;
    std::error_code failed;
    const fs::path real = fs::canonical(here, failed);
    if (failed || !visited_.insert(real).second) return;  // a link that leads back
    for (const char* name : {".gitignore", ".ignore", ".fdignore"}) {
      if (!fs::is_regular_file(here / name, failed)) continue;
      if (const auto text = read_file(here / name)) rules_.add(folder, *text);
    }
    const auto relative = [&](const std::string& name) { return folder.empty() ? name : folder + "/" + name; };
    const std::string skill(kSkillFile);
    if (fs::is_regular_file(here / skill, failed) && !rules_.ignores(relative(skill), false)) {
      found_.push_back({here / skill, origin_, false});
      return;
    }
    for (const std::string& name : names_in(here)) {
      if (name.starts_with('.') || name == "node_modules") continue;
      const bool is_folder = fs::is_directory(here / name, failed);
      if (rules_.ignores(relative(name), is_folder)) continue;
      if (is_folder) {
        scan(relative(name));
      } else if (name.ends_with(".md") && folder.empty() == loose_in_root_ &&
                 fs::is_regular_file(here / name, failed)) {
        found_.push_back({here / name, origin_, true});
      }
    }
  }

  fs::path root_;
  bool loose_in_root_;
  ResourceOrigin origin_;
  IgnoreRules rules_;
  std::set<fs::path> visited_;
  std::vector<ResourceFile> found_;
};

std::vector<ResourceFile> find_templates(const fs::path& folder, ResourceOrigin origin) {
  std::vector<ResourceFile> found;
  for (const std::string& name : names_in(folder)) {
    std::error_code failed;
    if (name.ends_with(".md") && fs::is_regular_file(folder / name, failed))
      found.push_back({folder / name, origin, true});
  }
  return found;
}

/// One kind of resource: how to look into a folder, and which folders are looked into by themselves.
struct Kind {
  std::string_view name;
  std::function<std::vector<ResourceFile>(const fs::path& folder, ResourceOrigin origin)> in_folder;
  std::vector<std::pair<fs::path, bool>> project_folders;  // and whether it is an `.agents` one
  std::vector<std::pair<fs::path, bool>> user_folders;
};

class Collector {
 public:
  Collector(const ResourceRequest& request, const Kind& kind) : request_(request), kind_(kind) {}

  ResourceFiles run() {
    if (request_.discover) {
      const Settings& settings = *request_.settings;
      if (settings.project_trusted()) {
        scope(SettingsScope::kProject, ResourceOrigin::kProject, project_folder(request_.cwd), kind_.project_folders);
      }
      scope(SettingsScope::kGlobal, ResourceOrigin::kUser, settings.agent_folder(), kind_.user_folders);
      for (const fs::path& folder : request_.package_folders)
        add(kind_.in_folder(folder, ResourceOrigin::kPackage), nullptr);
    }
    for (const std::string& path : request_.command_line) {
      named(resolve_path(path, request_.cwd), ResourceOrigin::kCommandLine, nullptr);
    }
    return std::move(out_);
  }

 private:
  void scope(SettingsScope settings_scope, ResourceOrigin origin, const fs::path& base,
             const std::vector<std::pair<fs::path, bool>>& folders) {
    const Entries entries = read_entries(*request_.settings, kind_.name, settings_scope, base);
    for (const fs::path& path : entries.paths)
      named(path, origin, &entries.overrides);
    for (const auto& [folder, is_agents] : folders) {
      add(is_agents ? find_skills(folder, false, origin) : kind_.in_folder(folder, origin), &entries.overrides);
    }
  }

  void named(const fs::path& path, ResourceOrigin origin, const Overrides* overrides) {
    std::error_code failed;
    if (fs::is_directory(path, failed)) {
      add(kind_.in_folder(path, origin), overrides);
    } else if (fs::exists(path, failed)) {
      add({{path, origin, path.filename() != kSkillFile}}, overrides);
    } else {
      out_.warnings.push_back(fmt::format("{} path does not exist: {}", kind_.name, path.string()));
    }
  }

  void add(std::vector<ResourceFile> files, const Overrides* overrides) {
    for (ResourceFile& file : files) {
      if (overrides != nullptr && !overrides->keeps(file.path)) continue;
      std::error_code failed;
      fs::path real = fs::canonical(file.path, failed);
      if (!seen_.insert(failed ? file.path : std::move(real)).second) continue;
      out_.files.push_back(std::move(file));
    }
  }

  const ResourceRequest& request_;
  const Kind& kind_;
  ResourceFiles out_;
  std::set<fs::path> seen_;
};

}  // namespace

fs::path git_root_of(const fs::path& folder) {
  for (fs::path at = folder;; at = at.parent_path()) {
    std::error_code failed;
    if (fs::exists(at / ".git", failed)) return at;
    if (!at.has_relative_path()) return {};
  }
}

std::vector<ResourceFile> find_skills(const fs::path& folder, bool loose_in_root, ResourceOrigin origin) {
  return SkillSearch(folder, loose_in_root, origin).run();
}

ResourceFiles skill_files(const ResourceRequest& request) {
  Kind kind;
  kind.name = "skills";
  kind.in_folder = [](const fs::path& folder, ResourceOrigin origin) { return find_skills(folder, true, origin); };
  kind.project_folders.emplace_back(project_folder(request.cwd) / kSkillsFolder, false);
  const fs::path users = request.home / ".agents" / "skills";
  const fs::path last = git_root_of(request.cwd);
  for (fs::path folder = request.cwd;; folder = folder.parent_path()) {
    const fs::path skills = folder / ".agents" / "skills";
    if (skills != users) kind.project_folders.emplace_back(skills, true);
    if (folder == last || !folder.has_relative_path()) break;
  }
  kind.user_folders.emplace_back(request.settings->agent_folder() / kSkillsFolder, false);
  kind.user_folders.emplace_back(users, true);
  return Collector(request, kind).run();
}

ResourceFiles prompt_template_files(const ResourceRequest& request) {
  Kind kind;
  kind.name = "prompts";
  kind.in_folder = find_templates;
  kind.project_folders.emplace_back(project_folder(request.cwd) / kPromptsFolder, false);
  kind.user_folders.emplace_back(request.settings->agent_folder() / kPromptsFolder, false);
  return Collector(request, kind).run();
}

}  // namespace tau::coding
