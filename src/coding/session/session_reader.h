// Reading a session file: bytes in, header and entries out (SES-20 to SES-43).
//
// A session is a text file of one JSON object a line: a header, then entries in the order in which they were written.
// Nothing in it is trusted. A line that cannot be read is left out and named with its number; a line that holds several
// records (an append met a torn line) is split; what is not understood is kept (SES-37, FF-24, FF-25).
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace tau::coding {

/// One record of the tree, with all its members. A record that is no object, or has no id, is kept in its place but is
/// not part of the tree (SES-72).
struct Entry {
  json::value source;
  std::string type;  // empty when it has none
  std::optional<std::string> id;
  std::optional<std::string> parent_id;  // nothing: a root

  const json::object& object() const;  // of a record that is no object: an empty one
};

Entry make_entry(json::value source);

struct SessionText {
  json::object header;
  std::vector<Entry> entries;
  std::vector<std::string> warnings;  // "line 7: …"
  bool migrated = false;              // from version 1 or 2; the file has to be rewritten before it is appended to
  bool ends_with_newline = true;
};

/// Fails when the first record is no session header (SES-21, FF-28): the text is then no session.
std::expected<SessionText, Error> read_session(std::string_view text);

/// Records of one line: several when they are glued; a whole one behind a torn one counts too (FF-24).
/// `complete` tells whether every byte of the line belonged to a record.
std::vector<json::value> records_of_line(std::string_view line, bool& complete);

/// The bytes of a file of this header and these entries.
std::string write_session(const json::object& header, const std::vector<Entry>& entries);

}  // namespace tau::coding
