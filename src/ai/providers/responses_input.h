// What the Responses APIs share in their requests: the conversation as input items, and the tools (AI-162 to AI-167).
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "ai/context.h"
#include "ai/model.h"

namespace tau::ai {

struct ResponsesCompat {  // AI-161
  bool developer_role;
  bool long_cache_retention;
  bool max_output_tokens;
  bool grammar_tools;
  bool additional_tools;
  bool tool_search;
  bool explicit_cache_mode;
  std::optional<bool> strict_mode;  // nothing: the model does not say
  std::string session_affinity_format;

  explicit ResponsesCompat(const Model& model);
};

struct ResponsesInputRules {
  bool system_item = true;     // the system prompt is an item; else the API has a field for it
  bool deferred_tools = true;  // tools may appear in the middle of the conversation
  bool strict = false;         // strict schemas can be sent
  /// Value of `strict` of a tool that is not strict; nothing: the field is left out.
  std::optional<json::value> loose;
};

struct ResponsesInput {
  json::array items;
  json::array tools;
};

/// Fails when a tool or a replayed call cannot be sent.
std::expected<ResponsesInput, std::string> responses_input(const Model& model, const Context& context,
                                                           const ResponsesInputRules& rules);

/// The level to ask for, clamped to what the model has; nothing when thinking is off.
std::optional<ThinkingLevel> responses_level(const Model& model, const StreamOptions& options);
/// The model's word for a level.
std::string responses_effort(const Model& model, ThinkingLevel level);

/// Adds `reasoning`, and `include` where thoughts come back encrypted.
void put_responses_reasoning(json::object& body, const Model& model, const StreamOptions& options);

}  // namespace tau::ai
