// An agent with one tool. Its model is a script, so it needs no key (docs/scripted.md); with another stream function
// and another model in the options it talks to a real one.
#include <algorithm>
#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "agent/agent.h"
#include "ai/providers/scripted.h"

using namespace tau;
namespace asio = boost::asio;

constexpr const char* kScript = R"({"turns": [
    {"toolCalls": [{"label": "n", "name": "count_words", "arguments": {"text": "the quick brown fox"}}]},
    {"text": "There are {{n}} words.\n"}]})";

/// A tool's body is a coroutine. It fails by throwing agent::ToolFailure.
asio::awaitable<agent::ToolResult> count_words(std::string text) {
  co_return agent::text_result(std::to_string(std::ranges::count(text, ' ') + 1));
}

agent::AgentTool count_words_tool() {
  agent::AgentTool tool;
  tool.declaration.name = "count_words";
  tool.declaration.description = "Counts the words of a text.";
  tool.declaration.parameters = json::parse(R"({"type": "object", "properties": {"text": {"type": "string"}},
                                                "required": ["text"]})")
                                    ->as_object();
  // Called with arguments that the schema allows.
  tool.execute = [](std::string, json::object arguments, std::stop_token, agent::ToolUpdate) {
    return count_words(json::string_or(arguments, "text"));
  };
  return tool;
}

int main() {
  asio::io_context io;
  agent::AgentOptions options;
  options.loop.stream = ai::make_scripted_provider({{"words", kScript}});
  options.initial_state.model = ai::scripted_model("words");
  options.initial_state.tools = {count_words_tool()};
  agent::Agent agent(io.get_executor(), std::move(options));

  agent.subscribe([](const agent::AgentEvent& event, const std::stop_token&) -> agent::Completion {
    if (const auto* tool = std::get_if<agent::ToolExecutionEnd>(&event))
      std::cout << '[' << tool->tool_name << "] " << ai::text_of(tool->result.content) << '\n';
    const auto* update = std::get_if<agent::MessageUpdate>(&event);
    const auto* delta = update != nullptr ? std::get_if<ai::BlockDelta>(&update->event.what) : nullptr;
    if (delta != nullptr && delta->kind == ai::BlockKind::kText) std::cout << delta->delta << std::flush;
    return std::nullopt;  // nothing to wait for
  });
  asio::co_spawn(io, agent.prompt("How many words are in \"the quick brown fox\"?"), asio::detached);
  io.run();
  return agent.state().error_message ? 1 : 0;  // what went wrong is in the state, not thrown
}
