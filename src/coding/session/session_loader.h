// A session file as it is found: header, index, and what was wrong with it.
//
// Loading changes nothing. Session::open mends what a load reports: it writes the missing line end, or the whole file
// when it is of an old version.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "coding/session/entry_index.h"

namespace tau::coding {

struct LoadedSession {
  json::object header;
  EntryIndex index;
  std::vector<std::string> warnings;     // "line 7: …"
  std::optional<std::string> rewritten;  // the bytes of version 3, when the file is of an older one
  bool ends_with_newline = true;
  std::uint64_t end = 0;  // bytes read
  std::uint32_t next_line = 1;
};

/// Reads an open file, which must stay open as long as the index is used. Fails when its first record is no session
/// header (SES-21, SES-32, FF-28); `path` is for the message.
std::expected<LoadedSession, Error> load_session(int descriptor, const std::filesystem::path& path);

/// The same for a file by its name, with all texts in memory and in version 3.
std::expected<LoadedSession, Error> load_session_text(const std::filesystem::path& path);

/// The header of a session file, without reading more than its beginning (SES-38); nothing when it has none.
std::optional<json::object> read_session_header(const std::filesystem::path& file);

}  // namespace tau::coding
