// What is left behind when the conversation moves to another branch (SES-161 to SES-163).
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_message.h"
#include "coding/compaction/file_tracking.h"
#include "coding/session/session.h"

namespace tau::coding {

struct BranchRange {
  std::optional<EntryNumber> common_ancestor;  // the deepest entry that both paths share
  std::vector<EntryNumber> entries;            // from behind it to the old leaf, oldest first
};

/// Between the present leaf and `target`.
BranchRange branch_to_leave(const Session& session, EntryNumber target);

struct BranchMessages {
  std::vector<agent::AgentMessage> messages;  // the youngest that fit, oldest first
  double tokens = 0;
  FileLists files;
};

/// `budget` in tokens. Tool results are left out: what they led to stands in the replies.
BranchMessages messages_of_branch(const Session& session, const std::vector<EntryNumber>& entries,
                                  double budget = std::numeric_limits<double>::infinity());

}  // namespace tau::coding
