// Guessing how large a context is, where no provider has counted it (AI-57).
//
// Four characters a token is crude, but only the messages after the last reply with a usage report are guessed; the
// rest is what the provider counted.
#pragma once

#include <optional>
#include <string_view>

#include "ai/context.h"
#include "ai/message.h"

namespace tau::ai {

/// ceil(UTF-16 units / 4).
double estimate_text_tokens(std::string_view text);
double estimate_tokens(const Message& message);
/// Of the JSON text of the definitions; 0 for none.
double estimate_tokens(const std::vector<Tool>& tools);

struct ContextEstimate {
  double tokens = 0;           // the sum of the two below
  double usage_tokens = 0;     // as reported with the last reply that counts
  double trailing_tokens = 0;  // guessed, for what came after it; for everything when there is none
  std::optional<std::size_t> last_usage_index;
};

/// A reply counts when it did not fail, reports more than 0 tokens, and is no older than any message before it: after a
/// compaction the kept replies stand behind a younger summary, and their usage is that of the old context (FF-36).
ContextEstimate estimate_context(const Context& context);

}  // namespace tau::ai
