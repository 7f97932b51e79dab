#include "ai/providers/openai_completions.h"

#include <utility>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/provider_call.h"
#include "ai/providers/copilot_headers.h"
#include "ai/providers/openai_completions_compat.h"
#include "ai/surrogates.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  auto headers = openai_completions_headers(model, context, options);
  if (!headers) return std::unexpected(std::move(headers.error()));
  auto body = encode_openai_completions(model, context, options);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);
  ProviderCall call;
  call.request.url = join_url(model.base_url, "/chat/completions");
  call.request.headers = *std::move(headers);
  json::write(call.request.body, *body);
  call.error_text = [](int status, std::string_view, const http::HeaderList&, std::string_view text) {
    return openai_completions_error_text(status, text);
  };
  call.decoder = std::make_unique<OpenAiCompletionsDecoder>(model, context.tools);
  return call;
}

void add_session_headers(Headers& headers, const CompletionsCompat& compat, const StreamOptions& options) {  // AI-130
  if (!compat.session_affinity || !options.session_id || cache_retention(options) == CacheRetention::kNone) return;
  if (compat.session_affinity_format == "openrouter") {
    merge_headers(headers, {{"x-session-id", *options.session_id}});
    return;
  }
  if (compat.session_affinity_format != "openai-nosession")
    merge_headers(headers, {{"session_id", *options.session_id}});
  merge_headers(headers, {{"x-client-request-id", *options.session_id}, {"x-session-affinity", *options.session_id}});
}

}  // namespace

std::expected<http::HeaderList, std::string> openai_completions_headers(const Model& model, const Context& context,
                                                                        const StreamOptions& options) {
  const bool has_key = options.api_key && !utf8::is_blank(*options.api_key);
  Headers headers{{"content-type", "application/json"}, {"accept", "application/json"}, {"user-agent", user_agent()}};
  if (has_key) headers.emplace_back("authorization", "Bearer " + *options.api_key);
  merge_headers(headers, model.headers);
  if (model.provider == "github-copilot") merge_headers(headers, copilot_headers(context));
  add_session_headers(headers, CompletionsCompat(model), options);
  merge_headers(headers, options.headers);

  if (!has_key && !has_header(headers, "authorization") && !has_header(headers, "cf-aig-authorization")) {
    return std::unexpected("No API key for provider: " + model.provider);
  }
  return present_headers(std::move(headers));
}

std::string openai_completions_error_text(int status, std::string_view body) {
  constexpr std::size_t kLongest = 4000;
  const std::string_view trimmed = utf8::trim(body);
  const auto cut = [](std::string_view text) {
    const std::string_view shown = utf8::prefix_utf16(text, kLongest);
    if (shown.size() == text.size()) return std::string(text);
    return fmt::format("{}... [truncated {} chars]", shown, utf8::utf16_length(text) - utf8::utf16_length(shown));
  };
  const auto parsed = json::parse(trimmed);
  const json::object* o = parsed ? parsed->if_object() : nullptr;
  if (o == nullptr) {
    if (trimmed.empty() || parsed) return fmt::format("{} status code (no body)", status);
    return fmt::format("{} {}", status, cut(trimmed));
  }
  const json::value* problem = json::find(*o, "error");
  if (problem == nullptr || problem->is_null()) return fmt::format("{} status code (no body)", status);
  if (problem->is_string()) return fmt::format("{} {}", status, cut(json::to_text(*problem)));
  const json::object* details = problem->if_object();
  if (details == nullptr || details->empty()) return fmt::format("{} status code (no body)", status);
  std::string text = fmt::format("{}: {}", status, cut(json::to_text(*problem)));
  // A router passes on what the provider behind it said (AI-93).
  if (const json::object* metadata = json::find_object(*details, "metadata")) {
    const auto raw = json::find_string(*metadata, "raw");
    if (raw && !raw->empty() && text.find(*raw) == std::string::npos) text += fmt::format("\n{}", cut(*raw));
  }
  return text;
}

asio::awaitable<AssistantMessage> stream_openai_completions(http::Client& client, Model model, Context context,
                                                            StreamOptions options, EventSink sink,
                                                            std::stop_token stop) {
  return call_provider(client, prepare, std::move(model), std::move(context), std::move(options), std::move(sink),
                       std::move(stop));
}

}  // namespace tau::ai
