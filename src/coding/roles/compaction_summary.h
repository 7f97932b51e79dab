// What stands for the part of the history that was compacted.
#pragma once

#include <string>

#include "agent/agent_message.h"

namespace tau::coding {

struct CompactionSummary {
  static constexpr std::string_view role = "compactionSummary";
  static constexpr int version = 1;

  std::string summary;
  double tokens_before = 0;
  ai::Milliseconds timestamp = 0;
  json::object extra;
};

json::object to_json(const CompactionSummary& m);
std::expected<CompactionSummary, Error> from_json(std::type_identity<CompactionSummary>, const json::object& o);
std::vector<ai::MessageRef> project(const CompactionSummary& m);

}  // namespace tau::coding
