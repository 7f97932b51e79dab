#include <utility>

#include <fmt/format.h>

#include "ai/providers/bedrock_converse_stream.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kMessageLimit = std::size_t{256} << 20;
constexpr std::string_view kRedactedText = "[Reasoning redacted]";

}  // namespace

BedrockDecoder::BedrockDecoder(const Model& model) : StreamDecoder(empty_reply(model)), model_(model) {}

void BedrockDecoder::push(std::string_view bytes) {
  frames_.push(bytes);
}

void BedrockDecoder::end_of_body() {
  body_over_ = true;
}

void BedrockDecoder::fail(std::string_view text) {
  assembler_.fail(StopReason::kError, printable(text));
}

bool BedrockDecoder::count_bytes(std::size_t bytes) {
  message_bytes_ += bytes;
  if (message_bytes_ <= kMessageLimit) return true;
  fail(fmt::format("The stream sent a message larger than {} bytes", kMessageLimit));
  return false;
}

std::optional<StreamEvent> BedrockDecoder::next() {
  while (!assembler_.has_step()) {
    if (assembler_.settled()) return std::nullopt;
    if (const auto message = frames_.next()) {
      handle(*message);
    } else if (frames_.error()) {
      fail("The stream is damaged: " + *frames_.error());
    } else if (body_over_) {
      end_of_stream();
    } else {
      break;
    }
  }
  return assembler_.next();
}

void BedrockDecoder::begin() {
  if (!std::exchange(begun_, true)) assembler_.start();
}

void BedrockDecoder::handle(const http::EventStreamMessage& message) {
  const std::string_view kind = message.header(":message-type");
  auto parsed = json::parse(message.payload);
  const json::object* payload = parsed ? parsed->if_object() : nullptr;
  if (kind == "exception" || kind == "error") {
    std::string_view name = message.header(":exception-type");
    if (name.empty()) name = message.header(":error-code");
    std::string text = payload != nullptr ? json::string_or(*payload, "message", json::string_or(*payload, "Message"))
                                          : std::string(message.header(":error-message"));
    fail_with(bedrock_error_code(name), text, payload != nullptr ? "" : std::string_view(message.payload));
    return;
  }
  if (payload == nullptr) {
    fail("The stream sent an event that is not JSON");
    return;
  }
  handle_event(message.header(":event-type"), *payload);
}

void BedrockDecoder::fail_with(std::string code, std::string_view message, std::string_view body) {
  json::object details;
  if (!code.empty()) details.emplace("errorCode", code);
  if (!request_id_.empty()) details.emplace("requestId", request_id_);
  json::array& diagnostics = assembler_.message().diagnostics.emplace();
  diagnostics.emplace_back(json::object{
      {"type", "bedrock_response_failure"}, {"timestamp", now_milliseconds()}, {"details", std::move(details)}});
  fail(bedrock_error_text(code, message, 0, body));
}

void BedrockDecoder::handle_event(std::string_view type, const json::object& payload) {
  if (type == "messageStart") {
    if (json::string_or(payload, "role", "assistant") != "assistant") {
      fail("The stream began a message that is not the assistant's");
      return;
    }
    begin();
  } else if (type == "contentBlockStart") {
    const json::object* start = json::find_object(payload, "start");
    const json::object* use = start != nullptr ? json::find_object(*start, "toolUse") : nullptr;
    const auto number = json::find_integer(payload, "contentBlockIndex");
    if (use == nullptr || !number) return;
    ToolCall call;
    call.id = json::string_or(*use, "toolUseId");
    call.name = json::string_or(*use, "name");
    open(*number, std::move(call));
  } else if (type == "contentBlockDelta") {
    block_delta(payload);
  } else if (type == "contentBlockStop") {
    block_stop(payload);
  } else if (type == "messageStop") {
    stop_word_ = json::string_or(payload, "stopReason");
    assembler_.message().raw_stop_reason = stop_word_;
  } else if (type == "metadata") {
    if (const json::object* usage = json::find_object(payload, "usage")) read_usage(*usage);
  }
}

BedrockDecoder::Block& BedrockDecoder::open(std::int64_t number, AssistantBlock block) {
  begin();
  Block opened;
  opened.index = assembler_.open(std::move(block));
  return blocks_.insert_or_assign(number, std::move(opened)).first->second;
}

void BedrockDecoder::block_delta(const json::object& payload) {
  const auto number = json::find_integer(payload, "contentBlockIndex");
  const json::object* delta = json::find_object(payload, "delta");
  if (!number || delta == nullptr) return;
  const auto known = blocks_.find(*number);
  if (const auto text = json::find_string(*delta, "text")) {
    if (!count_bytes(text->size())) return;
    Block& block = known != blocks_.end() ? known->second : open(*number, TextContent{});
    if (assembler_.kind_of(block.index) == BlockKind::kText) {
      assembler_.append_owned(block.index, std::string(*text));
    }
  } else if (const json::object* use = json::find_object(*delta, "toolUse")) {
    const auto input = json::find_string(*use, "input");
    if (!input || known == blocks_.end() || assembler_.kind_of(known->second.index) != BlockKind::kToolCall) return;
    if (count_bytes(input->size())) assembler_.append_owned(known->second.index, std::string(*input));
  } else if (const json::object* reasoning = json::find_object(*delta, "reasoningContent")) {
    reasoning_delta(*number, *reasoning);
  }
}

void BedrockDecoder::reasoning_delta(std::int64_t number, const json::object& reasoning) {
  const auto known = blocks_.find(number);
  if (known != blocks_.end() && assembler_.kind_of(known->second.index) != BlockKind::kThinking) return;
  if (const auto secret = json::find_string(reasoning, "redactedContent")) {
    const auto bytes = base64_decode(*secret);
    if (!bytes || !count_bytes(bytes->size())) return;
    if (known == blocks_.end()) {
      ThinkingContent block;
      block.redacted = true;
      Block& opened = open(number, std::move(block));
      opened.redacted = true;
      opened.secret = *bytes;
      assembler_.append(opened.index, kRedactedText);
    } else if (known->second.redacted) {
      known->second.secret += *bytes;
    }
    return;
  }
  const std::string text = json::string_or(reasoning, "text");
  const std::string signature = json::string_or(reasoning, "signature");
  if (!count_bytes(text.size() + signature.size())) return;
  if (known == blocks_.end()) {
    ThinkingContent block;
    if (!signature.empty()) block.thinking_signature = signature;
    const Block& opened = open(number, std::move(block));
    if (!text.empty()) assembler_.append_owned(opened.index, text);
    return;
  }
  if (!text.empty()) assembler_.append_owned(known->second.index, text);
  if (!signature.empty()) {
    auto& thinking = std::get<ThinkingContent>(*assembler_.applied_block(known->second.index));
    thinking.thinking_signature = thinking.thinking_signature.value_or("") + signature;
  }
}

void BedrockDecoder::block_stop(const json::object& payload) {
  const auto number = json::find_integer(payload, "contentBlockIndex");
  const auto known = number ? blocks_.find(*number) : blocks_.end();
  if (known == blocks_.end()) return;
  Block& block = known->second;
  if (block.redacted) {
    std::get<ThinkingContent>(*assembler_.applied_block(block.index)).thinking_signature = base64_encode(block.secret);
  }
  assembler_.close(block.index);
}

void BedrockDecoder::read_usage(const json::object& o) {
  Usage& usage = assembler_.message().usage;
  usage.input = json::number_or(o, "inputTokens");
  usage.output = json::number_or(o, "outputTokens");
  usage.cache_read = json::number_or(o, "cacheReadInputTokens");
  usage.cache_write = json::number_or(o, "cacheWriteInputTokens");
  usage.total_tokens = json::number_or(o, "totalTokens", usage.input + usage.output);
  price(usage, model_);
}

void BedrockDecoder::end_of_stream() {
  if (frames_.has_rest() || !stop_word_) {
    fail("Bedrock stream ended before its last event");
    return;
  }
  const std::string& word = *stop_word_;
  if (word == "end_turn" || word == "stop_sequence") {
    assembler_.finish(StopReason::kStop);
  } else if (word == "max_tokens" || word == "model_context_window_exceeded") {
    assembler_.finish(StopReason::kLength);
  } else if (word == "tool_use") {
    assembler_.finish(StopReason::kToolUse);
  } else {
    fail(fmt::format("Provider stopped with: {}", word));
  }
}

}  // namespace tau::ai
