#include "ai/providers/copilot_headers.h"

#include <algorithm>

#include "ai/providers/anthropic_compat.h"
#include "base/utf8.h"

namespace tau::ai {

Headers copilot_headers(const Context& context) {
  bool agent = false;
  bool image = false;
  for (const MessageRef& message : context.messages) {
    agent = !std::holds_alternative<UserMessage>(*message);
    if (const auto* user = std::get_if<UserMessage>(message.get())) {
      const auto* blocks = std::get_if<std::vector<UserBlock>>(&user->content);
      image = image || (blocks != nullptr && has_image(*blocks));
    } else if (const auto* result = std::get_if<ToolResultMessage>(message.get())) {
      image = image || has_image(result->content);
    }
  }
  Headers headers{{"X-Initiator", agent ? "agent" : "user"}, {"Openai-Intent", "conversation-edits"}};
  if (image) headers.emplace_back("Copilot-Vision-Request", "true");
  return headers;
}

bool has_header(const Headers& headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(), [&](const auto& header) {
    return same_ignoring_case(header.first, name) && header.second && !utf8::is_blank(*header.second);
  });
}

}  // namespace tau::ai
