#include "ai/thinking_budget.h"

#include <algorithm>

namespace tau::ai {

double thinking_budget(ThinkingLevel level, const ThinkingBudgets& custom) {
  level = std::min(level, ThinkingLevel::kHigh);
  if (const auto it = custom.find(level); it != custom.end()) return it->second;
  switch (level) {
    case ThinkingLevel::kOff:
      return 0;
    case ThinkingLevel::kMinimal:
      return 1024;
    case ThinkingLevel::kLow:
      return 2048;
    case ThinkingLevel::kMedium:
      return 8192;
    default:
      return 16384;
  }
}

double leave_answer_room(double budget, double ceiling) {
  return std::min(budget, std::max(0.0, ceiling - kAnswerRoom));
}

TokenLimits limits_with_thinking(std::optional<double> answer_tokens, double model_max_tokens, ThinkingLevel level,
                                 const ThinkingBudgets& custom) {
  TokenLimits limits;
  limits.thinking_budget = thinking_budget(level, custom);
  limits.max_tokens =
      answer_tokens ? std::min(*answer_tokens + limits.thinking_budget, model_max_tokens) : model_max_tokens;
  if (limits.max_tokens <= limits.thinking_budget) {
    limits.thinking_budget = leave_answer_room(limits.thinking_budget, limits.max_tokens);
  }
  return limits;
}

}  // namespace tau::ai
