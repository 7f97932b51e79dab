// What is wrong with a session file, and a copy in which it is not (SES-31 to SES-37, FF-23 to FF-26, IV-1 to IV-7).
//
// Reading is forgiving: a damaged file opens, and what could not be read is named. A check is not: it lists everything
// that a careful writer would not have written, each with its line. Two sorts of findings:
//
//   - of the file: lines that are no records, records that cannot be placed in the tree;
//   - of the conversation: the invariants of a transcript, on every branch, by the checks of the agent layer.
//
// A repair makes a copy. The file itself is never touched: what a repair takes for rubbish may be worth something to
// somebody who knows better.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace tau::coding {

struct Finding {
  std::uint32_t line = 0;  // from 1; 0: of the file as a whole
  std::string rule;        // "SES-74", "FF-24", "IV-2"
  std::string what;        // for a person

  friend bool operator==(const Finding&, const Finding&) = default;
};

/// By line. Fails when the file cannot be read or is no session at all (FF-28); changes nothing.
std::expected<std::vector<Finding>, Error> check_session(const std::filesystem::path& file);

struct Repaired {
  std::filesystem::path file;  // the copy
  std::vector<Finding> done;   // one for each change; empty: the copy holds the same records
};

/// Writes a mended copy beside the file: "NAME.repaired.jsonl", or with a number when that exists. Of version 3, one
/// record a line; unreadable lines are left out; a record whose parent is unknown hangs on the record before it, and
/// so does one without an id, which gets one; of rings of parents the first record becomes a root; a repeated id
/// becomes a new one in the earlier record. Texts of messages stay as they are.
std::expected<Repaired, Error> repair_session(const std::filesystem::path& file);

}  // namespace tau::coding
