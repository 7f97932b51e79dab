#include "coding/session/session_store.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <vector>

#include "base/file_url.h"
#include "base/files.h"
#include "coding/session/session_reader.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kHeaderLimit = 1 << 20;  // bytes looked at for a header

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
  for (auto& [time, path] : found)
    files.push_back(std::move(path));
  return files;
}

std::optional<fs::path> find_in(const fs::path& folder, std::string_view id, bool whole) {
  for (const fs::path& file : files_by_time(folder)) {
    // The name holds the id (SES-7): headers are read only of those that can match.
    const std::string name = file.filename().string();
    const bool likely = name.find(id) != std::string::npos || name.find('_') == std::string::npos;
    if (!likely) continue;
    const auto header = read_session_header(file);
    if (!header) continue;
    const std::string found = json::string_or(*header, "id");
    if (whole ? found == id : found.starts_with(id)) return file;
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

std::optional<json::object> read_session_header(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text;
  std::string chunk(4096, '\0');
  while (in && text.size() < kHeaderLimit) {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    const bool at_end = in.gcount() < static_cast<std::streamsize>(chunk.size());
    text.append(chunk, 0, static_cast<std::size_t>(in.gcount()));
    std::string_view rest = without_byte_order_mark(text);
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos && !at_end) break;  // the line goes on
      bool complete = true;
      for (const json::value& record : records_of_line(rest.substr(0, end), complete)) {
        const json::object* o = record.if_object();
        if (o == nullptr || json::string_or(*o, "type") != "session" || !json::find_string(*o, "id")) {
          return std::nullopt;
        }
        return *o;
      }
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
  return std::nullopt;
}

std::optional<fs::path> most_recent_session(const fs::path& folder, const std::optional<fs::path>& cwd) {
  for (const fs::path& file : files_by_time(folder)) {
    const auto header = read_session_header(file);
    if (!header) continue;
    if (cwd && resolve_path(json::string_or(*header, "cwd"), *cwd) != resolve_path(cwd->string(), *cwd)) continue;
    return file;
  }
  return std::nullopt;
}

std::optional<FoundSession> find_session(std::string_view id, const fs::path& folder, const fs::path& root) {
  for (const bool whole : {true, false}) {
    if (auto file = find_in(folder, id, whole)) return FoundSession{*file, false};
  }
  for (const bool whole : {true, false}) {
    std::error_code ignored;
    for (const auto& project : fs::directory_iterator(root, ignored)) {
      if (!project.is_directory(ignored) || project.path() == folder) continue;
      if (auto file = find_in(project.path(), id, whole)) return FoundSession{*file, true};
    }
  }
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
