// The agent loop (AG sections 2 and 3): from a prompt to the point where nothing is left to do.
//
// One turn is one model call and the batch of tools it asks for. Before each call the transcript goes through two
// stages: transform_context works on the rich messages, convert_to_llm turns them into what the model layer accepts;
// its result type cannot hold an application's message.
//
// The loop knows no application. It keeps nothing: the caller gets every message through events, and the run's own
// messages as the result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent_message.h"
#include "agent/events.h"
#include "agent/tool.h"
#include "ai/stream.h"

namespace tau::agent {

struct AgentContext {
  std::string system_prompt;
  std::vector<AgentMessage> messages;
  std::vector<AgentTool> tools;
};

/// A call that is about to run: its reply, itself, the validated arguments, and what the loop works on (the reply is in
/// it, results of this batch are not: AG-14). Valid during the call of the hook.
struct ToolCallInfo {
  const AgentMessage& reply;
  const ai::ToolCall& call;
  const json::object& arguments;
  const AgentContext& context;
};

struct BeforeToolCall {
  bool block = false;
  std::string reason;                     // what the model reads when blocked; a default when empty (AG-13)
  bool terminate = false;                 // with `block`
  std::optional<json::object> arguments;  // to run with instead; not validated again (AG-12)
};

/// What is set replaces that part of the result (AG-11).
struct AfterToolCall {
  std::optional<std::vector<ai::UserBlock>> content;
  std::optional<json::value> details;
  std::optional<bool> is_error;
  std::optional<ai::Usage> usage;
  std::optional<bool> terminate;
};

/// A finished turn. Valid during the call of the hook.
struct TurnInfo {
  const AgentMessage& reply;
  const std::vector<AgentMessage>& tool_results;
  const AgentContext& context;
  const std::vector<AgentMessage>& new_messages;  // of the run so far (AG-15)
};

/// What is set is used from the next turn on (AG-16).
struct NextTurn {
  std::optional<AgentContext> context;
  std::optional<ai::Model> model;
  std::optional<ai::ThinkingLevel> thinking_level;
};

/// Any hook may be empty. Hooks other than the two around tool calls must not throw: they return a fallback. One that
/// throws ends the run; the exception leaves run_loop and no further event is emitted (AG-9, AG-50).
struct LoopConfig {
  ai::Model model;
  ai::StreamFunction stream;  // empty: default_stream_function()
  ai::StreamOptions options;  // reasoning, session id, timeouts, …: given to every model call
  ToolExecutionMode tool_execution = ToolExecutionMode::kParallel;

  /// First stage, once a model call.
  std::function<asio::awaitable<std::vector<AgentMessage>>(std::vector<AgentMessage> messages, std::stop_token stop)>
      transform_context;
  /// Second stage, right after the first. Empty: standard_messages.
  std::function<asio::awaitable<std::vector<ai::MessageRef>>(std::vector<AgentMessage> messages)> convert_to_llm;
  /// Key for the provider, once a model call; nothing: options.api_key.
  std::function<asio::awaitable<std::optional<std::string>>(std::string provider)> get_api_key;

  /// After validation, before the tool runs. Throwing makes the call an error; it does not run.
  std::function<asio::awaitable<BeforeToolCall>(ToolCallInfo info, std::stop_token stop)> before_tool_call;
  /// After the tool has run or thrown. Throwing makes the result an error (FF-20).
  std::function<asio::awaitable<AfterToolCall>(ToolCallInfo info, const ToolResult& result, bool is_error,
                                               std::stop_token stop)>
      after_tool_call;

  /// May replace a message by another of the same role before its message_end: the transcript, the loop's decisions and
  /// every later event then have the new one (AG-54, SE-22). One of another role, or a reply that is pending (IV-7), is
  /// passed over.
  std::function<asio::awaitable<AgentMessage>(AgentMessage message)> settle_message;

  std::function<asio::awaitable<bool>(TurnInfo turn, std::stop_token stop)> should_stop_after_turn;
  /// Before every turn but the first (AG-16).
  std::function<asio::awaitable<NextTurn>(TurnInfo turn, std::stop_token stop)> prepare_next_turn;
  /// Messages for the next turn (AG-20, AG-23, AG-34).
  std::function<asio::awaitable<std::vector<AgentMessage>>()> get_steering_messages;
  /// Messages for when the run would end (AG-25).
  std::function<asio::awaitable<std::vector<AgentMessage>>()> get_follow_up_messages;
};

/// Runs `prompts` on top of the context and returns the run's messages, prompts first. On an abort every call of the
/// batch gets a result, no further model call is made, queues keep what is in them, and the last message is a reply
/// with kAborted (FF-17).
asio::awaitable<std::vector<AgentMessage>> run_loop(std::vector<AgentMessage> prompts, AgentContext context,
                                                    LoopConfig config, AgentEventSink sink, std::stop_token stop);

/// The same without a prompt. Throws std::invalid_argument before any event when the context is empty or ends with a
/// reply (AG-18).
asio::awaitable<std::vector<AgentMessage>> continue_loop(AgentContext context, LoopConfig config, AgentEventSink sink,
                                                         std::stop_token stop);

}  // namespace tau::agent
