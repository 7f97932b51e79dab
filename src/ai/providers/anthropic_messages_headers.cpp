#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/provider_call.h"
#include "ai/providers/anthropic_compat.h"
#include "ai/providers/anthropic_messages.h"
#include "ai/providers/copilot_headers.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::string_view kOAuthUserAgent = "claude-cli/2.1.251";  // what the service expects with such tokens

const std::optional<std::string>* find_header(const Headers& headers, std::string_view name) {
  for (auto it = headers.rbegin(); it != headers.rend(); ++it) {
    if (same_ignoring_case(it->first, name)) return &it->second;
  }
  return nullptr;
}

bool has_auth_header(const Headers& headers) {
  return has_header(headers, "authorization") || has_header(headers, "x-api-key") ||
         has_header(headers, "cf-aig-authorization");
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string item(utf8::trim(list.substr(0, comma)));
    if (!item.empty() && std::find(items.begin(), items.end(), item) == items.end()) items.push_back(std::move(item));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return items;
}

std::vector<std::string> betas(const Model& model, const Context& context, const StreamOptions& options) {  // AI-101
  for (const Headers* headers : {&options.headers, &model.headers}) {
    if (const auto* chosen = find_header(*headers, "anthropic-beta"))
      return *chosen ? split_list(**chosen) : std::vector<std::string>{};
  }
  const AnthropicCompat compat(model);
  std::vector<std::string> list;
  if (uses_anthropic_oauth(model, options)) {
    list.emplace_back("claude-code-20250219");
    list.emplace_back("oauth-2025-04-20");
  }
  if (!context.tools.empty() && !compat.eager_tool_input) list.emplace_back("fine-grained-tool-streaming-2025-05-14");
  if (anthropic_thinks(model, options) && !compat.adaptive_thinking)
    list.emplace_back("interleaved-thinking-2025-05-14");
  if (!compat.fallback_models.empty()) list.emplace_back("server-side-fallback-2026-07-01");
  if (compat.mid_conversation_effort) {
    list.emplace_back("mid-conversation-output-config-2026-07-01");
    list.emplace_back("thinking-binding-controls-2026-08-01");
  }
  return list;
}

}  // namespace

std::expected<http::HeaderList, std::string> anthropic_headers(const Model& model, const Context& context,
                                                               const StreamOptions& options) {
  const AnthropicCompat compat(model);
  const bool has_key = options.api_key && !utf8::is_blank(*options.api_key);
  if (!has_key && !has_auth_header(options.headers) && !has_auth_header(model.headers))
    return std::unexpected("No API key for provider: " + model.provider);

  const bool copilot = model.provider == "github-copilot";
  const bool oauth = uses_anthropic_oauth(model, options);
  Headers headers{{"content-type", "application/json"},
                  {"accept", "application/json"},
                  {"anthropic-version", "2023-06-01"},
                  {"anthropic-dangerous-direct-browser-access", "true"},
                  {"user-agent", oauth ? std::string(kOAuthUserAgent) : user_agent()}};
  if (oauth) headers.emplace_back("x-app", "cli");
  if (has_key && (oauth || copilot)) {
    headers.emplace_back("authorization", "Bearer " + *options.api_key);
  } else if (has_key) {
    headers.emplace_back("x-api-key", *options.api_key);
  }
  if (compat.session_affinity && options.session_id && cache_retention(options) != CacheRetention::kNone && !oauth &&
      !copilot) {
    headers.emplace_back("x-session-affinity", *options.session_id);
  }
  merge_headers(headers, model.headers);
  if (copilot) merge_headers(headers, copilot_headers(context));
  merge_headers(headers, options.headers);

  const std::vector<std::string> beta_list = betas(model, context, options);
  merge_headers(headers,
                {{"anthropic-beta",
                  beta_list.empty() ? std::nullopt : std::optional(fmt::format("{}", fmt::join(beta_list, ",")))}});
  return present_headers(std::move(headers));
}

std::string anthropic_error_text(int status, std::string_view body) {
  constexpr std::size_t kLongest = 4000;  // a gateway's error page is no message
  const std::string_view trimmed = utf8::trim(body);
  if (trimmed.empty()) return fmt::format("{} status code (no body)", status);
  if (const auto parsed = json::parse(trimmed); parsed && parsed->is_structured())
    return fmt::format("{} {}", status, json::to_text(*parsed));
  const std::string_view shown = utf8::prefix_utf16(trimmed, kLongest);
  if (shown.size() == trimmed.size()) return fmt::format("{} {}", status, trimmed);
  return fmt::format("{} {}... [truncated {} chars]", status, shown,
                     utf8::utf16_length(trimmed) - utf8::utf16_length(shown));
}

}  // namespace tau::ai
