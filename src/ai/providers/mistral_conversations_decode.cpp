#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ai/providers/mistral_conversations.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kEventLimit = std::size_t{64} << 20;
constexpr std::size_t kMessageLimit = std::size_t{256} << 20;

/// The number of cached tokens stands in one of several places, depending on the model's age.
double cached_tokens(const json::object& usage) {
  for (const char* key :
       {"prompt_tokens_details", "promptTokensDetails", "prompt_token_details", "promptTokenDetails"}) {
    const json::object* details = json::find_object(usage, key);
    if (details == nullptr) continue;
    for (const char* name : {"cached_tokens", "cachedTokens"}) {
      if (const auto tokens = json::find_number(*details, name)) return *tokens;
    }
  }
  for (const char* name : {"num_cached_tokens", "numCachedTokens"}) {
    if (const auto tokens = json::find_number(usage, name)) return *tokens;
  }
  return 0;
}

}  // namespace

MistralDecoder::MistralDecoder(const Model& model)
    : StreamDecoder(empty_reply(model)), model_(model), sse_(kEventLimit) {
  assembler_.start();
}

void MistralDecoder::push(std::string_view bytes) {
  sse_.push(bytes);
}

void MistralDecoder::end_of_body() {
  sse_.finish();
  body_over_ = true;
}

void MistralDecoder::fail(std::string_view text) {
  assembler_.fail(StopReason::kError, printable(text));
}

bool MistralDecoder::count_bytes(std::size_t bytes) {
  message_bytes_ += bytes;
  if (message_bytes_ <= kMessageLimit) return true;
  fail(fmt::format("The stream sent a message larger than {} bytes", kMessageLimit));
  return false;
}

std::optional<StreamEvent> MistralDecoder::next() {
  while (!assembler_.has_step()) {
    if (assembler_.settled()) return std::nullopt;
    if (over_) {
      end_of_stream();
    } else if (const std::optional<http::SseFrame> frame = sse_.next()) {
      handle_frame(frame->data);
    } else if (sse_.overflowed()) {
      fail(fmt::format("The stream sent an event larger than {} bytes", kEventLimit));
    } else if (body_over_) {
      over_ = true;
    } else {
      break;
    }
  }
  return assembler_.next();
}

void MistralDecoder::handle_frame(std::string_view data) {
  if (data.starts_with("[DONE]")) {
    over_ = true;
    return;
  }
  const auto parsed = json::parse(data);
  if (!parsed) {
    fail(fmt::format("The stream sent an event that is not JSON: {}", parsed.error().describe()));
    return;
  }
  const json::object* chunk = parsed->if_object();
  const json::array* choices = chunk != nullptr ? json::find_array(*chunk, "choices") : nullptr;
  if (choices == nullptr) {
    const std::string said = chunk != nullptr ? json::string_or(*chunk, "message") : "";
    fail(said.empty() ? "Invalid Mistral streaming event" : "Invalid Mistral streaming event: " + said);
    return;
  }
  AssistantMessage& message = assembler_.message();
  const auto id = json::find_string(*chunk, "id");
  if (!message.response_id && id && !id->empty()) message.response_id = std::string(*id);
  if (const json::object* usage = json::find_object(*chunk, "usage")) read_usage(*usage);
  const json::object* choice = choices->empty() ? nullptr : choices->front().if_object();
  if (choice != nullptr) handle_choice(*choice);
}

void MistralDecoder::handle_choice(const json::object& choice) {
  if (const auto word = json::find_string(choice, "finish_reason"); word && !word->empty()) {
    finish_ = std::string(*word);
    assembler_.message().raw_stop_reason = finish_;
  }
  const json::object* delta = json::find_object(choice, "delta");
  if (delta == nullptr) return;
  if (const json::value* content = json::find(*delta, "content")) handle_content(*content);
  const json::array* calls = json::find_array(*delta, "tool_calls");
  if (calls == nullptr) calls = json::find_array(*delta, "toolCalls");
  for (std::size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
    if (const json::object* call = (*calls)[i].if_object()) handle_call(*call, i);
  }
}

void MistralDecoder::handle_content(const json::value& content) {
  if (content.is_string()) {
    handle_text(BlockKind::kText, json::view(content.get_string()));
    return;
  }
  const json::array* parts = content.if_array();
  for (std::size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
    const json::object* part = (*parts)[i].if_object();
    if (part == nullptr) continue;
    if (json::string_or(*part, "type") == "thinking") {
      std::string thought;
      const json::array* thoughts = json::find_array(*part, "thinking");
      for (std::size_t k = 0; thoughts != nullptr && k < thoughts->size(); ++k) {
        if (const json::object* piece = (*thoughts)[k].if_object()) thought += json::string_or(*piece, "text");
      }
      if (!thought.empty()) handle_text(BlockKind::kThinking, thought);
    } else if (const auto text = json::find_string(*part, "text")) {
      handle_text(BlockKind::kText, *text);
    }
  }
}

void MistralDecoder::handle_text(BlockKind kind, std::string_view text) {
  if (open_block_ && assembler_.kind_of(*open_block_) != kind) close_block();
  if (!count_bytes(text.size())) return;
  if (!open_block_) {
    open_block_ = kind == BlockKind::kText ? assembler_.open(TextContent{}) : assembler_.open(ThinkingContent{});
  }
  assembler_.append_owned(*open_block_, std::string(text));
}

void MistralDecoder::handle_call(const json::object& call, std::size_t position) {
  close_block();
  const std::int64_t index = json::find_integer(call, "index").value_or(static_cast<std::int64_t>(position));
  const json::object* function = json::find_object(call, "function");
  auto known = calls_.find(index);
  if (known == calls_.end()) {
    ToolCall block;
    block.id = json::string_or(call, "id");
    if (block.id.empty() || block.id == "null") {
      block.id = mistral_call_id(fmt::format("{}:{}", assembler_.message().response_id.value_or(""), index));
    }
    if (function != nullptr) block.name = json::string_or(*function, "name");
    known = calls_.emplace(index, assembler_.open(std::move(block))).first;
  }
  const json::value* arguments = function != nullptr ? json::find(*function, "arguments") : nullptr;
  if (arguments == nullptr || arguments->is_null()) return;
  std::string text =
      arguments->is_string() ? std::string(json::view(arguments->get_string())) : json::to_text(*arguments);
  if (count_bytes(text.size())) assembler_.append_owned(known->second, std::move(text));
}

void MistralDecoder::read_usage(const json::object& o) {  // AI-214b
  const double prompt = json::number_or(o, "prompt_tokens", json::number_or(o, "promptTokens"));
  Usage& usage = assembler_.message().usage;
  usage.cache_read = std::clamp(cached_tokens(o), 0.0, std::max(0.0, prompt));
  usage.input = prompt - usage.cache_read;
  usage.output = json::number_or(o, "completion_tokens", json::number_or(o, "completionTokens"));
  usage.total_tokens = json::number_or(o, "total_tokens", json::number_or(o, "totalTokens"));
  if (usage.total_tokens == 0) usage.total_tokens = prompt + usage.output;
  price(usage, model_);
}

void MistralDecoder::close_block() {
  if (open_block_) assembler_.close(*std::exchange(open_block_, std::nullopt));
}

void MistralDecoder::end_of_stream() {
  close_block();
  for (const auto& [index, block] : calls_)
    assembler_.close(block);
  if (!finish_) {
    fail("Mistral stream ended without a finish reason");
  } else if (*finish_ == "stop") {
    assembler_.finish(calls_.empty() ? StopReason::kStop : StopReason::kToolUse);
  } else if (*finish_ == "length" || *finish_ == "model_length") {
    assembler_.finish(StopReason::kLength);
  } else if (*finish_ == "tool_calls") {
    assembler_.finish(StopReason::kToolUse);
  } else {
    fail(fmt::format("Provider stopped with: {}", *finish_));
  }
}

}  // namespace tau::ai
