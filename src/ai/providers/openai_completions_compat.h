// How servers behind the wire API "openai-completions" differ (AI-132): what is known of a provider or a host, with the
// model's own `compat` on top. Shared by this API's encoder and decoder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ai/model.h"
#include "base/json.h"

namespace tau::ai {

struct CompletionsCompat {
  bool store;
  bool developer_role;
  bool reasoning_effort;
  bool usage_in_streaming;
  bool finish_reason;
  bool tool_result_name;
  bool assistant_after_tool_result;
  bool thinking_as_text;
  bool reasoning_content_on_assistant;
  bool strict_mode;
  bool grammar_tools;
  bool zai_tool_stream;
  bool session_affinity;
  bool thinking_token_budget;
  bool long_cache_retention;
  bool vllm_priority_set;
  json::value vllm_priority;
  std::string max_tokens_field;
  std::string thinking_format;
  std::string cache_control_format;     // "" or "anthropic"
  std::string session_affinity_format;  // "openai", "openai-nosession", "openrouter"
  std::string deferred_tools_mode;      // "" or "kimi"
  std::string thinking_budget_field;
  json::object chat_template_kwargs;
  json::object chat_template_args;
  std::optional<json::value> openrouter_routing;
  json::object vercel_routing;

  explicit CompletionsCompat(const Model& model);
};

}  // namespace tau::ai
