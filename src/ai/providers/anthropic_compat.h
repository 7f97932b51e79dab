// How models and servers behind the wire API "anthropic-messages" differ (the compat table of AI-110), and what that
// means for thinking. Shared by the parts of this API's encoder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ai/context.h"
#include "ai/model.h"

namespace tau::ai {

struct AnthropicCompat {
  bool eager_tool_input;         // tool input streams without a beta header
  bool long_cache_retention;     // cache markers may ask for an hour
  bool session_affinity;         // the session id goes into a header
  bool cache_control_on_tools;   //
  bool temperature;              //
  bool adaptive_thinking;        // the model takes an effort instead of a token budget
  bool empty_signature;          // unsigned thinking may be replayed as thinking
  bool strict_tools;             //
  bool mid_conversation_effort;  // the effort is said between messages (AI-104)
  bool tool_references;          // tools may be made known by a result (AI-110)
  std::vector<std::string> fallback_models;

  explicit AnthropicCompat(const Model& model);
};

/// Whether the call asks the model to think.
bool anthropic_thinks(const Model& model, const StreamOptions& options);

/// The model's word for a level (AI-103).
std::string anthropic_effort_word(const Model& model, ThinkingLevel level);

/// ASCII letters only.
bool same_ignoring_case(std::string_view a, std::string_view b);

}  // namespace tau::ai
