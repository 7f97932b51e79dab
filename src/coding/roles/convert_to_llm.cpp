#include "coding/roles/convert_to_llm.h"

#include "coding/roles/bash_execution.h"
#include "coding/roles/branch_summary.h"
#include "coding/roles/compaction_summary.h"
#include "coding/roles/custom.h"

namespace tau::coding {

namespace {

constexpr std::string_view kBlockedImage = "Image reading is disabled.";

bool is_blocked_text(const ai::UserBlock& block) {
  const auto* text = std::get_if<ai::TextContent>(&block);
  return text != nullptr && text->text == kBlockedImage;
}

/// Each image becomes a text, runs of that text become one (PR-21, PR-22).
std::vector<ai::UserBlock> without_images(const std::vector<ai::UserBlock>& blocks) {
  std::vector<ai::UserBlock> out;
  for (const ai::UserBlock& block : blocks) {
    ai::UserBlock next = std::holds_alternative<ai::ImageContent>(block)
                             ? ai::UserBlock(ai::TextContent{std::string(kBlockedImage), {}, {}})
                             : block;
    if (is_blocked_text(next) && !out.empty() && is_blocked_text(out.back())) continue;
    out.push_back(std::move(next));
  }
  return out;
}

ai::MessageRef without_images(const ai::MessageRef& message) {
  if (const auto* user = std::get_if<ai::UserMessage>(message.get())) {
    const auto* blocks = std::get_if<std::vector<ai::UserBlock>>(&user->content);
    if (blocks == nullptr || !ai::has_image(*blocks)) return message;
    ai::UserMessage copy = *user;
    copy.content = without_images(*blocks);
    return ai::make_message(ai::Message(std::move(copy)));
  }
  if (const auto* result = std::get_if<ai::ToolResultMessage>(message.get())) {
    if (!ai::has_image(result->content)) return message;
    ai::ToolResultMessage copy = *result;
    copy.content = without_images(result->content);
    return ai::make_message(ai::Message(std::move(copy)));
  }
  return message;
}

}  // namespace

agent::RoleSet& detail::mutable_coding_roles() {
  static agent::RoleSet roles = agent::RoleSet::of<BashExecution, CustomMessage, BranchSummary, CompactionSummary>();
  return roles;
}

const agent::RoleSet& coding_roles() {
  return detail::mutable_coding_roles();
}

std::vector<ai::MessageRef> convert_to_llm(const std::vector<agent::AgentMessage>& messages, bool block_images) {
  std::vector<ai::MessageRef> out;
  out.reserve(messages.size());
  for (const agent::AgentMessage& message : messages) {
    for (const ai::MessageRef& projected : message.projection()) {
      out.push_back(block_images ? without_images(projected) : projected);
    }
  }
  return out;
}

}  // namespace tau::coding
