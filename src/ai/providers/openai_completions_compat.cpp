#include "ai/providers/openai_completions_compat.h"

#include <algorithm>
#include <initializer_list>

namespace tau::ai {

namespace {

/// What a model's server is, by its provider id or its host.
class Server {
 public:
  explicit Server(const Model& model) : provider_(model.provider), url_(model.base_url) {
    std::transform(url_.begin(), url_.end(), url_.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  }

  bool is(std::initializer_list<std::string_view> providers, std::initializer_list<std::string_view> hosts) const {
    return std::any_of(providers.begin(), providers.end(), [&](std::string_view p) { return p == provider_; }) ||
           std::any_of(hosts.begin(), hosts.end(),
                       [&](std::string_view h) { return url_.find(h) != std::string::npos; });
  }

 private:
  std::string provider_;
  std::string url_;
};

json::object object_or_empty(const json::object& o, std::string_view key) {
  const json::object* found = json::find_object(o, key);
  return found != nullptr ? *found : json::object{};
}

}  // namespace

CompletionsCompat::CompletionsCompat(const Model& model) {
  const Server server(model);
  const bool zai = server.is({"zai", "zai-coding-cn"}, {"api.z.ai", "open.bigmodel.cn"});
  const bool together = server.is({"together"}, {"api.together.ai", "api.together.xyz"});
  const bool moonshot = server.is({"moonshotai", "moonshotai-cn"}, {"api.moonshot."});
  const bool openrouter = server.is({"openrouter"}, {"openrouter.ai"});
  const bool workers = server.is({"cloudflare-workers-ai"}, {"api.cloudflare.com"});
  const bool gateway = server.is({"cloudflare-ai-gateway"}, {"gateway.ai.cloudflare.com"});
  const bool nvidia = server.is({"nvidia"}, {"integrate.api.nvidia.com"});
  const bool ant_ling = server.is({"ant-ling"}, {"api.ant-ling.com"});
  const bool deepseek = server.is({"deepseek"}, {"deepseek.com"});
  const bool cerebras = server.is({"cerebras"}, {"cerebras.ai"});
  const bool xai = server.is({"xai"}, {"api.x.ai"});
  const bool chutes = server.is({}, {"chutes.ai"});
  const bool opencode = server.is({"opencode", "opencode-go"}, {"opencode.ai"});
  const bool openai = server.is({"openai", "github-copilot"}, {"api.openai.com"});
  const bool non_standard = nvidia || cerebras || xai || together || chutes || deepseek || zai || moonshot ||
                            opencode || workers || gateway || ant_ling;
  const bool vendor_id = model.id.starts_with("anthropic/") || model.id.starts_with("openai/");

  const json::object& c = model.compat;
  const auto flag = [&](std::string_view key, bool known) { return json::bool_or(c, key, known); };
  const auto word = [&](std::string_view key, std::string_view known) { return json::string_or(c, key, known); };

  store = flag("supportsStore", !non_standard);
  // Only the vendor that has the role is known to take it, also behind a router (FF-15).
  developer_role = flag("supportsDeveloperRole", openai || (openrouter && vendor_id));
  reasoning_effort =
      flag("supportsReasoningEffort", !(xai || zai || moonshot || together || gateway || nvidia || ant_ling));
  usage_in_streaming = flag("supportsUsageInStreaming", true);
  finish_reason = flag("supportsFinishReason", true);
  max_tokens_field =
      word("maxTokensField", chutes || deepseek || moonshot || gateway || together || nvidia || ant_ling || zai
                                 ? "max_tokens"
                                 : "max_completion_tokens");
  tool_result_name = flag("requiresToolResultName", false);
  assistant_after_tool_result = flag("requiresAssistantAfterToolResult", false);
  thinking_as_text = flag("requiresThinkingAsText", false);
  reasoning_content_on_assistant = flag("requiresReasoningContentOnAssistantMessages", deepseek);
  thinking_format = word("thinkingFormat", deepseek     ? "deepseek"
                                           : zai        ? "zai"
                                           : together   ? "together"
                                           : ant_ling   ? "ant-ling"
                                           : openrouter ? "openrouter"
                                                        : "openai");
  strict_mode = flag("supportsStrictMode", !(moonshot || together || gateway || nvidia));
  grammar_tools = flag("supportsOpenAIGrammarTools", false);
  zai_tool_stream = flag("zaiToolStream", false);
  session_affinity = flag("sendSessionAffinityHeaders", false);
  thinking_token_budget = flag("supportsThinkingTokenBudget", false);
  cache_control_format = word("cacheControlFormat",
                              model.provider == "openrouter" && model.id.starts_with("anthropic/") ? "anthropic" : "");
  session_affinity_format = word("sessionAffinityFormat", openrouter ? "openrouter" : "openai");
  long_cache_retention = flag("supportsLongCacheRetention", !(together || workers || gateway || nvidia || ant_ling));
  deferred_tools_mode = word("deferredToolsMode", "");
  thinking_budget_field = word("thinkingTokenBudgetField", "");
  const json::value* priority = json::find(c, "vllmPriority");
  vllm_priority_set = priority != nullptr && !priority->is_null();
  if (vllm_priority_set) vllm_priority = *priority;
  chat_template_kwargs = object_or_empty(c, "chatTemplateKwargs");
  chat_template_args = object_or_empty(c, "chatTemplateArgs");
  if (const json::value* routing = json::find(c, "openRouterRouting")) openrouter_routing = *routing;
  vercel_routing = object_or_empty(c, "vercelGatewayRouting");
}

}  // namespace tau::ai
