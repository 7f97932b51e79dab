// How large the conversation is, in tokens: what a provider counted, and a guess for what came after (SES-121,
// SES-122).
#pragma once

#include <vector>

#include "agent/agent_message.h"

namespace tau::coding {

/// Of what the message is made of, four UTF-16 units a token; 0 for an unknown role.
double estimate_tokens(const agent::AgentMessage& message);
double estimate_tokens(const std::vector<agent::AgentMessage>& messages);

/// Tokens that a reply's usage stands for; 0 when it failed, was aborted or reports none.
double reported_tokens(const ai::AssistantMessage& reply);

enum class UsageScope {
  kAll,              // any usage in the list counts
  kSinceCompaction,  // that of replies older than the last compaction's summary does not (FF-36)
};
/// The last usage that counts and the estimates of what follows it; without one the sum of the estimates (FF-37).
double context_tokens(const std::vector<agent::AgentMessage>& messages, UsageScope scope);

}  // namespace tau::coding
