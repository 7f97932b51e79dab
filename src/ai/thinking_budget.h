// How many tokens a model may spend on thinking, for APIs that ask for a number instead of a word (AI-54 to AI-56).
#pragma once

#include <map>
#include <optional>

#include "ai/model.h"

namespace tau::ai {

using ThinkingBudgets = std::map<ThinkingLevel, double>;

/// Room that is always left for the answer when thinking and answer share one limit (AI-55).
inline constexpr double kAnswerRoom = 1024;

/// Tokens for a level: `custom` first, then the defaults. kXhigh and kMax count as kHigh; kOff is 0 (AI-54).
double thinking_budget(ThinkingLevel level, const ThinkingBudgets& custom = {});

/// `budget`, cut so that kAnswerRoom remains below `ceiling`; never negative (AI-55).
double leave_answer_room(double budget, double ceiling);

struct TokenLimits {
  double max_tokens = 0;  // of thinking and answer together
  double thinking_budget = 0;
};

/// Adds the budget to the answer's limit, as far as the model allows (AI-56). Without `answer_tokens` the model's own
/// limit is the limit of both.
TokenLimits limits_with_thinking(std::optional<double> answer_tokens, double model_max_tokens, ThinkingLevel level,
                                 const ThinkingBudgets& custom = {});

}  // namespace tau::ai
