#include "ai/stream_decoder.h"

#include <utility>

#include "ai/partial_json.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

BlockKind kind_of_block(const AssistantBlock& block) {
  if (std::holds_alternative<ToolCall>(block)) return BlockKind::kToolCall;
  if (std::holds_alternative<ThinkingContent>(block)) return BlockKind::kThinking;
  return BlockKind::kText;
}

}  // namespace

MessageAssembler::MessageAssembler(AssistantMessage initial) : message_(std::move(initial)) {
  message_.stop_reason = StopReason::kPending;
}

void MessageAssembler::queue(Step step) {
  if (ending_) return;
  // A decoder that always queues before the last step is applied must not make the vector grow for ever.
  if (first_step_ >= 256 && first_step_ * 2 >= steps_.size()) {
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(first_step_));
    first_step_ = 0;
  }
  steps_.push_back(std::move(step));
}

void MessageAssembler::start() {
  queue({.kind = Step::Kind::kStart});
}

std::size_t MessageAssembler::open(AssistantBlock block) {
  const std::size_t index = blocks_.size();
  blocks_.push_back({.kind = kind_of_block(block)});
  if (!ending_) opening_.push_back(std::move(block));
  queue({.kind = Step::Kind::kOpen, .index = index});
  return index;
}

void MessageAssembler::append(std::size_t index, std::string_view delta) {
  BlockState& block = blocks_.at(index);
  if (block.kind == BlockKind::kToolCall) utf8::append_wtf8(block.arguments, delta);
  queue({.kind = Step::Kind::kAppend, .index = index, .view = delta});
}

void MessageAssembler::append_owned(std::size_t index, std::string delta) {
  BlockState& block = blocks_.at(index);
  if (block.kind == BlockKind::kToolCall) utf8::append_wtf8(block.arguments, delta);
  queue({.kind = Step::Kind::kAppendOwned, .index = index, .owned = std::move(delta)});
}

void MessageAssembler::close(std::size_t index, bool keep_arguments) {
  BlockState& block = blocks_.at(index);
  if (!block.open) return;
  block.open = false;
  queue({.kind = Step::Kind::kClose, .keep_arguments = keep_arguments, .index = index});
}

void MessageAssembler::close_with(std::size_t index, AssistantBlock final_block) {
  BlockState& block = blocks_.at(index);
  if (!block.open) return;
  block.open = false;
  if (!ending_) closing_.push_back(std::move(final_block));
  queue({.kind = Step::Kind::kClose, .replace = true, .index = index});
}

void MessageAssembler::finish(StopReason reason) {
  queue({.kind = Step::Kind::kFinish, .reason = reason});
  ending_ = true;
}

void MessageAssembler::fail(StopReason reason, std::string error_message) {
  queue({.kind = Step::Kind::kFail, .reason = reason, .owned = std::move(error_message)});
  ending_ = true;
}

void MessageAssembler::abort_now(std::string error_message) {
  if (settled_) return;
  steps_.clear();
  first_step_ = 0;
  opening_.clear();
  closing_.clear();
  ending_ = false;
  fail(StopReason::kAborted, std::move(error_message));
}

std::string& MessageAssembler::argument_text(std::size_t index) {
  return blocks_.at(index).arguments;
}

std::vector<std::size_t> MessageAssembler::open_blocks() const {
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].open) indexes.push_back(i);
  }
  return indexes;
}

AssistantBlock* MessageAssembler::applied_block(std::size_t index) {
  return index < message_.content.size() ? &message_.content[index] : nullptr;
}

std::optional<StreamEvent> MessageAssembler::next() {
  if (!has_step()) {
    // Everything was handed out; the memory is used again.
    steps_.clear();
    first_step_ = 0;
    return std::nullopt;
  }
  return apply(steps_[first_step_++]);
}

StreamEvent MessageAssembler::apply(Step& step) {
  const std::size_t index = step.index;
  switch (step.kind) {
    case Step::Kind::kStart:
      return {StreamStart{}, message_};
    case Step::Kind::kOpen:
      message_.content.push_back(std::move(opening_.front()));
      opening_.pop_front();
      return {BlockStart{blocks_[index].kind, index}, message_};
    case Step::Kind::kAppend:
      apply_delta(index, step.view);
      return {BlockDelta{blocks_[index].kind, index, step.view}, message_};
    case Step::Kind::kAppendOwned:
      current_delta_ = std::move(step.owned);
      apply_delta(index, current_delta_);
      return {BlockDelta{blocks_[index].kind, index, current_delta_}, message_};
    case Step::Kind::kClose:
      blocks_[index].closed = true;
      if (step.replace) {
        message_.content[index] = std::move(closing_.front());
        closing_.pop_front();
      }
      if (blocks_[index].kind == BlockKind::kToolCall) settle_arguments(index, step.keep_arguments);
      return {BlockEnd{blocks_[index].kind, index}, message_};
    case Step::Kind::kFinish:
      settle(step.reason);
      return {StreamDone{}, message_};
    case Step::Kind::kFail:
      message_.error_message = std::move(step.owned);
      settle(step.reason);
      return {StreamError{}, message_};
  }
  std::unreachable();
}

void MessageAssembler::apply_delta(std::size_t index, std::string_view delta) {
  AssistantBlock& block = message_.content[index];
  if (auto* text = std::get_if<TextContent>(&block)) {
    utf8::append_wtf8(text->text, delta);
  } else if (auto* thinking = std::get_if<ThinkingContent>(&block)) {
    utf8::append_wtf8(thinking->thinking, delta);
  }
  // The text of a call is collected when it is queued.
}

void MessageAssembler::settle_arguments(std::size_t index, bool keep_arguments) {
  auto& call = std::get<ToolCall>(message_.content[index]);
  const std::string& text = blocks_[index].arguments;
  if (call.id.empty()) call.id = "call_" + random_hex(24);
  if (utf8::is_blank(text)) {
    if (!keep_arguments) call.arguments = json::object{};
    return;
  }
  FinalArguments arguments = parse_final_arguments(text);
  call.arguments = std::move(arguments.value);
  if (!arguments.valid) call.malformed_arguments = text;
}

/// Ends the message. A block that was never closed stays as it is; a call among them gets its arguments so far.
void MessageAssembler::settle(StopReason reason) {
  for (std::size_t i = 0; i < message_.content.size(); ++i) {
    if (!blocks_[i].closed && blocks_[i].kind == BlockKind::kToolCall) settle_arguments(i, true);
  }
  message_.stop_reason = reason;
  settled_ = true;
}

AssistantMessage empty_reply(const Model& model) {
  AssistantMessage message;
  message.api = model.api;
  message.provider = model.provider;
  message.model = model.id;
  message.stop_reason = StopReason::kPending;
  message.timestamp = now_milliseconds();
  return message;
}

}  // namespace tau::ai
