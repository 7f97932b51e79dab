// What a failed reply means for the one who asked: too large, worth another try, or final (AI-215 to AI-221).
//
// Providers do not agree on codes, so the text of the error decides. Two lessons from the field (FF-44): digits inside
// an id or a byte count are no status code, and an exhausted quota does not come back by asking again.
#pragma once

#include <optional>
#include <string_view>

#include "ai/message.h"

namespace tau::ai {

/// Whether the request was larger than the model's window (AI-215): the provider said so, or - with the window given -
/// it cut the input silently.
bool is_context_overflow(const AssistantMessage& message, std::optional<double> context_window = {});

/// Whether a reply was cut by a limit below the one that was wanted, so that a smaller context helps (AI-218).
/// `desired_max_tokens` is the limit before clamp_max_tokens.
bool is_recoverable_length(const AssistantMessage& message, double desired_max_tokens);

/// Whether the same request may succeed when it is sent again (AI-220). Never for an overflow, quota or billing.
bool is_retryable(const AssistantMessage& message);

// The same for the text of an error alone.
bool is_overflow_text(std::string_view error_message);
bool is_quota_text(std::string_view error_message);
bool is_retryable_text(std::string_view error_message);

/// The HTTP status that an error text reports: a number of its own from 400 to 599 at the beginning of a sentence or
/// behind a word such as "status", "code" or "HTTP", or alone in brackets. The first one counts.
std::optional<int> status_in(std::string_view error_message);

}  // namespace tau::ai
