// Where session files are, and which one is meant (SES-1 to SES-7, SES-98, SES-99).
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tau::coding {

/// "--srv-lab-kettle--" for /srv/lab/kettle (SES-2). `cwd` may begin with ~ or be a file: URL (SES-4).
std::string session_folder_name(std::string_view cwd);

/// The file changed last among the sessions in `folder`; with `cwd` only those of that folder (SES-98).
std::optional<std::filesystem::path> most_recent_session(const std::filesystem::path& folder,
                                                         const std::optional<std::filesystem::path>& cwd);

struct FoundSession {
  std::filesystem::path file;
  bool elsewhere = false;  // in another project's folder
};

/// The session whose id is `id`, or else begins with it: in `folder` first (with `cwd` only sessions of that folder),
/// then in `folder` at large and in the folders below `root` (SES-99). Of several the one that was talked in last.
/// Reads heads only.
std::optional<FoundSession> find_session(std::string_view id, const std::filesystem::path& folder,
                                         const std::filesystem::path& root,
                                         const std::optional<std::filesystem::path>& cwd = {});

/// Nothing, or what is wrong with a session id (SES-10).
std::optional<std::string> session_id_error(std::string_view id);

}  // namespace tau::coding
