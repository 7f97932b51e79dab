// New sessions out of old ones: /fork and /clone, --fork, /import and the JSONL export (SES-90 to SES-94, SES-105,
// SES-107). The source is never changed.
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "coding/session/session.h"

namespace tau::coding {

/// A session of the path to `leaf_id` (SES-90 to SES-92): label records are taken out and the labels that still have a
/// target set anew at the end; a compaction keeps what it kept (FF-30). It is kept in `folder` when the source has a
/// file, and written at once when it holds a reply.
std::expected<std::shared_ptr<Session>, Error> fork_at(const Session& source, std::string_view leaf_id,
                                                       const std::filesystem::path& folder);

struct ForkBefore {
  std::shared_ptr<Session> session;
  std::string text;  // of the user message that the fork is to replace, for the editor
};
/// A session of what came before a user message (SES-93).
std::expected<ForkBefore, Error> fork_before(const Session& source, std::string_view entry_id,
                                             const std::filesystem::path& folder);

/// A session of all records of a file, all branches, for another project (SES-94). Written at once.
std::expected<std::shared_ptr<Session>, Error> fork_file(const std::filesystem::path& source,
                                                         const std::filesystem::path& target_cwd,
                                                         const std::filesystem::path& folder, std::string id = {});

/// The bytes of a session file that holds the current path only, as one chain (SES-105).
std::string export_jsonl(const Session& session);

/// Copies a session file into `folder` and returns the copy, or the file itself when it is there already (SES-107).
/// Never replaces a file; what is no session is refused and leaves nothing behind (FF-29).
std::expected<std::filesystem::path, Error> import_session(const std::filesystem::path& file,
                                                           const std::filesystem::path& folder);

}  // namespace tau::coding
