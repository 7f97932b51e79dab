// All records of a session file with their line numbers and texts, for the tools that look a file over as a whole.
//
// Opening a session never needs this: it costs the whole text in memory.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "coding/session/entry.h"

namespace tau::coding {

struct RawRecord {
  std::uint32_t line = 0;
  EntryType type = EntryType::kUnknown;
  std::string id;      // key (see EntryHead); empty without one
  std::string parent;  // key; empty: none
  bool has_id = false;
  bool has_parent = false;
  std::string text;
};

struct RawRecords {
  RawRecord header;
  std::vector<RawRecord> records;  // in file order, second headers included
  std::vector<std::string> warnings;
  bool ends_with_newline = true;
  std::uint32_t last_line = 1;  // its number
  /// Positions in `records` of each id, in file order.
  std::unordered_map<std::string, std::vector<std::size_t>> by_id;
};

/// Fails when the file cannot be read or its first record is no session header.
std::expected<RawRecords, Error> read_raw_records(const std::filesystem::path& file);

}  // namespace tau::coding
