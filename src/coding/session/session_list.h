// The sessions of a folder, for pickers and searches (SES-95 to SES-97).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace tau::coding {

struct SessionInfo {
  std::filesystem::path path;
  std::string id;
  std::string cwd;  // empty when the header has none
  std::optional<std::string> name;
  std::optional<std::string> parent_session;
  std::optional<std::int64_t> created;  // Unix milliseconds; nothing when the header's time cannot be read
  std::int64_t modified = 0;            // of the last user or assistant message, else the header, else the file
  std::size_t message_count = 0;
  std::string first_message;  // first text of a user, or "(no messages)"
  std::string all_text;       // of users and assistants, joined by blanks; for searching. Empty with kHead
};

enum class InfoDetail {
  kHead,  // decodes the first and the last messages only: one pass at reading speed, for the first page of a picker
  kFull,  // with the text to search in, and the newest time of all messages
};

/// Nothing when the file is no session or cannot be read.
std::optional<SessionInfo> read_session_info(const std::filesystem::path& file, InfoDetail detail);

struct ListOptions {
  InfoDetail detail = InfoDetail::kFull;
  /// Only sessions of this folder (for folders that hold those of several projects).
  std::optional<std::filesystem::path> only_cwd;
  /// Called from several threads, one at a time.
  std::function<void(std::size_t loaded, std::size_t total)> progress;
  /// Set by the caller to end early; what was read until then is returned.
  const std::atomic<bool>* cancelled = nullptr;
};

/// Sessions directly in `folder`, the one used last first. Blocks; reads several files at once.
std::vector<SessionInfo> list_sessions(const std::filesystem::path& folder, const ListOptions& options = {});

/// Those of every folder directly below `root` (SES-97).
std::vector<SessionInfo> list_all_sessions(const std::filesystem::path& root, const ListOptions& options = {});

}  // namespace tau::coding
