// Which session is meant: by options, by path, by the beginning of an id (SES-5, SES-98 to SES-102).
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/cli/arguments.h"
#include "base/error.h"
#include "coding/config/settings.h"
#include "coding/session/session.h"

namespace tau::app {

/// Where session files of this folder are kept; `flat` when it was chosen by the user, who may keep sessions of several
/// projects there (SES-5, SES-98).
struct SessionPlace {
  std::filesystem::path folder;
  std::filesystem::path root;
  bool flat = false;
};

/// `chosen`: what --session-dir says.
SessionPlace session_place(std::optional<std::string> chosen, const coding::Settings& settings,
                           const std::filesystem::path& cwd);

struct NamedFile {
  std::filesystem::path path;
  bool elsewhere = false;  // found by its id in another project's folder
};

/// The file that a path or the beginning of an id means (SES-99); a path need not exist.
std::expected<NamedFile, Error> find_session_file(const std::string& name, const SessionPlace& place,
                                                  const std::filesystem::path& cwd);

/// Opens or makes the session that the options ask for. Refuses what is no session (FF-28).
std::expected<std::shared_ptr<coding::Session>, Error> select_session(const Arguments& arguments,
                                                                      const SessionPlace& place,
                                                                      const std::filesystem::path& cwd,
                                                                      coding::SyncPolicy sync);

}  // namespace tau::app
