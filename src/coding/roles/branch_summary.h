// What a branch was about from which the conversation came back.
#pragma once

#include <optional>
#include <string>

#include "agent/agent_message.h"

namespace tau::coding {

struct BranchSummary {
  static constexpr std::string_view role = "branchSummary";
  static constexpr int version = 1;

  std::string summary;
  std::optional<std::string> from_id;  // entry that the branch ended with
  ai::Milliseconds timestamp = 0;
  json::object extra;
};

json::object to_json(const BranchSummary& m);
std::expected<BranchSummary, Error> from_json(std::type_identity<BranchSummary>, const json::object& o);
std::vector<ai::MessageRef> project(const BranchSummary& m);

}  // namespace tau::coding
