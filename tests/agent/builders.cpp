#include "agent/builders.h"

#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tau::test {

namespace asio = boost::asio;

FauxReply text_reply(std::string text) {
  return {{"content", json::array{json::object{{"type", "text"}, {"text", std::move(text)}}}}};
}

FauxReply call_reply(std::vector<Call> calls) {
  json::array content;
  for (Call& call : calls) {
    content.push_back(json::object{
        {"type", "toolCall"}, {"id", call.id}, {"name", call.tool}, {"arguments", std::move(call.arguments)}});
  }
  return {{"content", std::move(content)}};
}

agent::AgentMessage user_message(std::string text) {
  return agent::AgentMessage(ai::UserMessage{std::move(text), 1, {}});
}

agent::AgentTool make_tool(std::string name, ToolBody body) {
  agent::AgentTool tool;
  tool.declaration.name = std::move(name);
  tool.declaration.parameters = json::object{{"type", "object"}};
  tool.execute = [body = std::move(body)](std::string id, json::object, std::stop_token stop,
                                          agent::ToolUpdate update) {
    return body(std::move(id), std::move(stop), std::move(update));
  };
  return tool;
}

asio::awaitable<agent::ToolResult> instant(std::string id, std::stop_token, agent::ToolUpdate) {
  co_return agent::text_result(id);
}

asio::awaitable<agent::ToolResult> until_abort(std::string, std::stop_token stop, agent::ToolUpdate) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  // Shared: the wake-up may still be queued when the tool is over.
  auto timer = std::make_shared<asio::steady_timer>(executor, std::chrono::steady_clock::time_point::max());
  const std::stop_callback wake(stop, [&] { asio::post(executor, [timer] { timer->cancel(); }); });
  while (!stop.stop_requested()) {
    boost::system::error_code ignored;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  throw agent::ToolFailure("stopped");
}

agent::AgentOptions faux_options(FauxProvider& provider, std::vector<agent::AgentTool> tools) {
  agent::AgentOptions options;
  options.loop.stream = provider.stream();
  options.initial_state.model = faux_model();
  options.initial_state.tools = std::move(tools);
  return options;
}

std::string text_at(const agent::Agent& agent, std::size_t index) {
  const agent::AgentMessage& message = agent.state().messages.at(index);
  if (const ai::UserMessage* user = message.user()) return ai::text_of(user->content);
  if (const ai::AssistantMessage* reply = message.assistant()) return ai::text_of(*reply);
  if (const ai::ToolResultMessage* result = message.tool_result()) return ai::text_of(result->content);
  return {};
}

std::string roles(const std::vector<agent::AgentMessage>& messages) {
  std::string out;
  for (const agent::AgentMessage& message : messages)
    out += (out.empty() ? "" : " ") + std::string(message.role());
  return out;
}

}  // namespace tau::test
