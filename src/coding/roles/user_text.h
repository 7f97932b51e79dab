// The form in which application messages reach the model: a user message of one text block.
#pragma once

#include <string>
#include <vector>

#include "ai/message.h"

namespace tau::coding {

inline std::vector<ai::MessageRef> user_text(std::string text, ai::Milliseconds timestamp) {
  std::vector<ai::UserBlock> content;
  content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  std::vector<ai::MessageRef> messages;
  messages.push_back(ai::make_message(ai::Message(ai::UserMessage{std::move(content), timestamp, {}})));
  return messages;
}

}  // namespace tau::coding
