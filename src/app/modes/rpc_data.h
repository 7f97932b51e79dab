// What RPC replies carry (MO-150 to MO-152): JSON texts of a session's records and state.
//
// Texts instead of JSON values: the tree of a long conversation is a chain of thousands of nodes, and a value that is
// nested so deep can be neither written nor destroyed without a stack to match.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/startup.h"
#include "coding/roles/bash_execution.h"
#include "coding/session/session.h"

namespace tau::app {

/// {entries, leafId}: what was appended after the record `since`, or all. Fails for an unknown id.
std::expected<std::string, Error> entries_data(const coding::Session& session, std::optional<std::string_view> since);
/// {tree, leafId}
std::string tree_data(const coding::Session& session);
/// {messages: [{entryId, text}]}: the user messages of all branches that have a text.
std::string fork_messages_data(const coding::Session& session);
/// {messages}: the live transcript.
std::string messages_data(const std::vector<agent::AgentMessage>& messages);
/// {output, exitCode?, cancelled, truncated, fullOutputPath?}
std::string bash_data(const coding::BashExecution& record);
/// {commands}: prompt templates, then skills.
std::string commands_data(const Runtime& runtime);

}  // namespace tau::app
