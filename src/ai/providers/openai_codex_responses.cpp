#include "ai/providers/openai_codex_responses.h"

#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/provider_call.h"
#include "ai/providers/openai_responses.h"
#include "ai/providers/responses_input.h"
#include "ai/surrogates.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kLongestSessionId = 64;
constexpr int kCompressionLevel = 3;
constexpr std::string_view kDefaultUrl = "https://chatgpt.com/backend-api";
constexpr std::string_view kDefaultInstructions = "You are a careful assistant.";

/// Nothing when it cannot be compressed; the body may go as it is.
std::optional<std::string> compressed(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), kCompressionLevel);
  if (ZSTD_isError(size) != 0) return std::nullopt;
  out.resize(size);
  return out;
}

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  if (!options.api_key || utf8::is_blank(*options.api_key)) {
    return std::unexpected("No API key for provider: " + model.provider);
  }
  const auto account = codex_account_id(*options.api_key);
  if (!account) return std::unexpected("Failed to extract accountId from token");
  auto body = encode_openai_codex_responses(model, context, options);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);

  Headers headers;
  merge_headers(headers, model.headers);
  merge_headers(headers, options.headers);
  merge_headers(headers, {{"authorization", "Bearer " + *options.api_key},
                          {"chatgpt-account-id", *account},
                          {"originator", "pi"},
                          {"user-agent", user_agent()},
                          {"openai-beta", "responses=experimental"},
                          {"accept", "text/event-stream"},
                          {"content-type", "application/json"}});
  if (options.session_id && options.cache_retention != CacheRetention::kNone) {
    const std::string session(utf8::prefix(*options.session_id, kLongestSessionId));
    merge_headers(headers, {{"session-id", session}, {"x-client-request-id", session}});
  }
  ProviderCall call;
  json::write(call.request.body, *body);
  if (auto smaller = compressed(call.request.body)) {
    call.request.body = *std::move(smaller);
    merge_headers(headers, {{"content-encoding", "zstd"}});
  }
  call.request.url = codex_url(model.base_url);
  call.request.headers = present_headers(std::move(headers));
  call.error_text = [](int status, std::string_view reason, const http::HeaderList&, std::string_view text) {
    return codex_error_text(status, reason, text, now_milliseconds());
  };
  call.decoder = std::make_unique<OpenAiResponsesDecoder>(model, context.tools, ResponsesService::kCodex,
                                                          json::string_or(*body, "service_tier"));
  return call;
}

}  // namespace

std::optional<std::string> codex_account_id(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  std::string payload(token.substr(first + 1, second - first - 1));
  std::replace(payload.begin(), payload.end(), '-', '+');
  std::replace(payload.begin(), payload.end(), '_', '/');
  while (payload.size() % 4 != 0)
    payload += '=';
  const auto text = base64_decode(payload);
  const auto claims = text ? json::parse(*text) : std::unexpected(json::ParseError{});
  const json::object* o = claims ? claims->if_object() : nullptr;
  const json::object* auth = o != nullptr ? json::find_object(*o, "https://api.openai.com/auth") : nullptr;
  const auto id = auth != nullptr ? json::find_string(*auth, "chatgpt_account_id") : std::nullopt;
  return id && !id->empty() ? std::optional(std::string(*id)) : std::nullopt;
}

std::string codex_url(std::string_view base_url) {
  std::string_view base = utf8::is_blank(base_url) ? kDefaultUrl : utf8::trim(base_url);
  while (base.ends_with('/'))
    base.remove_suffix(1);
  if (base.ends_with("/codex/responses")) return std::string(base);
  return join_url(base, base.ends_with("/codex") ? "/responses" : "/codex/responses");
}

std::string codex_error_text(int status, std::string_view reason, std::string_view body, std::int64_t now) {
  const auto parsed = json::parse(utf8::trim(body));
  const json::object* o = parsed ? parsed->if_object() : nullptr;
  const json::object* error = o != nullptr ? json::find_object(*o, "error") : nullptr;
  if (error != nullptr) {
    std::string code = json::string_or(*error, "code");
    if (code.empty()) code = json::string_or(*error, "type");
    const bool limited = code.find("usage_limit_reached") != std::string::npos ||
                         code.find("usage_not_included") != std::string::npos ||
                         code.find("rate_limit_exceeded") != std::string::npos;
    if (limited || status == 429) {
      std::string plan = json::string_or(*error, "plan_type");
      std::transform(plan.begin(), plan.end(), plan.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
      std::string text = "The usage limit of your ChatGPT account is reached";
      if (!plan.empty()) text += fmt::format(" ({} plan)", plan);
      text += '.';
      if (const auto resets = json::find_number(*error, "resets_at")) {
        const double minutes = std::max(0.0, std::round((*resets * 1000 - static_cast<double>(now)) / 60000));
        text += fmt::format(" Try again in about {:.0f} min.", minutes);
      }
      return text;
    }
    if (const auto text = json::find_string(*error, "message"); text && !text->empty()) return std::string(*text);
  }
  if (!utf8::is_blank(body)) return std::string(utf8::trim(body));
  return reason.empty() ? fmt::format("Request failed with status {}", status) : std::string(reason);
}

std::expected<json::object, std::string> encode_openai_codex_responses(const Model& model, const Context& context,
                                                                       const StreamOptions& options) {
  const ResponsesCompat compat(model);
  ResponsesInputRules rules;
  rules.system_item = false;
  rules.strict = compat.strict_mode.value_or(true);
  rules.loose = json::value(nullptr);
  auto input = responses_input(model, context, rules);
  if (!input) return std::unexpected(std::move(input.error()));

  json::object body{{"model", model.id}, {"store", false}, {"stream", true}};
  const bool has_prompt = context.system_prompt && !context.system_prompt->empty();
  body.emplace("instructions", has_prompt ? std::string_view(*context.system_prompt) : kDefaultInstructions);
  body.emplace("input", std::move(input->items));
  body.emplace("text", json::object{{"verbosity", "low"}});
  body.emplace("include", json::array{"reasoning.encrypted_content"});
  if (options.session_id && options.cache_retention != CacheRetention::kNone) {
    body.emplace("prompt_cache_key", utf8::prefix(*options.session_id, kLongestSessionId));
  }
  body.emplace("tool_choice", options.tool_choice ? *options.tool_choice : json::value("auto"));
  body.emplace("parallel_tool_calls", true);
  if (options.temperature) body.emplace("temperature", json::number(*options.temperature));
  if (!input->tools.empty()) body.emplace("tools", std::move(input->tools));
  if (const auto level = responses_level(model, options); level && model.reasoning) {
    body.emplace("reasoning", json::object{{"effort", responses_effort(model, *level)}, {"summary", "auto"}});
  }
  json::value whole = std::move(body);
  remove_lone_surrogates(whole);
  return std::move(whole.get_object());
}

asio::awaitable<AssistantMessage> stream_openai_codex_responses(http::Client& client, Model model, Context context,
                                                                StreamOptions options, EventSink sink,
                                                                std::stop_token stop) {
  return call_provider(client, prepare, std::move(model), std::move(context), std::move(options), std::move(sink),
                       std::move(stop));
}

}  // namespace tau::ai
