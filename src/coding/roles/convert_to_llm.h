// From what the coding agent keeps to what a model is sent: the one named conversion between the two (PR-1 to PR-3).
#pragma once

#include <vector>

#include "agent/agent_message.h"
#include "agent/role_set.h"

namespace tau::coding {

namespace detail {
agent::RoleSet& mutable_coding_roles();
}

/// bashExecution, custom, branchSummary and compactionSummary beside the standard three.
const agent::RoleSet& coding_roles();

/// Adds a role of the embedding program, so that sessions read it back as what it was. Before the first session is
/// opened; throws std::logic_error when the name is taken.
template <agent::ApplicationMessage T>
void add_coding_role() {
  detail::mutable_coding_roles().add<T>();
}

/// The projections of the messages, in their order. Nothing is merged, split or changed; messages without a projection
/// are left out. With `block_images` every image becomes a short text (PR-20 to PR-23); the stored messages keep it.
std::vector<ai::MessageRef> convert_to_llm(const std::vector<agent::AgentMessage>& messages, bool block_images = false);

}  // namespace tau::coding
