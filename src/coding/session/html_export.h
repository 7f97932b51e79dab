// A session as one web page that needs nothing else (SES-108, MO-60 to MO-65).
//
// The page is text written here around one block of data: the session as JSON in base64. What a model, a tool or a
// file said is only in that block and reaches the page through the viewer's text nodes, so nothing in it can become
// markup or script. The data block has the shape of pi's.
//
// Records go from the session file into the page one at a time: 100 MB of session need a few MB of memory.
#pragma once

#include <expected>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "coding/session/session.h"

namespace tau::coding {

/// What only a running session knows; left out where it is empty.
struct ExportDetails {
  std::string system_prompt;
  json::array tools;  // {name, description, parameters}
};

/// Hands the page over piece by piece. Entries that are damaged inside are left out.
void write_html(const Session& session, const ExportDetails& details,
                const std::function<void(std::string_view piece)>& write);

/// Writes the page to `target` by way of a temporary file beside it; an existing page is replaced. Its folder must
/// exist.
std::expected<void, Error> export_html(const Session& session, const std::filesystem::path& target,
                                       const ExportDetails& details = {});

/// "pi-session-NAME.html" for the session file NAME.jsonl (MO-60).
std::string html_file_name(const std::filesystem::path& session_file);

}  // namespace tau::coding
