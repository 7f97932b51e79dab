#include "ai/token_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr double kCharactersPerToken = 4;
constexpr std::size_t kCharactersPerImage = 4800;

double tokens_of(std::size_t characters) {
  return std::ceil(static_cast<double>(characters) / kCharactersPerToken);
}

std::size_t characters_of(const std::vector<UserBlock>& blocks) {
  std::size_t count = 0;
  for (const UserBlock& block : blocks) {
    if (const auto* text = std::get_if<TextContent>(&block)) {
      count += utf8::utf16_length(text->text);
    } else if (std::holds_alternative<ImageContent>(block)) {
      count += kCharactersPerImage;
    }
  }
  return count;
}

std::size_t characters_of(const UserMessage& message) {
  if (const auto* text = std::get_if<std::string>(&message.content)) return utf8::utf16_length(*text);
  return characters_of(std::get<std::vector<UserBlock>>(message.content));
}

std::size_t characters_of(const AssistantMessage& message) {
  std::size_t count = 0;
  for (const AssistantBlock& block : message.content) {
    if (const auto* text = std::get_if<TextContent>(&block)) {
      count += utf8::utf16_length(text->text);
    } else if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
      count += utf8::utf16_length(thinking->thinking);
    } else if (const auto* call = std::get_if<ToolCall>(&block)) {
      count += utf8::utf16_length(call->name) + utf8::utf16_length(json::to_text(call->arguments));
    }
  }
  return count;
}

std::size_t characters_of(const ToolResultMessage& message) {
  return characters_of(message.content);
}

Milliseconds time_of(const Message& message) {
  return std::visit([](const auto& m) { return m.timestamp; }, message);
}

double reported_tokens(const Usage& usage) {
  return usage.total_tokens > 0 ? usage.total_tokens
                                : usage.input + usage.output + usage.cache_read + usage.cache_write;
}

std::optional<std::size_t> last_reply_with_usage(const std::vector<MessageRef>& messages) {
  std::optional<std::size_t> found;
  Milliseconds youngest = std::numeric_limits<Milliseconds>::min();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto* reply = std::get_if<AssistantMessage>(messages[i].get());
    if (reply != nullptr && reply->timestamp >= youngest && reply->stop_reason != StopReason::kError &&
        reply->stop_reason != StopReason::kAborted && reported_tokens(reply->usage) > 0) {
      found = i;
    }
    youngest = std::max(youngest, time_of(*messages[i]));
  }
  return found;
}

}  // namespace

double estimate_text_tokens(std::string_view text) {
  return tokens_of(utf8::utf16_length(text));
}

double estimate_tokens(const Message& message) {
  return tokens_of(std::visit([](const auto& m) { return characters_of(m); }, message));
}

double estimate_tokens(const std::vector<Tool>& tools) {
  if (tools.empty()) return 0;
  json::array definitions;
  definitions.reserve(tools.size());
  for (const Tool& tool : tools)
    definitions.emplace_back(to_json(tool));
  return estimate_text_tokens(json::to_text(definitions));
}

ContextEstimate estimate_context(const Context& context) {
  ContextEstimate estimate;
  estimate.last_usage_index = last_reply_with_usage(context.messages);
  std::size_t from = 0;
  if (estimate.last_usage_index) {
    from = *estimate.last_usage_index + 1;
    estimate.usage_tokens =
        reported_tokens(std::get<AssistantMessage>(*context.messages[*estimate.last_usage_index]).usage);
  }
  std::unordered_set<std::string> added;
  for (std::size_t i = from; i < context.messages.size(); ++i) {
    estimate.trailing_tokens += estimate_tokens(*context.messages[i]);
    if (const auto* result = std::get_if<ToolResultMessage>(context.messages[i].get())) {
      added.insert(result->added_tool_names.begin(), result->added_tool_names.end());
    }
  }
  if (estimate.last_usage_index) {
    if (!added.empty()) {
      std::vector<Tool> new_tools;
      std::copy_if(context.tools.begin(), context.tools.end(), std::back_inserter(new_tools),
                   [&](const Tool& tool) { return added.contains(tool.name); });
      estimate.trailing_tokens += estimate_tokens(new_tools);
    }
  } else {
    if (context.system_prompt) estimate.trailing_tokens += estimate_text_tokens(*context.system_prompt);
    estimate.trailing_tokens += estimate_tokens(context.tools);
  }
  estimate.tokens = estimate.usage_tokens + estimate.trailing_tokens;
  return estimate;
}

}  // namespace tau::ai
