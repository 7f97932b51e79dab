#include "ai/providers/openai_responses.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/provider_call.h"
#include "ai/providers/copilot_headers.h"
#include "ai/providers/openai_completions.h"
#include "ai/providers/responses_input.h"
#include "ai/surrogates.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr double kFewestOutputTokens = 16;  // the service refuses less
constexpr std::size_t kLongestCacheKey = 64;

void add_session_headers(Headers& headers, const ResponsesCompat& compat, const StreamOptions& options) {  // AI-160
  if (!options.session_id || cache_retention(options) == CacheRetention::kNone) return;
  if (compat.session_affinity_format == "openrouter") {
    merge_headers(headers, {{"x-session-id", *options.session_id}});
    return;
  }
  if (compat.session_affinity_format != "openai-nosession")
    merge_headers(headers, {{"session_id", *options.session_id}});
  merge_headers(headers, {{"x-client-request-id", *options.session_id}});
}

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  auto headers = openai_responses_headers(model, context, options);
  if (!headers) return std::unexpected(std::move(headers.error()));
  auto body = encode_openai_responses(model, context, options);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);
  ProviderCall call;
  call.request.url = join_url(model.base_url, "/responses");
  call.request.headers = *std::move(headers);
  json::write(call.request.body, *body);
  call.error_text = [](int status, std::string_view, const http::HeaderList&, std::string_view text) {
    return openai_responses_error_text("OpenAI", status, text);
  };
  call.decoder = std::make_unique<OpenAiResponsesDecoder>(model, context.tools, ResponsesService::kOpenAi,
                                                          json::string_or(*body, "service_tier"));
  return call;
}

}  // namespace

std::expected<http::HeaderList, std::string> openai_responses_headers(const Model& model, const Context& context,
                                                                      const StreamOptions& options) {
  const bool has_key = options.api_key && !utf8::is_blank(*options.api_key);
  Headers headers{{"content-type", "application/json"}, {"accept", "application/json"}, {"user-agent", user_agent()}};
  if (has_key) headers.emplace_back("authorization", "Bearer " + *options.api_key);
  merge_headers(headers, model.headers);
  if (model.provider == "github-copilot") merge_headers(headers, copilot_headers(context));
  add_session_headers(headers, ResponsesCompat(model), options);
  merge_headers(headers, options.headers);
  if (!has_key && !has_header(headers, "authorization") && !has_header(headers, "cf-aig-authorization")) {
    return std::unexpected("No API key for provider: " + model.provider);
  }
  return present_headers(std::move(headers));
}

std::string openai_responses_error_text(std::string_view service, int status, std::string_view body) {
  const auto parsed = json::parse(utf8::trim(body));
  const json::object* o = parsed ? parsed->if_object() : nullptr;
  const json::object* error = o != nullptr ? json::find_object(*o, "error") : nullptr;
  std::string text = openai_completions_error_text(status, body);
  // An object stands without the status that comes before it in the older API.
  const std::string repeated = fmt::format("{}: ", status);
  if (error != nullptr && text.starts_with(repeated)) text.erase(0, repeated.size());
  return fmt::format("{} API error ({}): {}", service, status, text);
}

std::expected<json::object, std::string> encode_openai_responses(const Model& model, const Context& context,
                                                                 const StreamOptions& options) {
  const ResponsesCompat compat(model);
  ResponsesInputRules rules;
  rules.strict = compat.strict_mode.value_or(false);
  if (rules.strict) rules.loose = false;
  auto input = responses_input(model, context, rules);
  if (!input) return std::unexpected(std::move(input.error()));

  const BaseOptions base = base_options(model, context, options);
  const CacheRetention retention = cache_retention(options);
  json::object body{{"model", model.id}};
  body.emplace("input", std::move(input->items));
  body.emplace("stream", true);
  if (options.session_id && retention != CacheRetention::kNone) {
    body.emplace("prompt_cache_key", utf8::prefix(*options.session_id, kLongestCacheKey));
  }
  if (retention == CacheRetention::kLong && compat.long_cache_retention) body.emplace("prompt_cache_retention", "24h");
  if (retention == CacheRetention::kNone && compat.explicit_cache_mode) {
    body.emplace("prompt_cache_options", json::object{{"mode", "explicit"}});
  }
  body.emplace("store", false);
  if (base.max_tokens > 0 && compat.max_output_tokens) {
    body.emplace("max_output_tokens", json::number(std::max(base.max_tokens, kFewestOutputTokens)));
  }
  if (base.temperature) body.emplace("temperature", json::number(*base.temperature));
  if (!input->tools.empty()) body.emplace("tools", std::move(input->tools));
  if (options.tool_choice) body.emplace("tool_choice", *options.tool_choice);
  put_responses_reasoning(body, model, options);
  for (const auto& [name, value] : base.sampling_params)
    body[name] = value;

  json::value whole = std::move(body);
  remove_lone_surrogates(whole);
  return std::move(whole.get_object());
}

asio::awaitable<AssistantMessage> stream_openai_responses(http::Client& client, Model model, Context context,
                                                          StreamOptions options, EventSink sink, std::stop_token stop) {
  return call_provider(client, prepare, std::move(model), std::move(context), std::move(options), std::move(sink),
                       std::move(stop));
}

}  // namespace tau::ai
