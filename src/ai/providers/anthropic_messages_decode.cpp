#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "ai/partial_json.h"
#include "ai/providers/anthropic_compat.h"
#include "ai/providers/anthropic_messages.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kMaxShownData = 2000;  // bytes of a bad event in an error text
constexpr std::string_view kRedacted = "[Reasoning redacted]";

// ---- the scanner for content_block_delta -------------------------------------------------------------------------

/// Reads JSON that has the expected shape, front to back; every function returns false at the first surprise.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool take(char c) {
    skip_blanks();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  /// A string without escapes that equals `text`.
  bool take_text(std::string_view text) {
    skip_blanks();
    const std::size_t length = text.size() + 2;
    if (static_cast<std::size_t>(end_ - at_) < length || *at_ != '"' || at_[length - 1] != '"') return false;
    if (std::memcmp(at_ + 1, text.data(), text.size()) != 0) return false;
    at_ += length;
    return true;
  }

  bool take_key(std::string_view key) { return take_text(key) && take(':'); }

  bool take_index(std::int64_t& index) {
    skip_blanks();
    const char* const begin = at_;
    std::int64_t number = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - begin < 9)
      number = number * 10 + (*at_++ - '0');
    if (at_ == begin || (number > 0 && *begin == '0')) return false;
    index = number;
    return true;
  }

  /// A string literal. `out` is a view of the text, or of `store` when it has escapes. Lone surrogates, raw control
  /// characters and bytes that are no UTF-8 are surprises.
  bool take_string(std::string_view& out, std::string& store) {
    skip_blanks();
    if (at_ == end_ || *at_ != '"') return false;
    const char* const begin = ++at_;
    bool ascii = true;
    if (!plain_run(ascii)) return false;
    if (*at_ == '"') {
      out = {begin, static_cast<std::size_t>(at_ - begin)};
    } else {
      store.assign(begin, at_);
      while (*at_ == '\\') {
        if (!take_escape(store)) return false;
        const char* const run = at_;
        if (!plain_run(ascii)) return false;
        store.append(run, at_);
      }
      out = store;
    }
    ++at_;
    return ascii || utf8::is_valid(out);
  }

  bool at_end() {
    skip_blanks();
    return at_ == end_;
  }

 private:
  void skip_blanks() {
    while (at_ != end_ && *at_ == ' ')
      ++at_;
  }

  /// To the next quote or backslash; false when the text ends before.
  bool plain_run(bool& ascii) {
    for (; at_ != end_; ++at_) {
      const auto byte = static_cast<unsigned char>(*at_);
      if (byte == '"' || byte == '\\') return true;
      if (byte < 0x20) return false;
      if (byte >= 0x80) ascii = false;
    }
    return false;
  }

  bool take_escape(std::string& out) {
    if (end_ - at_ < 2) return false;
    const char c = at_[1];
    at_ += 2;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        return true;
      case 'n':
        out += '\n';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 'b':
        out += '\b';
        return true;
      case 'f':
        out += '\f';
        return true;
      case 'u':
        return take_code_point(out);
      default:
        return false;
    }
  }

  bool take_hex(char32_t& unit) {
    if (end_ - at_ < 4) return false;
    unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = *at_++;
      unit <<= 4;
      if (c >= '0' && c <= '9') {
        unit |= static_cast<char32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        unit |= static_cast<char32_t>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        unit |= static_cast<char32_t>(c - 'A' + 10);
      } else {
        return false;
      }
    }
    return true;
  }

  bool take_code_point(std::string& out) {
    char32_t unit = 0;
    if (!take_hex(unit)) return false;
    if (unit >= 0xDC00 && unit <= 0xDFFF) return false;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      char32_t low = 0;
      if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') return false;
      at_ += 2;
      if (!take_hex(low) || low < 0xDC00 || low > 0xDFFF) return false;
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    utf8::append(out, unit);
    return true;
  }

  const char* at_;
  const char* end_;
};

struct DeltaForm {
  std::string_view type;
  std::string_view member;
  BlockKind kind;
};

constexpr DeltaForm kDeltaForms[] = {{"text_delta", "text", BlockKind::kText},
                                     {"thinking_delta", "thinking", BlockKind::kThinking},
                                     {"input_json_delta", "partial_json", BlockKind::kToolCall}};

// ---- the rest of the frames --------------------------------------------------------------------------------------

/// Strict JSON, else strict JSON after literal repair (AI-115).
std::expected<json::value, json::ParseError> parse_event(std::string_view data) {
  auto parsed = json::parse(data);
  if (parsed) return parsed;
  const std::string repaired = repair_json_literals(data);
  if (repaired == data) return parsed;
  auto second = json::parse(repaired);
  if (second) return second;
  return parsed;
}

std::string cut(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  return std::string(utf8::prefix_utf16(text, bytes)) + "...";
}

/// Rates of the model that took over, if the configuration names it (AI-118).
std::optional<Model> fallback_model(const Model& model, std::string_view reported) {
  const json::array* entries = json::find_array(model.compat, "allowedFallbackModels");
  if (entries == nullptr) return std::nullopt;
  for (const json::value& value : *entries) {
    const json::object* entry = value.if_object();
    if (entry == nullptr || json::find_string(*entry, "provider") != model.provider ||
        json::find_string(*entry, "model") != reported) {
      continue;
    }
    const json::object* cost = json::find_object(*entry, "cost");
    if (cost == nullptr) continue;
    auto fallback =
        model_from_json({{"id", reported}, {"api", model.api}, {"provider", model.provider}, {"cost", *cost}});
    if (fallback) return *std::move(fallback);
  }
  return std::nullopt;
}

}  // namespace

AnthropicMessagesDecoder::AnthropicMessagesDecoder(AssistantMessage initial, Model model,
                                                   std::vector<std::string> tool_names, ReplyLimits limits)
    : StreamDecoder(std::move(initial)),
      limits_(limits),
      sse_(limits.event_bytes),
      priced_as_(std::move(model)),
      tool_names_(std::move(tool_names)) {
  assembler_.start();  // right after the headers (AI-21)
}

void AnthropicMessagesDecoder::push(std::string_view bytes) {
  sse_.push(bytes);
}

void AnthropicMessagesDecoder::end_of_body() {
  sse_.finish();
  body_over_ = true;
}

std::optional<StreamEvent> AnthropicMessagesDecoder::next() {
  // A frame is read when everything of the one before has been handed out: metadata may then be written at once, and
  // views into the frame are valid until their step has been applied.
  while (!assembler_.has_step()) {
    if (assembler_.settled()) return std::nullopt;
    const std::optional<http::SseFrame> frame = sse_.next();
    if (frame) {
      handle_frame(*frame);
    } else if (sse_.overflowed()) {
      fail(fmt::format("Anthropic stream sent an event larger than {} bytes", limits_.event_bytes));
    } else if (body_over_) {
      end_of_stream();
    } else {
      break;
    }
  }
  return assembler_.next();
}

/// The text may hold what the server sent (FF-107).
void AnthropicMessagesDecoder::fail(std::string_view text) {
  assembler_.fail(StopReason::kError, printable(text));
}

// ---- frames ------------------------------------------------------------------------------------------------------

void AnthropicMessagesDecoder::handle_frame(const http::SseFrame& frame) {
  if (frame.event.empty() || frame.event == "content_block_delta") {
    if (handle_plain_delta(frame.data)) return;
  } else if (frame.event == "error") {
    fail(cut(frame.data, 2 * kMaxShownData));
    return;
  } else if (!frame.event.starts_with("message_") && !frame.event.starts_with("content_block_")) {
    return;  // ping, and what was invented since
  }
  const auto parsed = parse_event(frame.data);
  if (!parsed) {
    fail(fmt::format("Could not parse Anthropic SSE event {}: {}; data={}", frame.event, parsed.error().describe(),
                     cut(frame.data, kMaxShownData)));
    return;
  }
  const json::object* event = parsed->if_object();
  if (event == nullptr) return;
  // Some servers leave the event line out; the data says the same.
  const std::string_view type =
      frame.event.empty() ? json::find_string(*event, "type").value_or("") : std::string_view(frame.event);
  if (type == "error") {
    fail(cut(frame.data, 2 * kMaxShownData));
    return;
  }
  handle_event(type, *event);
}

/// True when the frame was a delta in one of the usual forms, and has been handled.
bool AnthropicMessagesDecoder::handle_plain_delta(std::string_view data) {
  Scanner scanner(data);
  std::int64_t index = 0;
  if (!scanner.take('{') || !scanner.take_key("type") || !scanner.take_text("content_block_delta") ||
      !scanner.take(',') || !scanner.take_key("index") || !scanner.take_index(index) || !scanner.take(',') ||
      !scanner.take_key("delta") || !scanner.take('{') || !scanner.take_key("type")) {
    return false;
  }
  const DeltaForm* form = std::find_if(std::begin(kDeltaForms), std::end(kDeltaForms),
                                       [&](const DeltaForm& f) { return scanner.take_text(f.type); });
  std::string_view delta;
  if (form == std::end(kDeltaForms) || !scanner.take(',') || !scanner.take_key(form->member) ||
      !scanner.take_string(delta, unescaped_) || !scanner.take('}') || !scanner.take('}') || !scanner.at_end()) {
    return false;
  }
  if (OpenBlock* open = open_block(index)) append(*open, form->kind, delta, false);
  return true;
}

void AnthropicMessagesDecoder::handle_event(std::string_view type, const json::object& event) {
  if (type == "content_block_delta") {
    block_delta(event);
  } else if (type == "content_block_start") {
    block_start(event);
  } else if (type == "content_block_stop") {
    block_stop(event);
  } else if (type == "message_start") {
    message_start(event);
  } else if (type == "message_delta") {
    message_delta(event);
  } else if (type == "message_stop") {
    message_stop();
  }
}

// ---- blocks (AI-117) ---------------------------------------------------------------------------------------------

/// Null for a block that is not open: unknown, skipped or ended.
AnthropicMessagesDecoder::OpenBlock* AnthropicMessagesDecoder::open_block(std::int64_t index) {
  if (index != current_index_ || current_block_ == nullptr) {
    const auto found = open_.find(index);
    current_index_ = index;
    current_block_ = found == open_.end() ? nullptr : &found->second;
  }
  return current_block_;
}

/// A server that leaves the index out writes one block after the other.
std::int64_t AnthropicMessagesDecoder::index_of(const json::object& event) const {
  return json::find_integer(event, "index").value_or(current_index_);
}

bool AnthropicMessagesDecoder::count_bytes(std::size_t bytes) {
  message_bytes_ += bytes;
  if (message_bytes_ <= limits_.message_bytes) return true;
  fail(fmt::format("Anthropic stream sent a message larger than {} bytes", limits_.message_bytes));
  return false;
}

void AnthropicMessagesDecoder::append(OpenBlock& open, BlockKind kind, std::string_view delta, bool owned) {
  if (assembler_.kind_of(open.block) != kind || !count_bytes(delta.size())) return;
  if (kind == BlockKind::kToolCall) open.has_input_delta = true;
  if (owned) {
    assembler_.append_owned(open.block, std::string(delta));
  } else {
    assembler_.append(open.block, delta);
  }
}

void AnthropicMessagesDecoder::block_start(const json::object& event) {
  const json::object* block = json::find_object(event, "content_block");
  if (block == nullptr) return;
  const std::string_view type = json::find_string(*block, "type").value_or("");
  const std::int64_t index = json::find_integer(event, "index").value_or(current_index_ + 1);
  open_.erase(index);
  current_index_ = index;
  current_block_ = nullptr;

  OpenBlock open;
  BlockKind kind = BlockKind::kText;
  std::string_view first_text;
  if (type == "text") {
    open.block = assembler_.open(TextContent{});
    first_text = json::find_string(*block, "text").value_or("");
  } else if (type == "thinking") {
    kind = BlockKind::kThinking;
    ThinkingContent thinking;
    thinking.thinking_signature = json::string_or(*block, "signature");
    if (!count_bytes(thinking.thinking_signature->size())) return;
    open.block = assembler_.open(std::move(thinking));
    first_text = json::find_string(*block, "thinking").value_or("");
  } else if (type == "redacted_thinking") {
    kind = BlockKind::kThinking;
    ThinkingContent thinking;
    thinking.thinking = kRedacted;
    thinking.thinking_signature = json::string_or(*block, "data");
    thinking.redacted = true;
    if (!count_bytes(thinking.thinking_signature->size())) return;
    open.block = assembler_.open(std::move(thinking));
  } else if (type == "tool_use") {
    kind = BlockKind::kToolCall;
    ToolCall call;
    call.id = json::string_or(*block, "id");
    call.name = json::string_or(*block, "name");
    const auto own = std::find_if(tool_names_.begin(), tool_names_.end(),
                                  [&](const std::string& name) { return same_ignoring_case(name, call.name); });
    if (own != tool_names_.end()) call.name = *own;
    const json::object* input = json::find_object(*block, "input");
    if (input != nullptr && !input->empty()) {
      call.arguments = *input;
      open.first_input = json::to_text(call.arguments);
    }
    open.block = assembler_.open(std::move(call));
  } else {
    if (type == "fallback" && assembler_.block_count() > 0)
      fail("Anthropic changed the model in the middle of the reply");
    return;  // other blocks are the provider's own business
  }
  OpenBlock& kept = open_.insert_or_assign(index, std::move(open)).first->second;
  current_block_ = &kept;
  if (!first_text.empty()) append(kept, kind, first_text, true);  // FF-48
}

void AnthropicMessagesDecoder::block_delta(const json::object& event) {
  const json::object* delta = json::find_object(event, "delta");
  OpenBlock* open = open_block(index_of(event));
  if (delta == nullptr || open == nullptr) return;
  const std::string_view type = json::find_string(*delta, "type").value_or("");
  if (type == "signature_delta") {
    auto* thinking = std::get_if<ThinkingContent>(assembler_.applied_block(open->block));
    const std::string_view piece = json::find_string(*delta, "signature").value_or("");
    if (thinking == nullptr || !count_bytes(piece.size())) return;
    if (!thinking->thinking_signature) thinking->thinking_signature.emplace();
    *thinking->thinking_signature += piece;
    return;
  }
  for (const DeltaForm& form : kDeltaForms) {
    if (form.type != type) continue;
    if (const auto text = json::find_string(*delta, form.member)) append(*open, form.kind, *text, true);
  }
}

void AnthropicMessagesDecoder::block_stop(const json::object& event) {
  const std::int64_t index = index_of(event);
  OpenBlock* open = open_block(index);
  if (open == nullptr) return;
  // Input may come with the start of the block, or in deltas, or both; then the deltas are the whole of it (FF-48).
  if (!open->has_input_delta && !open->first_input.empty())
    append(*open, BlockKind::kToolCall, std::string(open->first_input), true);
  assembler_.close(open->block);
  current_block_ = nullptr;
  open_.erase(index);
}

// ---- the message as a whole --------------------------------------------------------------------------------------

void AnthropicMessagesDecoder::message_start(const json::object& event) {
  started_ = true;
  AssistantMessage& message = assembler_.message();
  message.usage.cache_write_1h = 0;
  const json::object* start = json::find_object(event, "message");
  if (start == nullptr) return;
  if (const auto id = json::find_string(*start, "id")) message.response_id = std::string(*id);
  // The configured id stays: the next request compares it to find out whose signatures these are (FF-3).
  if (const auto model = json::find_string(*start, "model"); model && !model->empty() && *model != message.model) {
    message.response_model = std::string(*model);
    if (auto fallback = fallback_model(priced_as_, *model)) priced_as_ = *std::move(fallback);
  }
  if (const json::object* usage = json::find_object(*start, "usage")) {
    if (const json::object* writes = json::find_object(*usage, "cache_creation"))
      message.usage.cache_write_1h = json::number_or(*writes, "ephemeral_1h_input_tokens");
    read_usage(*usage);
  }
  read_transformations(*start);
}

void AnthropicMessagesDecoder::message_delta(const json::object& event) {
  if (const json::object* delta = json::find_object(event, "delta")) {
    read_stop_reason(*delta);
    read_transformations(*delta);
  }
  if (assembler_.has_step()) return;  // an unknown stop reason ends the reply at once
  if (const json::object* usage = json::find_object(event, "usage")) read_usage(*usage);
  read_transformations(event);
}

void AnthropicMessagesDecoder::read_usage(const json::object& usage) {  // AI-119
  Usage& total = assembler_.message().usage;
  const auto take = [&usage](double& into, std::string_view key) {
    if (const auto count = json::find_number(usage, key)) into = *count;
  };
  take(total.input, "input_tokens");
  take(total.output, "output_tokens");
  take(total.cache_read, "cache_read_input_tokens");
  take(total.cache_write, "cache_creation_input_tokens");
  if (const json::object* details = json::find_object(usage, "output_tokens_details")) {
    if (const auto thinking = json::find_number(*details, "thinking_tokens")) total.reasoning = thinking;
  }
  total.total_tokens = total.input + total.output + total.cache_read + total.cache_write;
  price(total, priced_as_);
}

void AnthropicMessagesDecoder::read_stop_reason(const json::object& delta) {  // AI-120
  const auto word = json::find_string(delta, "stop_reason");
  if (!word) return;
  assembler_.message().raw_stop_reason = std::string(*word);
  if (*word == "end_turn" || *word == "pause_turn" || *word == "stop_sequence") {
    stop_reason_ = StopReason::kStop;
  } else if (*word == "max_tokens") {
    stop_reason_ = StopReason::kLength;
  } else if (*word == "tool_use") {
    stop_reason_ = StopReason::kToolUse;
  } else if (*word == "refusal") {
    stop_reason_ = StopReason::kError;
    const json::object* details = json::find_object(delta, "stop_details");
    if (details != nullptr) stop_error_ = json::string_or(*details, "explanation");
    if (stop_error_.empty()) stop_error_ = "The model declined to answer this request";
  } else if (*word == "sensitive") {
    stop_reason_ = StopReason::kError;
    stop_error_ = "Provider stopped with: sensitive";
  } else {
    fail(fmt::format("Unhandled stop reason: {}", *word));
  }
}

void AnthropicMessagesDecoder::read_transformations(const json::object& holder) {  // AI-121
  const json::array* list = json::find_array(holder, "input_transformations");
  if (list == nullptr) return;
  transformations_.clear();
  for (const json::value& item : *list) {
    const json::object* source = item.if_object();
    if (source == nullptr) continue;
    json::object kept;
    for (const std::string_view key : {"type", "path", "reason"}) {
      if (const json::value* member = json::find(*source, key)) kept.emplace(key, *member);
    }
    transformations_.push_back(std::move(kept));
  }
}

void AnthropicMessagesDecoder::message_stop() {
  if (stop_reason_ == StopReason::kPending) {
    fail("Anthropic stream ended without a stop reason");
  } else if (stop_reason_ == StopReason::kError) {
    fail(stop_error_);
  } else {
    if (!transformations_.empty()) {
      AssistantMessage& message = assembler_.message();
      if (!message.diagnostics) message.diagnostics.emplace();
      message.diagnostics->push_back(
          json::object{{"type", "anthropic_input_transformations"},
                       {"timestamp", now_milliseconds()},
                       {"details", json::object{{"transformations", std::move(transformations_)}}}});
    }
    assembler_.finish(stop_reason_);
  }
}

/// The body is over and message_stop has not come (AI-116, FF-46).
void AnthropicMessagesDecoder::end_of_stream() {
  fail(started_ ? "Anthropic stream ended before message_stop" : "Anthropic stream ended without a stop reason");
}

}  // namespace tau::ai
