#include "app/session_command/wire.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "ai/http/http_client.h"
#include "ai/providers/api_registry.h"
#include "app/startup.h"
#include "coding/roles/convert_to_llm.h"

namespace tau::app {

namespace {

namespace asio = boost::asio;

/// Keeps what it is given to send.
class KeepingClient final : public ai::http::Client {
 public:
  asio::awaitable<std::expected<std::unique_ptr<ai::http::Response>, ai::http::Failure>> send(
      ai::http::Request request, std::stop_token) override {
    body = std::move(request.body);
    co_return std::unexpected(ai::http::Failure{ai::http::FailureKind::kAborted, "not sent"});
  }
  std::optional<std::string> body;
};

std::expected<ai::Model, Error> model_for(const SessionCommand& command, const coding::SessionContext& context) {
  const auto registry = make_registry();
  std::optional<ai::Model> model;
  if (command.model) {
    coding::ModelChoice choice = registry->resolve(std::nullopt, *command.model);
    if (!choice.model) return std::unexpected(error(choice.error.value_or("No such model: " + *command.model)));
    model = std::move(choice.model);
  } else if (context.model) {
    model = registry->find(context.model->provider, context.model->id);
  }
  if (!model) {
    if (!context.model) return std::unexpected(error("The session names no model: choose one with --model"));
    model.emplace();
    model->id = model->name = context.model->id;
    model->provider = context.model->provider;
    model->reasoning = true;
    model->max_tokens = 32000;
    model->api = *command.wire;
  }
  if (model->api != *command.wire) {  // taken as if it spoke this API
    model->api = *command.wire;
    model->compat.clear();
  }
  if (model->base_url.empty()) model->base_url = "http://localhost";
  return *std::move(model);
}

asio::awaitable<ai::AssistantMessage> call(ai::ApiFunction api, KeepingClient& client, ai::Model model,
                                           ai::Context request, ai::StreamOptions options) {
  const ai::EventSink ignore = [](const ai::StreamEvent&) { return std::nullopt; };
  ai::AssistantMessage reply =
      co_await api(client, std::move(model), std::move(request), std::move(options), ignore, std::stop_token());
  co_return reply;
}

}  // namespace

std::expected<std::string, Error> request_body(const SessionCommand& command, const coding::Session& session,
                                               const coding::SessionContext& context) {
  const ai::ApiFunction api = ai::find_api(*command.wire);
  if (api == nullptr) return std::unexpected(error(fmt::format("No such wire API: {}", *command.wire)));
  auto model = model_for(command, context);
  if (!model) return std::unexpected(std::move(model.error()));
  auto frame = request_frame(Arguments{}, session.cwd());
  if (!frame) return std::unexpected(std::move(frame.error()));

  ai::Context request;
  if (!frame->system_prompt.empty()) request.system_prompt = std::move(frame->system_prompt);
  request.tools = std::move(frame->tools);
  request.messages = coding::convert_to_llm(context.messages, frame->block_images);
  ai::StreamOptions options = std::move(frame->options);
  options.api_key = "none";  // headers are made and thrown away
  options.session_id = session.id();
  options.max_retries = 0;
  const auto level = ai::thinking_level_from(context.thinking_level).value_or(ai::ThinkingLevel::kOff);
  const ai::ThinkingLevel used = ai::clamp_thinking_level(*model, level);
  if (used != ai::ThinkingLevel::kOff) options.reasoning = used;

  KeepingClient client;
  asio::io_context io(1);
  std::string failed;
  asio::co_spawn(io, call(api, client, *std::move(model), std::move(request), std::move(options)),
                 [&](const std::exception_ptr& thrown, const ai::AssistantMessage& reply) {
                   failed = thrown ? "the request cannot be made" : reply.error_message.value_or("");
                 });
  io.run();
  if (!client.body) return std::unexpected(error(failed));
  return *std::move(client.body);
}

}  // namespace tau::app
