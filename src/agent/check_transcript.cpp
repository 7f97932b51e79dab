#include "agent/check_transcript.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tau::agent {

namespace {

class Checker {
 public:
  std::vector<Violation> check(std::span<const AgentMessage> messages) {
    for (at_ = 0; at_ < messages.size(); ++at_) {
      const AgentMessage& message = messages[at_];
      if (message.role().empty()) add("IV-1", "the message has no role");
      if (const ai::AssistantMessage* reply = message.assistant()) {
        take_reply(*reply);
      } else if (const ai::ToolResultMessage* result = message.tool_result()) {
        take_result(*result);
      } else {
        results_may_follow_ = false;
      }
    }
    return std::move(found_);
  }

 private:
  void add(std::string_view rule, std::string what) { found_.push_back({at_, rule, std::move(what)}); }

  void take_reply(const ai::AssistantMessage& reply) {
    if (reply.stop_reason == ai::StopReason::kPending) add("IV-7", "the reply is still pending");
    open_.clear();
    for (const ai::AssistantBlock& block : reply.content) {
      if (std::holds_alternative<ai::UnknownContent>(block)) add("IV-1", "the reply has a block of an unknown type");
      const auto* call = std::get_if<ai::ToolCall>(&block);
      if (call == nullptr) continue;
      if (call->id.empty()) add("IV-1", "a call of " + call->name + " has no id");
      if (call->name.empty()) add("IV-1", "the call " + call->id + " has no tool name");
      open_.emplace(call->id, call->name);
    }
    results_may_follow_ = true;
  }

  void take_result(const ai::ToolResultMessage& result) {
    if (result.tool_call_id.empty()) add("IV-1", "the result has no call id");
    const auto call = open_.find(result.tool_call_id);
    if (!results_may_follow_) {
      add("IV-2", "the result of " + result.tool_call_id + " does not follow the reply with its call");
    } else if (call == open_.end()) {
      add("IV-2", "the reply before it has no open call " + result.tool_call_id);
    } else {
      if (call->second != result.tool_name) {
        add("IV-2",
            "the result of " + result.tool_call_id + " is of " + result.tool_name + ", the call of " + call->second);
      }
      open_.erase(call);
    }
  }

  std::size_t at_ = 0;
  std::multimap<std::string, std::string> open_;  // calls of the last reply without a result: id -> tool
  bool results_may_follow_ = false;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> check_transcript(std::span<const AgentMessage> messages) {
  return Checker().check(messages);
}

}  // namespace tau::agent
