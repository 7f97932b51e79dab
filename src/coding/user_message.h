// The form in which prompts, steering and follow-ups enter the transcript.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/agent_message.h"
#include "base/clock.h"

namespace tau::coding {

/// The text first, also when it is empty, then the images (CA-362).
inline agent::AgentMessage user_message(std::string text, std::vector<ai::ImageContent> images) {
  std::vector<ai::UserBlock> content;
  content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  for (ai::ImageContent& image : images)
    content.emplace_back(std::move(image));
  return ai::UserMessage{std::move(content), now_milliseconds(), {}};
}

}  // namespace tau::coding
