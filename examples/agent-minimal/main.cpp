// An agent with one tool, in one file. It needs no key: the model is a script (docs/scripted.md). To talk to a real
// one, put another stream function and another model into the options; nothing else changes.
//
//   $ agent-minimal
//   > How many words are in "the quick brown fox"?
//   [count_words {"text":"the quick brown fox"}] 4
//   There are 4 words.
#include <iostream>
#include <sstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "agent/agent.h"
#include "ai/providers/scripted.h"

using namespace tau;
namespace asio = boost::asio;

namespace {

constexpr const char* kScript = R"({
  "turns": [
    { "toolCalls": [ { "label": "count", "name": "count_words", "arguments": { "text": "the quick brown fox" } } ] },
    { "text": "There are {{count}} words." } ] })";

/// A tool's body is a coroutine. It fails by throwing agent::ToolFailure.
asio::awaitable<agent::ToolResult> count_words(std::string text) {
  std::istringstream words(text);
  int count = 0;
  for (std::string word; words >> word;)
    ++count;
  co_return agent::text_result(std::to_string(count));
}

agent::AgentTool count_words_tool() {
  agent::AgentTool tool;
  tool.declaration.name = "count_words";
  tool.declaration.description = "Counts the words of a text.";
  tool.declaration.parameters = json::object{
      {"type", "object"},
      {"properties", json::object{{"text", json::object{{"type", "string"}}}}},
      {"required", json::array{"text"}},
  };
  // The arguments have been checked against the schema when this is called.
  tool.execute = [](std::string, json::object arguments, std::stop_token, agent::ToolUpdate) {
    return count_words(json::string_or(arguments, "text"));
  };
  return tool;
}

/// Prints what happens. It waits for nothing, so it returns no completion.
agent::Completion print(const agent::AgentEvent& event, const std::stop_token&) {
  if (const auto* update = std::get_if<agent::MessageUpdate>(&event)) {
    const auto* delta = std::get_if<ai::BlockDelta>(&update->event.what);
    if (delta != nullptr && delta->kind == ai::BlockKind::kText) std::cout << delta->delta << std::flush;
  } else if (const auto* call = std::get_if<agent::ToolExecutionStart>(&event)) {
    std::cout << '[' << call->tool_name << ' ' << json::to_text(call->arguments) << "] ";
  } else if (const auto* end = std::get_if<agent::ToolExecutionEnd>(&event)) {
    std::cout << ai::text_of(end->result.content) << '\n';
  }
  return std::nullopt;
}

}  // namespace

int main() {
  asio::io_context io;
  agent::AgentOptions options;
  options.loop.stream = ai::make_scripted_provider({{"words", kScript}});
  options.initial_state.model = ai::scripted_model("words");
  options.initial_state.tools = {count_words_tool()};
  agent::Agent agent(io.get_executor(), std::move(options));
  agent.subscribe(print);

  const std::string question = "How many words are in \"the quick brown fox\"?";
  std::cout << "> " << question << '\n';
  asio::co_spawn(io, agent.prompt(question), asio::detached);
  io.run();
  std::cout << '\n';

  // What went wrong is in the state, not thrown.
  if (agent.state().error_message) std::cerr << *agent.state().error_message << '\n';
  return agent.state().error_message ? 1 : 0;
}
