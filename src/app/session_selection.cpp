#include "app/session_selection.h"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "coding/config/paths.h"
#include "coding/session/session_fork.h"
#include "coding/session/session_store.h"

namespace tau::app {

namespace fs = std::filesystem;

using coding::Session;
using coding::SyncPolicy;

namespace {

using Opened = std::expected<std::shared_ptr<Session>, Error>;

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.find('\\') != std::string::npos || text.ends_with(".jsonl");
}

Opened open_named(const std::string& name, const SessionPlace& place, const fs::path& cwd, SyncPolicy sync) {
  const auto found = find_session_file(name, place, cwd);
  if (!found) return std::unexpected(found.error());
  if (found->elsewhere) {
    return std::unexpected(error(
        fmt::format("The session '{}' belongs to another folder: {}. Start tau there, name the file, or take a copy "
                    "of it here with --fork {}",
                    name, found->path.string(), name)));
  }
  return Session::open(found->path, cwd, sync);
}

/// A session with exactly this id; another one whose id only begins with it does not count (SES-100).
std::optional<fs::path> with_id(const std::string& id, const SessionPlace& place) {
  const auto found = coding::find_session(id, place.folder, place.folder);
  if (!found || found->elsewhere) return std::nullopt;
  const auto header = coding::read_session_header(found->file);
  if (!header || json::string_or(*header, "id") != id) return std::nullopt;
  return found->file;
}

/// `--fork`: all branches of the source, in a new file of this folder (SES-94).
Opened fork_named(const Arguments& arguments, const SessionPlace& place, const fs::path& cwd, SyncPolicy sync) {
  const auto source = find_session_file(*arguments.fork, place, cwd);
  if (!source) return std::unexpected(source.error());
  if (arguments.session_id && with_id(*arguments.session_id, place)) {
    return std::unexpected(error(fmt::format("A session with the id {} exists already", *arguments.session_id)));
  }
  auto fork = coding::fork_file(source->path, cwd, place.folder, arguments.session_id.value_or(""));
  if (!fork) return fork;
  const fs::path file = *(*fork)->file();
  fork->reset();  // one session on a file at a time
  return Session::open(file, cwd, sync);
}

}  // namespace

SessionPlace session_place(std::optional<std::string> chosen, const coding::Settings& settings, const fs::path& cwd) {
  if (!chosen) {
    const char* variable = std::getenv("PI_CODING_AGENT_SESSION_DIR");
    if (variable != nullptr && *variable != '\0') chosen = variable;
  }
  if (!chosen) chosen = settings.session_folder();
  if (chosen) {
    const fs::path folder = resolve_path(*chosen, cwd);
    return {folder, folder, true};
  }
  const fs::path root = coding::agent_folder() / "sessions";
  return {root / coding::session_folder_name(cwd.string()), root, false};
}

std::expected<NamedFile, Error> find_session_file(const std::string& name, const SessionPlace& place,
                                                  const fs::path& cwd) {
  if (is_path(name)) return NamedFile{resolve_path(name, cwd), false};
  const auto found = coding::find_session(name, place.folder, place.root);
  if (!found) return std::unexpected(error(fmt::format("No session found matching '{}'", name)));
  return NamedFile{found->file, found->elsewhere};
}

Opened select_session(const Arguments& arguments, const SessionPlace& place, const fs::path& cwd, SyncPolicy sync) {
  if (arguments.session_id) {
    if (const auto wrong = coding::session_id_error(*arguments.session_id)) return std::unexpected(error(*wrong));
  }
  if (arguments.no_session) return Session::in_memory(cwd, arguments.session_id.value_or(""));
  if (arguments.fork) return fork_named(arguments, place, cwd, sync);
  if (arguments.session) return open_named(*arguments.session, place, cwd, sync);
  if (arguments.continue_session) {
    const auto recent = coding::most_recent_session(place.folder, place.flat ? std::optional(cwd) : std::nullopt);
    if (recent) return Session::open(*recent, cwd, sync);
  }
  if (arguments.session_id) {
    if (const auto file = with_id(*arguments.session_id, place)) return Session::open(*file, cwd, sync);
  }
  return Session::create(place.folder, cwd, arguments.session_id.value_or(""), sync);
}

}  // namespace tau::app
