#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "ai/providers/google_generative_ai.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kEventLimit = std::size_t{64} << 20;
constexpr std::size_t kMessageLimit = std::size_t{256} << 20;
constexpr std::size_t kBareLimit = std::size_t{64} << 10;

constexpr std::array<std::string_view, 15> kRefusals = {"BLOCKLIST",
                                                        "PROHIBITED_CONTENT",
                                                        "SPII",
                                                        "SAFETY",
                                                        "IMAGE_SAFETY",
                                                        "IMAGE_PROHIBITED_CONTENT",
                                                        "IMAGE_RECITATION",
                                                        "IMAGE_OTHER",
                                                        "RECITATION",
                                                        "FINISH_REASON_UNSPECIFIED",
                                                        "OTHER",
                                                        "LANGUAGE",
                                                        "MALFORMED_FUNCTION_CALL",
                                                        "UNEXPECTED_TOOL_CALL",
                                                        "NO_IMAGE"};

bool is_refusal(std::string_view word) {
  return std::find(kRefusals.begin(), kRefusals.end(), word) != kRefusals.end();
}

const json::object* first_candidate(const json::object& chunk) {
  const json::array* candidates = json::find_array(chunk, "candidates");
  return candidates != nullptr && !candidates->empty() ? candidates->front().if_object() : nullptr;
}

const json::array* parts_of(const json::object& chunk) {
  const json::object* candidate = first_candidate(chunk);
  const json::object* content = candidate != nullptr ? json::find_object(*candidate, "content") : nullptr;
  return content != nullptr ? json::find_array(*content, "parts") : nullptr;
}

}  // namespace

GoogleDecoder::GoogleDecoder(const Model& model, GoogleService service)
    : StreamDecoder(empty_reply(model)), model_(model), service_(service), sse_(kEventLimit) {
  assembler_.start();
}

/// An error in mid-stream comes as JSON without the dress of an event. Nothing in an event stream begins a line with a
/// brace, so from there on the bytes are kept apart.
void GoogleDecoder::keep_bare_json(std::string_view& bytes) {
  std::size_t begin = std::string_view::npos;
  if (!bare_.empty() || (at_line_start_ && bytes.starts_with('{'))) {
    begin = 0;
  } else if (const std::size_t brace = bytes.find("\n{"); brace != std::string_view::npos) {
    begin = brace + 1;
  }
  if (!bytes.empty()) at_line_start_ = bytes.back() == '\n';
  if (begin == std::string_view::npos) return;
  const std::string_view rest = bytes.substr(begin);
  bare_ += rest.substr(0, kBareLimit - std::min(kBareLimit, bare_.size()));
  bytes = bytes.substr(0, begin);
}

void GoogleDecoder::push(std::string_view bytes) {
  keep_bare_json(bytes);
  sse_.push(bytes);
}

void GoogleDecoder::end_of_body() {
  sse_.finish();
  body_over_ = true;
}

bool GoogleDecoder::has_bare_error() const {
  if (bare_.empty()) return false;
  const auto parsed = json::parse(utf8::trim(bare_));
  return parsed && parsed->is_object() && parsed->get_object().contains("error");
}

void GoogleDecoder::fail(std::string_view text) {
  assembler_.fail(StopReason::kError, printable(text));
}

bool GoogleDecoder::count_bytes(std::size_t bytes) {
  message_bytes_ += bytes;
  if (message_bytes_ <= kMessageLimit) return true;
  fail(fmt::format("The stream sent a message larger than {} bytes", kMessageLimit));
  return false;
}

std::optional<StreamEvent> GoogleDecoder::next() {
  while (!assembler_.has_step()) {
    if (assembler_.settled()) return std::nullopt;
    if (chunk_) {
      const json::object& chunk = chunk_->get_object();
      const json::array* parts = parts_of(chunk);
      if (parts != nullptr && next_part_ < parts->size()) {
        const json::object* part = (*parts)[next_part_++].if_object();
        if (part != nullptr) handle_part(*part);
      } else {
        finish_chunk(chunk);
        chunk_.reset();
      }
    } else if (const std::optional<http::SseFrame> frame = sse_.next()) {
      handle_chunk(frame->data);
    } else if (sse_.overflowed()) {
      fail(fmt::format("The stream sent an event larger than {} bytes", kEventLimit));
    } else if (has_bare_error()) {
      fail_with_error(json::parse(utf8::trim(bare_)).value());
    } else if (body_over_) {
      end_of_stream();
    } else {
      break;
    }
  }
  return assembler_.next();
}

void GoogleDecoder::handle_chunk(std::string_view data) {
  if (data.starts_with("[DONE]")) return;
  auto parsed = json::parse(data);
  if (!parsed) {
    fail(fmt::format("The stream sent an event that is not JSON: {}", parsed.error().describe()));
    return;
  }
  const json::object* chunk = parsed->if_object();
  if (chunk == nullptr) return;
  if (const json::value* error = json::find(*chunk, "error"); error != nullptr && !error->is_null()) {
    fail_with_error(*parsed);
    return;
  }
  AssistantMessage& message = assembler_.message();
  const auto id = json::find_string(*chunk, "responseId");
  if (!message.response_id && id && !id->empty()) message.response_id = std::string(*id);
  chunk_ = std::move(*parsed);
  next_part_ = 0;
}

void GoogleDecoder::fail_with_error(const json::value& chunk) {  // AI-203
  const json::object* error = json::find_object(chunk.get_object(), "error");
  const std::string status = error != nullptr ? json::string_or(*error, "status", "unknown") : "unknown";
  fail(fmt::format("got status: {}. {}", status, json::to_text(chunk)));
}

void GoogleDecoder::handle_part(const json::object& part) {  // AI-200
  if (const auto text = json::find_string(part, "text")) handle_text(part, *text);
  if (const json::object* call = json::find_object(part, "functionCall")) handle_call(part, *call);
}

void GoogleDecoder::handle_text(const json::object& part, std::string_view text) {
  const bool is_thought = json::bool_or(part, "thought");
  const BlockKind kind = is_thought ? BlockKind::kThinking : BlockKind::kText;
  if (open_block_ && assembler_.kind_of(*open_block_) != kind) close_block();
  std::optional<std::string> signature;
  if (const auto given = json::find_string(part, "thoughtSignature"); given && !given->empty()) {
    signature = std::string(*given);
  }
  if (!count_bytes(text.size())) return;
  if (!open_block_) {
    if (is_thought) {
      ThinkingContent block;
      block.thinking_signature = std::move(signature);
      open_block_ = assembler_.open(std::move(block));
    } else {
      TextContent block;
      block.text_signature = std::move(signature);
      open_block_ = assembler_.open(std::move(block));
    }
  } else if (signature) {
    AssistantBlock& block = *assembler_.applied_block(*open_block_);
    if (auto* thinking = std::get_if<ThinkingContent>(&block)) {
      thinking->thinking_signature = std::move(signature);
    } else if (auto* plain = std::get_if<TextContent>(&block)) {
      plain->text_signature = std::move(signature);
    }
  }
  assembler_.append_owned(*open_block_, std::string(text));
}

/// A call comes whole.
void GoogleDecoder::handle_call(const json::object& part, const json::object& call) {
  close_block();
  ToolCall block;
  block.name = json::string_or(call, "name");
  block.id = json::string_or(call, "id");
  // Some models leave the id out, or use one again (FF-7, FF-8).
  while (block.id.empty() || call_ids_.contains(block.id)) {
    block.id = fmt::format("{}_{}_{}", block.name, assembler_.message().timestamp, ++made_ids_);
  }
  call_ids_.insert(block.id);
  if (const auto signature = json::find_string(part, "thoughtSignature"); signature && !signature->empty()) {
    block.thought_signature = std::string(*signature);
  }
  const json::object* arguments = json::find_object(call, "args");
  std::string text = arguments != nullptr ? json::to_text(*arguments) : "{}";
  if (!count_bytes(text.size())) return;
  const std::size_t index = assembler_.open(std::move(block));
  assembler_.append_owned(index, std::move(text));
  assembler_.close(index);
}

void GoogleDecoder::finish_chunk(const json::object& chunk) {
  const json::object* candidate = first_candidate(chunk);
  const auto word = candidate != nullptr ? json::find_string(*candidate, "finishReason") : std::nullopt;
  if (word && !word->empty()) {
    finish_ = std::string(*word);
    assembler_.message().raw_stop_reason = finish_;
    if (*word != "STOP" && *word != "MAX_TOKENS" && !is_refusal(*word)) {
      fail(fmt::format("Unhandled stop reason: {}", *word));
      return;
    }
  }
  if (const json::object* usage = json::find_object(chunk, "usageMetadata")) read_usage(*usage);
}

void GoogleDecoder::read_usage(const json::object& o) {  // AI-202
  Usage& usage = assembler_.message().usage;
  usage.cache_read = json::number_or(o, "cachedContentTokenCount");
  usage.input = json::number_or(o, "promptTokenCount") - usage.cache_read;
  usage.reasoning = json::number_or(o, "thoughtsTokenCount");
  usage.output = json::number_or(o, "candidatesTokenCount") + *usage.reasoning;
  usage.total_tokens = json::number_or(o, "totalTokenCount");
  price(usage, model_);
}

void GoogleDecoder::close_block() {
  if (open_block_) assembler_.close(*std::exchange(open_block_, std::nullopt));
}

/// After the last byte the open block ends, then what the provider said decides (AI-201).
void GoogleDecoder::end_of_stream() {
  close_block();
  if (!finish_) {
    const bool vertex = service_ == GoogleService::kVertex;
    fail(vertex ? "Google Vertex stream ended without a finish reason" : "Google stream ended without a finish reason");
  } else if (is_refusal(*finish_)) {
    fail(fmt::format("Provider stopped with: {}", *finish_));
  } else if (*finish_ == "MAX_TOKENS") {
    assembler_.finish(StopReason::kLength);
  } else {
    assembler_.finish(call_ids_.empty() ? StopReason::kStop : StopReason::kToolUse);
  }
}

}  // namespace tau::ai
