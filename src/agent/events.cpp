#include "agent/events.h"

namespace tau::agent {

namespace {

json::array to_json(const std::vector<AgentMessage>& messages) {
  json::array a;
  a.reserve(messages.size());
  for (const AgentMessage& message : messages)
    a.emplace_back(message.to_json());
  return a;
}

struct Members {
  json::object& o;

  void operator()(const AgentStart&) const {}
  void operator()(const TurnStart&) const {}
  void operator()(const AgentEnd& e) const { o.emplace("messages", to_json(e.messages)); }
  void operator()(const TurnEnd& e) const {
    o.emplace("message", e.message.to_json());
    o.emplace("toolResults", to_json(e.tool_results));
  }
  void operator()(const MessageStart& e) const { o.emplace("message", e.message.to_json()); }
  void operator()(const MessageEnd& e) const { o.emplace("message", e.message.to_json()); }
  void operator()(const MessageUpdate& e) const {
    json::object event = ai::to_json(e.event);
    event.emplace("partial", ai::to_json(e.message));
    o.emplace("assistantMessageEvent", std::move(event));
    o.emplace("message", ai::to_json(e.message));
  }
  void operator()(const ToolExecutionStart& e) const {
    call(e.tool_call_id, e.tool_name);
    o.emplace("args", e.arguments);
  }
  void operator()(const ToolExecutionUpdate& e) const {
    call(e.tool_call_id, e.tool_name);
    o.emplace("args", e.arguments);
    o.emplace("partialResult", agent::to_json(e.partial));
  }
  void operator()(const ToolExecutionEnd& e) const {
    call(e.tool_call_id, e.tool_name);
    o.emplace("result", agent::to_json(e.result));
    o.emplace("isError", e.is_error);
  }
  void call(const std::string& id, const std::string& name) const {
    o.emplace("toolCallId", id);
    o.emplace("toolName", name);
  }
};

}  // namespace

std::string_view type_of(const AgentEvent& event) {
  constexpr std::string_view kTypes[] = {
      "agent_start",           "agent_end",         "turn_start",  "turn_end",
      "message_start",         "message_update",    "message_end", "tool_execution_start",
      "tool_execution_update", "tool_execution_end"};
  static_assert(std::size(kTypes) == std::variant_size_v<AgentEvent>);
  return kTypes[event.index()];
}

json::object to_json(const AgentEvent& event) {
  json::object o{{"type", type_of(event)}};
  std::visit(Members{o}, event);
  return o;
}

}  // namespace tau::agent
