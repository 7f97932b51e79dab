// What a session has used so far (SES-110, SES-111).
#pragma once

#include <string>
#include <vector>

#include "coding/session/entry_index.h"

namespace tau::coding {

struct SessionStats {
  std::size_t user_messages = 0;
  std::size_t assistant_messages = 0;
  std::size_t tool_calls = 0;
  std::size_t tool_results = 0;
  std::size_t total_messages = 0;  // of any role
  // Tokens, and US dollars.
  double input = 0;
  double output = 0;
  double cache_read = 0;
  double cache_write = 0;
  double cost = 0;
  double total_tokens() const { return input + output + cache_read + cache_write; }

  struct Part {
    std::string name;  // "provider/model", or what was used beside replies
    double cost = 0;
  };
  std::vector<Part> costs;  // without those of 0, dearest first
};

/// Over all records, also those of other branches and of before a compaction. Decodes every one.
SessionStats stats_of(const EntryIndex& index);

}  // namespace tau::coding
