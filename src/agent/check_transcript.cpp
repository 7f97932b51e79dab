#include "agent/check_transcript.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

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
        if (const ai::UserMessage* user = message.user()) take_user(*user);
        results_may_follow_ = false;
      }
    }
    return std::move(found_);
  }

 private:
  void add(std::string_view rule, std::string what) { found_.push_back({at_, rule, std::move(what)}); }

  void check_blocks(const std::vector<ai::UserBlock>& blocks) {
    for (const ai::UserBlock& block : blocks) {
      if (std::holds_alternative<ai::UnknownContent>(block)) add("IV-1", "the message has a block of an unknown type");
    }
  }

  void take_user(const ai::UserMessage& message) {
    if (const auto* blocks = std::get_if<std::vector<ai::UserBlock>>(&message.content)) check_blocks(*blocks);
  }

  void take_reply(const ai::AssistantMessage& reply) {
    if (reply.stop_reason == ai::StopReason::kPending) add("IV-7", "the reply is still pending");
    open_.clear();
    for (const ai::AssistantBlock& block : reply.content) {
      if (std::holds_alternative<ai::UnknownContent>(block)) add("IV-1", "the message has a block of an unknown type");
      const auto* call = std::get_if<ai::ToolCall>(&block);
      if (call == nullptr) continue;
      if (call->id.empty()) add("IV-1", "a call of " + call->name + " has no id");
      if (call->name.empty()) add("IV-1", "the call " + call->id + " has no tool name");
      open_.emplace(call->id, call->name);
    }
    results_may_follow_ = true;
  }

  void take_result(const ai::ToolResultMessage& result) {
    check_blocks(result.content);
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

void print_violations(std::string_view when, std::span<const Violation> violations) {
  for (const Violation& violation : violations) {
    fmt::print(stderr, "tau: {} {}, message {}: {}\n", violation.rule, when, violation.position, violation.what);
  }
}

std::atomic<ViolationReporter> violation_reporter{&print_violations};

}  // namespace

std::vector<Violation> check_transcript(std::span<const AgentMessage> messages) {
  return Checker().check(messages);
}

ViolationReporter set_violation_reporter(ViolationReporter reporter) {
  return violation_reporter.exchange(reporter != nullptr ? reporter : &print_violations);
}

void check_run([[maybe_unused]] std::string_view when, [[maybe_unused]] std::span<const AgentMessage> messages,
               [[maybe_unused]] std::size_t known) {
#ifndef NDEBUG
  std::vector<Violation> found = check_transcript(messages);
  std::erase_if(found, [known](const Violation& violation) { return violation.position < known; });
  if (!found.empty()) violation_reporter.load()(when, found);
#endif
}

std::vector<Violation> check_conversion(std::span<const AgentMessage> messages,
                                        std::span<const ai::MessageRef> converted) {
  std::unordered_map<const ai::Message*, std::size_t> place;  // in the whole projection
  for (const AgentMessage& message : messages) {
    for (const ai::MessageRef& projected : message.projection())
      place.emplace(projected.get(), place.size());
  }
  std::vector<Violation> found;
  std::size_t next = 0;
  for (std::size_t i = 0; i < converted.size(); ++i) {
    const auto it = place.find(converted[i].get());
    if (it == place.end()) continue;
    if (it->second < next) found.push_back({i, "IV-4", "the message comes after one that followed it"});
    next = std::max(next, it->second + 1);
  }
  return found;
}

}  // namespace tau::agent
