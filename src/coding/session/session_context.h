// From the records of a path to what the agent works with (SES-80 to SES-88).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/agent_message.h"
#include "coding/session/entry_index.h"

namespace tau::coding {

struct ModelReference {
  std::string provider;
  std::string id;
};

/// What the path sets; all of it counts, also what lies before a compaction (SES-81).
struct SessionSettings {
  std::optional<ModelReference> model;
  std::string thinking_level = "off";
  bool has_thinking_level = false;  // a record on the path sets it
};

/// What the active path says.
struct SessionContext : SessionSettings {
  std::vector<agent::AgentMessage> messages;
};

/// The records that make up the conversation: all of the path, or from its last compaction on, that record first, with
/// what it kept (SES-82 to SES-85).
std::vector<EntryNumber> context_entries(const EntryIndex& index, const std::vector<EntryNumber>& path);

/// Decodes two records at most.
SessionSettings settings_of(const EntryIndex& index, const std::vector<EntryNumber>& path);

/// The message that a record contributes, or nothing (SES-86).
std::optional<agent::AgentMessage> message_of(const Entry& entry);

/// How many messages the records contribute; decodes next to none of them.
std::size_t count_messages(const EntryIndex& index, const std::vector<EntryNumber>& entries);

}  // namespace tau::coding
