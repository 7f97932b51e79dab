#include "ai/providers/anthropic_messages.h"

#include <exception>
#include <memory>
#include <utility>

#include "ai/provider_call.h"
#include "ai/surrogates.h"

namespace tau::ai {

namespace {

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  auto headers = anthropic_headers(model, context, options);
  if (!headers) return std::unexpected(std::move(headers.error()));
  auto body = encode_anthropic_messages(model, context, options);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);
  (*body)["stream"] = true;  // AI-16

  ProviderCall call;
  call.request.url = join_url(model.base_url, "/v1/messages?beta=true");
  call.request.headers = *std::move(headers);
  json::write(call.request.body, *body);
  call.error_text = [](int status, std::string_view, const http::HeaderList&, std::string_view text) {
    return anthropic_error_text(status, text);
  };

  AssistantMessage initial = empty_reply(model);
  initial.provider_thinking_level = anthropic_effort(model, options);
  std::vector<std::string> tool_names;
  if (uses_anthropic_oauth(model, options)) {
    for (const Tool& tool : context.tools)
      tool_names.push_back(tool.name);
  }
  call.decoder = std::make_unique<AnthropicMessagesDecoder>(std::move(initial), model, std::move(tool_names));
  return call;
}

}  // namespace

asio::awaitable<AssistantMessage> stream_anthropic_messages(http::Client& client, Model model, Context context,
                                                            StreamOptions options, EventSink sink,
                                                            std::stop_token stop) {
  return call_provider(client, prepare, std::move(model), std::move(context), std::move(options), std::move(sink),
                       std::move(stop));
}

}  // namespace tau::ai
