// One batch of tool calls: what the model asked for in one reply (AG section 4).
#pragma once

#include <stop_token>
#include <vector>

#include "agent/events.h"
#include "agent/loop.h"

namespace tau::agent {

struct BatchResult {
  std::vector<AgentMessage> messages;  // one result a call, in the order of the calls, emitted already
  bool terminate = false;              // every result asks to end the run (AG-48)
};

/// Runs the calls of `reply`, in parallel unless the configuration or one of the tools says otherwise (AG-35). Every
/// call gets a result, whatever happens: an unknown tool, refused arguments, a hook that throws, an abort (FF-17).
/// When it returns no tool of the batch runs any more, but for those that were given up (AgentTool::stop_grace).
asio::awaitable<BatchResult> run_tool_batch(AgentMessage reply, const AgentContext& context, const LoopConfig& config,
                                            AgentEventSink sink, std::stop_token stop);

/// Results for calls that must not run because the reply was cut at the output limit (AG-49, FF-18).
asio::awaitable<BatchResult> refuse_cut_calls(AgentMessage reply, const LoopConfig& config, AgentEventSink sink);

/// Delivers an event and waits for the delivery.
asio::awaitable<void> deliver(const AgentEventSink& sink, AgentEvent event);

/// message_start, the settle hook, message_end; returns the settled message.
asio::awaitable<AgentMessage> deliver_message(const LoopConfig& config, const AgentEventSink& sink,
                                              AgentMessage message);

}  // namespace tau::agent
