#include "ai/providers/azure_openai_responses.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/provider_call.h"
#include "ai/providers/openai_responses.h"
#include "ai/providers/responses_input.h"
#include "ai/surrogates.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr double kFewestOutputTokens = 16;
constexpr std::size_t kLongestCacheKey = 64;

bool is_azure_host(std::string_view host) {
  return host.ends_with(".openai.azure.com") || host.ends_with(".cognitiveservices.azure.com") ||
         host.ends_with(".ai.azure.com");
}

/// People paste the address in many forms; on Azure's own hosts they all mean the same place.
std::string normalized_base(std::string_view base) {
  base = utf8::trim(base);
  while (base.ends_with('/'))
    base.remove_suffix(1);
  const std::size_t scheme = base.find("://");
  if (scheme == std::string_view::npos) return std::string(base);
  const std::size_t slash = base.find('/', scheme + 3);
  const std::string_view origin = base.substr(0, slash);
  const std::string_view path = slash == std::string_view::npos ? "" : base.substr(slash);
  std::string_view host = origin.substr(scheme + 3);
  host = host.substr(0, host.find(':'));
  if (is_azure_host(host) && (path.empty() || path == "/openai" || path == "/openai/v1/responses")) {
    return fmt::format("{}/openai/v1", origin);
  }
  return std::string(base);
}

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  if (!options.api_key || utf8::is_blank(*options.api_key)) {
    return std::unexpected("No API key for provider: " + model.provider);
  }
  auto url = azure_openai_url(model, options);
  if (!url) return std::unexpected(std::move(url.error()));
  auto body = encode_azure_openai_responses(model, context, options);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);
  Headers headers{{"content-type", "application/json"},
                  {"accept", "application/json"},
                  {"user-agent", user_agent()},
                  {"api-key", *options.api_key}};
  merge_headers(headers, model.headers);
  merge_headers(headers, options.headers);
  ProviderCall call;
  call.request.url = *std::move(url);
  call.request.headers = present_headers(std::move(headers));
  json::write(call.request.body, *body);
  call.error_text = [](int status, std::string_view, const http::HeaderList&, std::string_view text) {
    return openai_responses_error_text("Azure OpenAI", status, text);
  };
  call.decoder = std::make_unique<OpenAiResponsesDecoder>(model, context.tools, ResponsesService::kAzure);
  return call;
}

}  // namespace

std::expected<std::string, std::string> azure_openai_url(const Model& model, const StreamOptions& options) {
  std::string base;
  if (const auto given = provider_env(options, "AZURE_OPENAI_BASE_URL")) {
    base = normalized_base(*given);
  } else if (const auto resource = provider_env(options, "AZURE_OPENAI_RESOURCE_NAME")) {
    base = fmt::format("https://{}.openai.azure.com/openai/v1", utf8::trim(*resource));
  } else {
    base = normalized_base(model.base_url);
  }
  if (base.empty()) {
    return std::unexpected(
        "Azure OpenAI needs an address: set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME, or baseUrl in "
        "models.json");
  }
  const std::string version = provider_env(options, "AZURE_OPENAI_API_VERSION").value_or("v1");
  return fmt::format("{}/responses?api-version={}", base, utf8::trim(version));
}

std::string azure_openai_deployment(const Model& model, const StreamOptions& options) {
  const std::string map = provider_env(options, "AZURE_OPENAI_DEPLOYMENT_NAME_MAP").value_or("");
  for (std::string_view rest = map; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || utf8::trim(entry.substr(0, equals)) != model.id) continue;
    const std::string_view name = utf8::trim(entry.substr(equals + 1));
    if (!name.empty()) return std::string(name);
  }
  return model.id;
}

std::expected<json::object, std::string> encode_azure_openai_responses(const Model& model, const Context& context,
                                                                       const StreamOptions& options) {
  const ResponsesCompat compat(model);
  ResponsesInputRules rules;
  rules.deferred_tools = false;
  rules.strict = compat.strict_mode.value_or(true);
  if (rules.strict) rules.loose = false;
  auto input = responses_input(model, context, rules);
  if (!input) return std::unexpected(std::move(input.error()));

  const BaseOptions base = base_options(model, context, options);
  json::object body{{"model", azure_openai_deployment(model, options)}};
  body.emplace("input", std::move(input->items));
  body.emplace("stream", true);
  if (options.session_id) body.emplace("prompt_cache_key", utf8::prefix(*options.session_id, kLongestCacheKey));
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

asio::awaitable<AssistantMessage> stream_azure_openai_responses(http::Client& client, Model model, Context context,
                                                                StreamOptions options, EventSink sink,
                                                                std::stop_token stop) {
  return call_provider(client, prepare, std::move(model), std::move(context), std::move(options), std::move(sink),
                       std::move(stop));
}

}  // namespace tau::ai
