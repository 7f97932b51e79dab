#include "coding/resources/context_files.h"

#include <algorithm>
#include <optional>

#include "base/files.h"
#include "base/utf8.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNames[] = {"AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"};

std::optional<ContextFile> context_file_in(const fs::path& folder, std::vector<std::string>& warnings) {
  for (const std::string_view name : kNames) {
    const fs::path path = folder / name;
    std::error_code failed;
    if (!fs::is_regular_file(path, failed)) continue;
    const auto bytes = read_file(path);
    if (bytes) return ContextFile{path, utf8::replace_invalid(without_byte_order_mark(*bytes))};
    warnings.push_back(bytes.error().message);
  }
  return std::nullopt;
}

std::vector<fs::path> from_root_to(const fs::path& folder) {
  std::vector<fs::path> folders{folder};
  while (folders.back().has_relative_path())
    folders.push_back(folders.back().parent_path());
  std::reverse(folders.begin(), folders.end());
  return folders;
}

/// A git worktree keeps a file `.git` that points into `<main repository>/.git/worktrees/`.
struct Worktree {
  fs::path root;
  fs::path main_root;
};

std::optional<Worktree> worktree_of(const fs::path& cwd) {
  for (fs::path folder = cwd; folder.has_relative_path(); folder = folder.parent_path()) {
    const fs::path mark = folder / ".git";
    std::error_code failed;
    if (!fs::exists(mark, failed)) continue;
    if (!fs::is_regular_file(mark, failed)) return std::nullopt;
    const auto text = read_file(mark);
    constexpr std::string_view kPrefix = "gitdir:";
    if (!text || !text->starts_with(kPrefix)) return std::nullopt;
    const fs::path target =
        resolve_path(std::string(utf8::trim(std::string_view(*text).substr(kPrefix.size()))), folder);
    const fs::path worktrees = target.parent_path();
    if (worktrees.filename() != "worktrees" || worktrees.parent_path().filename() != ".git") return std::nullopt;
    return Worktree{folder, worktrees.parent_path().parent_path()};
  }
  return std::nullopt;
}

}  // namespace

ContextFiles load_context_files(const fs::path& agent_folder, const fs::path& cwd) {
  ContextFiles out;
  const auto add = [&](std::optional<ContextFile> file) {
    if (!file) return;
    const bool known =
        std::any_of(out.files.begin(), out.files.end(), [&](const ContextFile& f) { return f.path == file->path; });
    if (!known) out.files.push_back(*std::move(file));
  };
  add(context_file_in(agent_folder, out.warnings));
  for (const fs::path& folder : from_root_to(cwd))
    add(context_file_in(folder, out.warnings));

  // CA-112: a worktree inside its own repository would be told the same thing twice.
  if (const auto worktree = worktree_of(cwd)) {
    const auto in = [&](const fs::path& folder) {
      return std::find_if(out.files.begin(), out.files.end(),
                          [&](const ContextFile& file) { return file.path.parent_path() == folder; });
    };
    const auto own = in(worktree->root);
    const auto main = in(worktree->main_root);
    if (own != out.files.end() && main != out.files.end() && own != main &&
        own->path.filename() == main->path.filename()) {
      out.files.erase(main);
    }
  }
  return out;
}

}  // namespace tau::coding
