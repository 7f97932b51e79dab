#include "coding/session/session_store.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/file_url.h"
#include "base/files.h"
#include "coding/session/session_list.h"
#include "coding/session/session_loader.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

/// Session files in a folder, the one changed last first.
std::vector<fs::path> files_by_time(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".jsonl" && entry.is_regular_file(ignored)) {
      found.emplace_back(entry.last_write_time(ignored), entry.path());
    }
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  std::vector<fs::path> files;
  files.reserve(found.size());
  for (auto& [time, path] : found)
    files.push_back(std::move(path));
  return files;
}

bool is_of(const json::object& header, const std::optional<fs::path>& cwd) {
  if (!cwd) return true;
  const auto stored = json::find_string(header, "cwd");
  return stored && resolve_path(*stored, *cwd) == resolve_path(cwd->string(), fs::current_path());
}

struct Candidate {
  fs::path file;
  bool exact = false;
};

/// Files whose id is `id` or begins with it. Only their heads are read (FF-100).
std::vector<Candidate> candidates_in(const fs::path& folder, std::string_view id, const std::optional<fs::path>& cwd) {
  std::vector<Candidate> found;
  for (const fs::path& file : files_by_time(folder)) {
    const auto header = read_session_header(file);
    if (!header || !is_of(*header, cwd)) continue;
    const std::string own = json::string_or(*header, "id");
    if (own.starts_with(id)) found.push_back({file, own == id});
  }
  return found;
}

/// The one with exactly this id, or the one that was talked in last.
std::optional<fs::path> best_of(const std::vector<Candidate>& candidates) {
  for (const bool exact : {true, false}) {
    const Candidate* best = nullptr;
    std::int64_t best_time = 0;
    for (const Candidate& candidate : candidates) {
      if (candidate.exact != exact) continue;
      if (candidates.size() == 1) return candidate.file;
      const auto info = read_session_info(candidate.file, InfoDetail::kHead);
      if (!info || (best != nullptr && info->modified <= best_time)) continue;
      best = &candidate;
      best_time = info->modified;
    }
    if (best != nullptr) return best->file;
  }
  return std::nullopt;
}

}  // namespace

std::string session_folder_name(std::string_view cwd) {
  std::string path = resolve_path(path_from_file_url(cwd), fs::current_path()).string();
  if (path.starts_with('/') || path.starts_with('\\')) path.erase(0, 1);
  std::replace_if(path.begin(), path.end(), [](char c) { return c == '/' || c == '\\' || c == ':'; }, '-');
  return "--" + path + "--";
}

std::optional<fs::path> most_recent_session(const fs::path& folder, const std::optional<fs::path>& cwd) {
  for (const fs::path& file : files_by_time(folder)) {
    const auto header = read_session_header(file);
    if (!header) continue;
    if (!is_of(*header, cwd)) continue;
    return file;
  }
  return std::nullopt;
}

std::optional<FoundSession> find_session(std::string_view id, const fs::path& folder, const fs::path& root,
                                         const std::optional<fs::path>& cwd) {
  if (auto file = best_of(candidates_in(folder, id, cwd))) return FoundSession{*file, false};
  std::vector<Candidate> elsewhere;
  if (cwd) elsewhere = candidates_in(folder, id, std::nullopt);
  std::error_code failed;
  for (auto it = fs::directory_iterator(root, failed); !failed && it != fs::directory_iterator();
       it.increment(failed)) {
    std::error_code ignored;
    if (!it->is_directory(ignored) || it->path() == folder) continue;
    for (Candidate& candidate : candidates_in(it->path(), id, std::nullopt))
      elsewhere.push_back(std::move(candidate));
  }
  if (auto file = best_of(elsewhere)) return FoundSession{*file, true};
  return std::nullopt;
}

std::optional<std::string> session_id_error(std::string_view id) {
  const auto is_alphanumeric = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const bool ok =
      !id.empty() && is_alphanumeric(id.front()) && is_alphanumeric(id.back()) &&
      std::all_of(id.begin(), id.end(), [&](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
  if (ok) return std::nullopt;
  return "a session id holds only letters, digits, '-', '_' and '.', and begins and ends with a letter or digit";
}

}  // namespace tau::coding
