// Tools without an agent: the model asks, this program answers, until the model has nothing more to ask. What the agent
// library adds to this is everything else: parallel batches, aborts, queues, hooks.
//
//   $ ai-tools
//   [add {"a":19,"b":23}] 42
//   19 and 23 make 42.
#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "ai/providers/scripted.h"
#include "ai/tool_arguments.h"

using namespace tau;
namespace asio = boost::asio;

constexpr const char* kScript = R"({"turns": [
    {"toolCalls": [{"label": "sum", "name": "add", "arguments": {"a": 19, "b": 23}}]},
    {"text": "19 and 23 make {{sum}}."}]})";

ai::Tool add_tool() {
  ai::Tool tool;
  tool.name = "add";
  tool.description = "Adds two numbers.";
  tool.parameters = json::parse(R"({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                                    "required": ["a", "b"]})")
                        ->as_object();
  return tool;
}

/// A result is a message too; what went wrong is told to the model, not thrown.
ai::ToolResultMessage run(const std::vector<ai::Tool>& tools, const ai::ToolCall& call) {
  ai::ToolResultMessage result;
  result.tool_call_id = call.id;
  result.tool_name = call.name;
  const auto arguments = ai::validate_tool_call(tools, call);
  const std::string text =
      arguments ? json::to_text(json::number(json::number_or(*arguments, "a") + json::number_or(*arguments, "b")))
                : arguments.error();
  std::cout << '[' << call.name << ' ' << json::to_text(call.arguments) << "] " << text << '\n';
  result.is_error = !arguments;
  result.content.emplace_back(ai::TextContent{text, {}, {}});
  return result;
}

asio::awaitable<void> converse(ai::StreamFunction stream, ai::Model model) {
  ai::Context context;
  context.tools = {add_tool()};
  context.messages = {ai::make_message(ai::UserMessage{"How much are 19 and 23?", 0, {}})};
  const ai::StreamOptions options;
  while (true) {
    const ai::EventSink ignore = [](const ai::StreamEvent&) { return std::nullopt; };
    const ai::AssistantMessage reply = co_await stream(model, context, options, ignore, std::stop_token());
    context.messages.push_back(ai::make_message(reply));
    if (reply.stop_reason != ai::StopReason::kToolUse) {
      std::cout << ai::text_of(reply) << reply.error_message.value_or("") << '\n';
      co_return;
    }
    for (const ai::ToolCall* call : ai::tool_calls_of(reply))
      context.messages.push_back(ai::make_message(run(context.tools, *call)));
  }
}

int main() {
  asio::io_context io;
  asio::co_spawn(io, converse(ai::make_scripted_provider({{"sum", kScript}}), ai::scripted_model("sum")),
                 asio::detached);
  io.run();
}
