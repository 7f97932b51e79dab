#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "ai/providers/openai_completions.h"
#include "ai/providers/openai_completions_compat.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kEventLimit = std::size_t{64} << 20;
constexpr std::size_t kMessageLimit = std::size_t{256} << 20;
constexpr std::string_view kReasoningFields[] = {"reasoning_content", "reasoning", "reasoning_text"};

bool is_detail(const json::object& o) {
  const std::string type = json::string_or(o, "type");
  if (type == "reasoning.text") return json::find_string(o, "text") || json::find_string(o, "signature");
  if (type == "reasoning.summary") return json::find_string(o, "summary").has_value();
  return type == "reasoning.encrypted" && json::find_string(o, "data").has_value();
}

std::optional<StopReason> stop_reason_of(std::string_view word) {
  if (word == "stop" || word == "end") return StopReason::kStop;
  if (word == "length") return StopReason::kLength;
  if (word == "tool_calls" || word == "function_call") return StopReason::kToolUse;
  return std::nullopt;
}

}  // namespace

/// Reads the usual chunk: one choice whose delta holds nothing but a piece of text. It makes no JSON value, and gives
/// up at the first surprise.
class OpenAiCompletionsDecoder::FastReader {
 public:
  /// The text, valid until the next call; nothing when the chunk is not a usual one.
  std::optional<std::string_view> text_of(std::string_view chunk, const std::optional<std::string>& response_id,
                                          std::string_view model) {
    if (!response_id) return std::nullopt;  // the first chunk has things to tell
    if (buffer_.size() < chunk.size() + simdjson::SIMDJSON_PADDING) {
      buffer_.resize(2 * (chunk.size() + simdjson::SIMDJSON_PADDING));
    }
    std::memcpy(buffer_.data(), chunk.data(), chunk.size());
    text_.reset();
    simdjson::ondemand::document document;
    if (parser_.iterate(buffer_.data(), chunk.size(), buffer_.size()).get(document) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    simdjson::ondemand::object root;
    if (document.get_object().get(root) != simdjson::SUCCESS) return std::nullopt;
    for (auto member : root) {
      std::string_view key;
      if (member.unescaped_key().get(key) != simdjson::SUCCESS) return std::nullopt;
      if (!take_member(member.value(), key, *response_id, model)) return std::nullopt;
    }
    return text_;
  }

 private:
  using Value = simdjson::simdjson_result<simdjson::ondemand::value>;

  bool take_member(Value value, std::string_view key, std::string_view response_id, std::string_view model) {
    std::string_view word;
    if (key == "id" || key == "model") {
      return value.get_string().get(word) == simdjson::SUCCESS && word == (key == "id" ? response_id : model);
    }
    if (key == "usage" || key == "error") return is_null(value);
    if (key == "choices") return take_choices(value);
    return true;
  }

  static bool is_null(Value& value) {
    bool null = false;
    return value.is_null().get(null) == simdjson::SUCCESS && null;
  }

  bool take_choices(Value& value) {
    simdjson::ondemand::array choices;
    if (value.get_array().get(choices) != simdjson::SUCCESS) return false;
    bool first = true;
    for (auto choice : choices) {
      if (!std::exchange(first, false)) return false;
      simdjson::ondemand::object members;
      if (choice.get_object().get(members) != simdjson::SUCCESS) return false;
      for (auto member : members) {
        std::string_view key;
        if (member.unescaped_key().get(key) != simdjson::SUCCESS) return false;
        Value inner = member.value();
        if (key == "delta") {
          if (!take_delta(inner)) return false;
        } else if (key == "finish_reason" || key == "usage") {
          if (!is_null(inner)) return false;
        }
      }
    }
    return true;
  }

  bool take_delta(Value& value) {
    simdjson::ondemand::object members;
    if (value.get_object().get(members) != simdjson::SUCCESS) return false;
    for (auto member : members) {
      std::string_view key;
      if (member.unescaped_key().get(key) != simdjson::SUCCESS) return false;
      Value inner = member.value();
      if (key == "content") {
        std::string_view text;
        if (inner.get_string().get(text) != simdjson::SUCCESS) return false;
        text_ = text;
      } else if (key != "role" && !is_null(inner)) {
        return false;  // reasoning, tool calls, and what was invented since
      }
    }
    return true;
  }

  simdjson::ondemand::parser parser_;
  std::string buffer_;
  std::optional<std::string_view> text_;
};

OpenAiCompletionsDecoder::OpenAiCompletionsDecoder(const Model& model, std::vector<Tool> tools)
    : StreamDecoder(empty_reply(model)),
      model_(model),
      tools_(std::move(tools)),
      sse_(kEventLimit),
      fast_(std::make_unique<FastReader>()) {
  assembler_.start();
}

OpenAiCompletionsDecoder::~OpenAiCompletionsDecoder() = default;

void OpenAiCompletionsDecoder::push(std::string_view bytes) {
  sse_.push(bytes);
}

void OpenAiCompletionsDecoder::end_of_body() {
  sse_.finish();
  body_over_ = true;
}

void OpenAiCompletionsDecoder::fail(std::string_view text) {
  assembler_.fail(StopReason::kError, printable(text));
}

std::optional<StreamEvent> OpenAiCompletionsDecoder::next() {
  // A frame is read when everything of the one before has been handed out, so views into it stay valid.
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

void OpenAiCompletionsDecoder::handle_frame(std::string_view data) {
  if (data.starts_with("[DONE]")) {
    over_ = true;
    return;
  }
  const AssistantMessage& message = assembler_.message();
  const std::string_view model = message.response_model ? *message.response_model : std::string_view(model_.id);
  if (const auto text = fast_->text_of(data, message.response_id, model)) {
    handle_text(*text, false);
    return;
  }
  const auto parsed = json::parse(data);
  if (!parsed) {
    fail(fmt::format("The stream sent an event that is not JSON: {}", parsed.error().describe()));
    return;
  }
  if (const json::object* chunk = parsed->if_object()) handle_chunk(*chunk);
}

void OpenAiCompletionsDecoder::handle_chunk(const json::object& chunk) {
  const json::value* problem = json::find(chunk, "error");
  if (problem != nullptr && !problem->is_null()) {  // AI-146
    const json::object* o = problem->if_object();
    const auto text = o != nullptr ? json::find_string(*o, "message") : std::nullopt;
    fail(text ? std::string(*text) : json::to_text(*problem));
    return;
  }
  AssistantMessage& message = assembler_.message();
  const auto id = json::find_string(chunk, "id");
  if (!message.response_id && id && !id->empty()) message.response_id = std::string(*id);
  const auto model = json::find_string(chunk, "model");
  if (!message.response_model && model && !model->empty() && *model != model_.id) {
    message.response_model = std::string(*model);
  }
  const json::array* choices = json::find_array(chunk, "choices");
  const json::object* choice = choices != nullptr && !choices->empty() ? choices->front().if_object() : nullptr;
  if (const json::object* usage = json::find_object(chunk, "usage")) {
    read_usage(*usage);
  } else if (choice != nullptr) {
    if (const json::object* inner = json::find_object(*choice, "usage")) read_usage(*inner);
  }
  if (choice != nullptr) handle_choice(*choice);
}

void OpenAiCompletionsDecoder::handle_choice(const json::object& choice) {
  if (const auto word = json::find_string(choice, "finish_reason"); word && !word->empty()) {
    finish_ = std::string(*word);
    assembler_.message().raw_stop_reason = finish_;
  }
  const json::object* delta = json::find_object(choice, "delta");
  if (delta == nullptr) return;
  if (const auto text = json::find_string(*delta, "content"); text && !text->empty()) handle_text(*text, true);
  for (const std::string_view field : kReasoningFields) {
    const auto text = json::find_string(*delta, field);
    if (!text || text->empty()) continue;
    handle_reasoning(field, *text);
    break;
  }
  if (const json::array* calls = json::find_array(*delta, "tool_calls")) {
    for (const json::value& call : *calls) {
      if (const json::object* o = call.if_object()) handle_call(*o);
    }
  }
  if (const json::array* details = json::find_array(*delta, "reasoning_details")) handle_details(*details);
}

bool OpenAiCompletionsDecoder::count_bytes(std::size_t bytes) {
  message_bytes_ += bytes;
  if (message_bytes_ <= kMessageLimit) return true;
  fail(fmt::format("The stream sent a message larger than {} bytes", kMessageLimit));
  return false;
}

void OpenAiCompletionsDecoder::handle_text(std::string_view text, bool owned) {
  if (text.empty() || !count_bytes(text.size())) return;
  if (!text_block_) text_block_ = assembler_.open(TextContent{});
  if (owned) {
    assembler_.append_owned(*text_block_, std::string(text));
  } else {
    assembler_.append(*text_block_, text);
  }
}

void OpenAiCompletionsDecoder::handle_reasoning(std::string_view field, std::string_view text) {
  if (!count_bytes(text.size())) return;
  if (!thinking_block_) {
    ThinkingContent block;
    block.thinking_signature =
        std::string(model_.provider == "opencode-go" && field == "reasoning" ? "reasoning_content" : field);
    thinking_block_ = assembler_.open(std::move(block));
  }
  assembler_.append_owned(*thinking_block_, std::string(text));
}

/// By the provider's index, else by id; a new one at first sight (AI-142).
OpenAiCompletionsDecoder::Call& OpenAiCompletionsDecoder::find_call(const json::object& delta) {
  const std::optional<std::int64_t> index = json::find_integer(delta, "index");
  const std::string id = json::string_or(delta, "id");
  const auto known = std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) {
    if (index) return call.index == index;
    const AssistantBlock* block = assembler_.applied_block(call.block);
    const auto* existing = block != nullptr ? std::get_if<ToolCall>(block) : nullptr;
    return existing != nullptr && !id.empty() && existing->id == id;
  });
  if (known != calls_.end()) return *known;
  if (!index && id.empty() && !calls_.empty()) return calls_.back();

  const json::object* custom = json::find_object(delta, "custom");
  const json::object* function = custom != nullptr ? custom : json::find_object(delta, "function");
  Call call;
  call.index = index;
  call.custom = custom != nullptr || json::string_or(delta, "type") == "custom";
  ToolCall block;
  block.id = id;
  if (function != nullptr) block.name = json::string_or(*function, "name");
  if (call.custom) {
    const auto tool = std::find_if(tools_.begin(), tools_.end(), [&](const Tool& t) { return t.name == block.name; });
    if (tool != tools_.end()) {
      if (const auto grammar = grammar_of(*tool, true); grammar && *grammar) {
        call.grammar.emplace((*grammar)->property);
      }
    }
    if (!call.grammar) call.grammar.emplace("input");
  }
  call.block = assembler_.open(std::move(block));
  calls_.push_back(std::move(call));
  return calls_.back();
}

void OpenAiCompletionsDecoder::handle_call(const json::object& delta) {
  Call& call = find_call(delta);
  const json::object* part = json::find_object(delta, call.custom ? "custom" : "function");
  // Id and name may come later than the block (FF-96).
  if (AssistantBlock* applied = assembler_.applied_block(call.block)) {
    auto& block = std::get<ToolCall>(*applied);
    if (block.id.empty()) block.id = json::string_or(delta, "id");
    if (block.name.empty() && part != nullptr) block.name = json::string_or(*part, "name");
  }
  std::string_view text;
  if (part != nullptr) text = json::find_string(*part, call.custom ? "input" : "arguments").value_or("");
  if (!count_bytes(text.size())) return;
  assembler_.append_owned(call.block, call.grammar ? call.grammar->append(text) : std::string(text));
}

/// Pieces of one text or summary join; encrypted entries stay apart (AI-143).
void OpenAiCompletionsDecoder::handle_details(const json::array& details) {
  for (const json::value& entry : details) {
    const json::object* o = entry.if_object();
    if (o == nullptr || !is_detail(*o)) continue;
    const std::string type = json::string_or(*o, "type");
    const char* text_key = type == "reasoning.text" ? "text" : "summary";
    json::object* last = details_.empty() ? nullptr : &details_.back().get_object();
    const bool joins = type != "reasoning.encrypted" && last != nullptr && json::string_or(*last, "type") == type;
    if (!count_bytes(json::to_text(entry).size())) return;
    if (!joins) {
      details_.push_back(entry);
      continue;
    }
    for (const auto& [key, value] : *o) {
      const std::string_view name(key.data(), key.size());
      json::value* existing = last->if_contains(name);
      if (name == text_key && existing != nullptr && existing->is_string() && value.is_string()) {
        std::string joined(json::view(existing->get_string()));
        utf8::append_wtf8(joined, json::view(value.get_string()));
        *existing = joined;
      } else if (existing == nullptr || existing->is_null() ||
                 (existing->is_string() && existing->get_string().empty())) {
        (*last)[name] = value;
      }
    }
  }
  if (!details_.empty() && !thinking_block_) thinking_block_ = assembler_.open(ThinkingContent{});
}

void OpenAiCompletionsDecoder::read_usage(const json::object& o) {  // AI-144, FF-43
  const json::object* prompt = json::find_object(o, "prompt_tokens_details");
  const json::object* completion = json::find_object(o, "completion_tokens_details");
  std::optional<double> read = prompt != nullptr ? json::find_number(*prompt, "cached_tokens") : std::nullopt;
  if (!read) read = json::find_number(o, "prompt_cache_hit_tokens");
  if (!read) read = json::find_number(o, "cached_tokens");
  Usage& usage = assembler_.message().usage;
  usage.cache_read = read.value_or(0);
  usage.cache_write = prompt != nullptr ? json::number_or(*prompt, "cache_write_tokens") : 0;
  usage.input = std::max(0.0, json::number_or(o, "prompt_tokens") - usage.cache_read - usage.cache_write);
  usage.output = json::number_or(o, "completion_tokens");
  usage.reasoning = completion != nullptr ? json::number_or(*completion, "reasoning_tokens") : 0;
  usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
  price(usage, model_);
}

void OpenAiCompletionsDecoder::close_blocks() {
  for (Call& call : calls_) {
    if (call.grammar) {
      std::string rest = call.grammar->close();
      if (!rest.empty()) assembler_.append_owned(call.block, std::move(rest));
    }
  }
  for (const std::size_t block : assembler_.open_blocks()) {
    if (thinking_block_ == block && !details_.empty()) {
      if (AssistantBlock* applied = assembler_.applied_block(block)) {
        std::get<ThinkingContent>(*applied).thinking_signature = json::to_text(details_);
      }
    }
    assembler_.close(block);
  }
}

/// After the last byte: all blocks end, then what the provider said decides (AI-145).
void OpenAiCompletionsDecoder::end_of_stream() {
  close_blocks();
  const AssistantMessage& message = assembler_.message();
  if (!finish_) {
    if (!CompletionsCompat(model_).finish_reason && (message.response_id || assembler_.block_count() > 0)) {
      assembler_.finish(calls_.empty() ? StopReason::kStop : StopReason::kToolUse);
    } else {
      fail("Stream ended without finish_reason");
    }
    return;
  }
  if (const auto reason = stop_reason_of(*finish_)) {
    assembler_.finish(*reason);
  } else {
    fail(fmt::format("Provider finish_reason: {}", *finish_));
  }
}

}  // namespace tau::ai
