// Short ways to write replies, tools and agents in tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "agent/agent.h"
#include "agent/faux_provider.h"

namespace tau::test {

struct Call {
  std::string id;
  std::string tool;
  json::object arguments = {};
};

FauxReply text_reply(std::string text);
FauxReply call_reply(std::vector<Call> calls);
agent::AgentMessage user_message(std::string text);

using ToolBody =
    std::function<boost::asio::awaitable<agent::ToolResult>(std::string id, std::stop_token stop, agent::ToolUpdate)>;

/// A tool that takes any arguments.
agent::AgentTool make_tool(std::string name, ToolBody body);

/// Bodies. `instant` returns its id as text.
boost::asio::awaitable<agent::ToolResult> instant(std::string id, std::stop_token stop, agent::ToolUpdate update);
/// Waits for the abort, then throws "stopped".
boost::asio::awaitable<agent::ToolResult> until_abort(std::string id, std::stop_token stop, agent::ToolUpdate update);

/// An agent on the faux provider.
agent::AgentOptions faux_options(FauxProvider& provider, std::vector<agent::AgentTool> tools = {});

/// Text of the n-th message of the transcript; a tool result's text too.
std::string text_at(const agent::Agent& agent, std::size_t index);
/// "user assistant toolResult …"
std::string roles(const std::vector<agent::AgentMessage>& messages);

}  // namespace tau::test
