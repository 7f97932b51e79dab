// What a compaction would summarise and what it would keep (SES-130 to SES-136).
//
// The recent part is kept as it is; where it begins is found by walking back until it is worth keepRecentTokens. It
// begins at a user message or, inside a long turn, at a reply: never at a tool result, whose call would be gone
// (FF-42). A turn that is cut like this is "split": its beginning is summarised apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/agent_message.h"
#include "coding/compaction/file_tracking.h"
#include "coding/session/session.h"

namespace tau::coding {

/// Settings compaction.* (SES-120), in tokens.
struct CompactionSettings {
  bool enabled = true;  // automatic ones
  double reserve_tokens = 16384;
  double keep_recent_tokens = 20000;
};

struct CompactionPreparation {
  std::string first_kept_id;  // key of an entry, see entry.h
  bool is_split_turn = false;
  std::vector<agent::AgentMessage> history;      // to be summarised
  std::vector<agent::AgentMessage> turn_prefix;  // the beginning of the split turn
  double kept_tokens = 0;                        // estimate of what stays
  double tokens_before = 0;
  std::optional<std::string> previous_summary;  // which the new one carries on
  FileLists files;
};

/// Nothing when there is nothing to compact: the path ends with a compaction, or the recent part is all there is.
std::optional<CompactionPreparation> prepare_compaction(const Session& session, double keep_recent_tokens);

}  // namespace tau::coding
