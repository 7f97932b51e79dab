#include "ai/providers/google_generative_ai.h"

#include <utility>

#include <fmt/format.h>

#include "ai/provider_call.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  if (!options.api_key || utf8::is_blank(*options.api_key)) {
    return std::unexpected("No API key for provider: " + model.provider);
  }
  auto body = encode_google(model, context, options);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);
  Headers headers{{"content-type", "application/json"},
                  {"accept", "*/*"},
                  {"user-agent", user_agent()},
                  {"x-goog-api-key", *options.api_key}};
  merge_headers(headers, model.headers);
  for (const auto& [name, text] : options.headers) {
    if (text) merge_headers(headers, {{name, text}});  // AI-195: nothing can be removed
  }
  ProviderCall call;
  call.request.url = join_url(model.base_url, fmt::format("/models/{}:streamGenerateContent?alt=sse", model.id));
  call.request.headers = present_headers(std::move(headers));
  json::write(call.request.body, *body);
  call.error_text = [](int status, std::string_view reason, const http::HeaderList&, std::string_view text) {
    return google_error_text(status, reason, text);
  };
  call.decoder = std::make_unique<GoogleDecoder>(model);
  return call;
}

}  // namespace

std::string google_error_text(int status, std::string_view reason, std::string_view body) {
  const std::string_view trimmed = utf8::trim(body);
  if (const auto parsed = json::parse(trimmed); parsed && (parsed->is_object() || parsed->is_array())) {
    return json::to_text(*parsed);
  }
  constexpr std::size_t kLongest = 4000;
  return json::to_text(json::object{
      {"error",
       json::object{{"message", utf8::prefix_utf16(trimmed, kLongest)}, {"code", status}, {"status", reason}}}});
}

asio::awaitable<AssistantMessage> stream_google_generative_ai(http::Client& client, Model model, Context context,
                                                              StreamOptions options, EventSink sink,
                                                              std::stop_token stop) {
  return call_provider(client, prepare, std::move(model), std::move(context), std::move(options), std::move(sink),
                       std::move(stop));
}

}  // namespace tau::ai
