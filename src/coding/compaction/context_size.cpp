#include "coding/compaction/context_size.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "ai/token_estimate.h"
#include "base/utf8.h"
#include "coding/roles/bash_execution.h"
#include "coding/roles/branch_summary.h"
#include "coding/roles/compaction_summary.h"
#include "coding/roles/custom.h"

namespace tau::coding {

double estimate_tokens(const agent::AgentMessage& message) {
  if (const ai::Message* standard = message.standard()) return ai::estimate_tokens(*standard);
  if (const auto* custom = message.as<CustomMessage>()) {
    return ai::estimate_tokens(ai::Message(ai::UserMessage{custom->content, 0, {}}));
  }
  if (const auto* bash = message.as<BashExecution>()) {
    const std::size_t units = utf8::utf16_length(bash->command) + utf8::utf16_length(bash->output);
    return std::ceil(static_cast<double>(units) / 4);
  }
  if (const auto* branch = message.as<BranchSummary>()) return ai::estimate_text_tokens(branch->summary);
  if (const auto* compaction = message.as<CompactionSummary>()) return ai::estimate_text_tokens(compaction->summary);
  // A role of the embedding program is as large as what the model sees of it.
  double tokens = 0;
  for (const ai::MessageRef& projected : message.projection())
    tokens += ai::estimate_tokens(*projected);
  return tokens;
}

double estimate_tokens(const std::vector<agent::AgentMessage>& messages) {
  double tokens = 0;
  for (const agent::AgentMessage& message : messages)
    tokens += estimate_tokens(message);
  return tokens;
}

double reported_tokens(const ai::AssistantMessage& reply) {
  if (reply.stop_reason == ai::StopReason::kError || reply.stop_reason == ai::StopReason::kAborted) return 0;
  const ai::Usage& usage = reply.usage;
  return usage.total_tokens > 0 ? usage.total_tokens
                                : usage.input + usage.output + usage.cache_read + usage.cache_write;
}

double context_tokens(const std::vector<agent::AgentMessage>& messages, UsageScope scope) {
  ai::Milliseconds compacted_at = std::numeric_limits<ai::Milliseconds>::min();
  if (scope == UsageScope::kSinceCompaction) {
    for (const agent::AgentMessage& message : messages) {
      if (const auto* summary = message.as<CompactionSummary>()) {
        compacted_at = std::max(compacted_at, summary->timestamp);
      }
    }
  }
  double tokens = 0;
  for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
    const ai::AssistantMessage* reply = it->assistant();
    if (reply != nullptr && reported_tokens(*reply) > 0 && reply->timestamp >= compacted_at) {
      return tokens + reported_tokens(*reply);
    }
    tokens += estimate_tokens(*it);
  }
  return tokens;
}

}  // namespace tau::coding
