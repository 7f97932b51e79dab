// What an agent reports (AG section 6), and how it is delivered.
//
// Deliveries are awaited one after the other: the loop goes on when every listener is done with an event (AG-29,
// AG-65). A listener that has nothing to wait for returns no Completion, and no coroutine is made: that is what lets a
// stream of half a million deltas cost little more than its parsing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "agent/agent_message.h"
#include "agent/tool.h"
#include "ai/stream.h"

namespace tau::agent {

struct AgentStart {};
struct AgentEnd {
  std::vector<AgentMessage> messages;  // the run's own: prompts, replies, results
};
struct TurnStart {};
struct TurnEnd {
  AgentMessage message;
  std::vector<AgentMessage> tool_results;
};
struct MessageStart {
  AgentMessage message;  // of an assistant: a snapshot of the partial reply
};
struct MessageUpdate {
  const ai::AssistantMessage& message;  // the live partial reply; valid during the delivery
  const ai::StreamEvent& event;
};
struct MessageEnd {
  AgentMessage message;  // the very message of the transcript (AG-54)
};
struct ToolExecutionStart {
  std::string tool_call_id;
  std::string tool_name;
  json::value arguments;  // as the model sent them
};
struct ToolExecutionUpdate {
  std::string tool_call_id;
  std::string tool_name;
  json::value arguments;
  ToolResult partial;
};
struct ToolExecutionEnd {
  std::string tool_call_id;
  std::string tool_name;
  ToolResult result;
  bool is_error = false;
};

using AgentEvent = std::variant<AgentStart, AgentEnd, TurnStart, TurnEnd, MessageStart, MessageUpdate, MessageEnd,
                                ToolExecutionStart, ToolExecutionUpdate, ToolExecutionEnd>;

/// "agent_start", "turn_end", …
std::string_view type_of(const AgentEvent& event);

/// The form of section 6.1, message_update with the whole message in it.
json::object to_json(const AgentEvent& event);

/// Nothing: the delivery is done. Otherwise it is done when the awaitable is.
using Completion = std::optional<asio::awaitable<void>>;

/// Takes one event; the event is valid until the delivery is done.
using AgentEventSink = std::function<Completion(const AgentEvent& event)>;

}  // namespace tau::agent
