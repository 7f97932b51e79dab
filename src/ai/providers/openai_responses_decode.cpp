#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "ai/providers/openai_responses.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kEventLimit = std::size_t{64} << 20;
constexpr std::size_t kMessageLimit = std::size_t{256} << 20;

/// The place of items whose events name none: some servers send one item after the other without numbers (FF-51).
constexpr std::int64_t kNoIndex = -1;

std::int64_t output_index(const json::object& event) {
  return json::find_integer(event, "output_index").value_or(kNoIndex);
}

/// The texts of a list of parts, joined.
std::string joined_texts(const json::object& item, std::string_view key, std::string_view separator) {
  std::string joined;
  const json::array* parts = json::find_array(item, key);
  for (std::size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
    const json::object* part = (*parts)[i].if_object();
    const auto text = part != nullptr ? json::find_string(*part, "text") : std::nullopt;
    if (!text) continue;
    if (!joined.empty()) joined += separator;
    joined += *text;
  }
  return joined;
}

std::string code_and_message(const json::object& error) {
  return fmt::format("{}: {}", json::string_or(error, "code", "unknown"),
                     json::string_or(error, "message", "no message"));
}

/// How a service tier changes the price (AI-174).
double tier_factor(std::string_view tier, std::string_view model) {
  if (tier == "flex") return 0.5;
  if (tier == "priority") return model == "gpt-5.5" ? 2.5 : 2;
  return 1;
}

}  // namespace

/// Reads the usual frame, a piece of text, without making a JSON value; gives up at the first surprise.
class OpenAiResponsesDecoder::FastReader {
 public:
  struct Piece {
    std::int64_t index = kNoIndex;
    std::string_view text;  // valid until the next call
  };

  std::optional<Piece> text_of(std::string_view data) {
    constexpr std::string_view kUsual = R"({"type":"response.output_text.delta")";
    if (!data.starts_with(kUsual)) return std::nullopt;
    if (buffer_.size() < data.size() + simdjson::SIMDJSON_PADDING) {
      buffer_.resize(2 * (data.size() + simdjson::SIMDJSON_PADDING));
    }
    std::memcpy(buffer_.data(), data.data(), data.size());
    simdjson::ondemand::document document;
    simdjson::ondemand::object root;
    if (parser_.iterate(buffer_.data(), data.size(), buffer_.size()).get(document) != simdjson::SUCCESS ||
        document.get_object().get(root) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    Piece piece;
    bool has_text = false;
    for (auto member : root) {
      std::string_view key;
      if (member.unescaped_key().get(key) != simdjson::SUCCESS) return std::nullopt;
      if (key == "output_index") {
        if (member.value().get_int64().get(piece.index) != simdjson::SUCCESS) return std::nullopt;
      } else if (key == "delta") {
        has_text = member.value().get_string().get(piece.text) == simdjson::SUCCESS;
      } else if (key == "error") {
        return std::nullopt;
      }
    }
    return has_text ? std::optional(piece) : std::nullopt;
  }

 private:
  simdjson::ondemand::parser parser_;
  std::string buffer_;
};

OpenAiResponsesDecoder::OpenAiResponsesDecoder(const Model& model, std::vector<Tool> tools, ResponsesService service,
                                               std::string service_tier)
    : StreamDecoder(empty_reply(model)),
      model_(model),
      tools_(std::move(tools)),
      service_(service),
      service_tier_(std::move(service_tier)),
      sse_(kEventLimit),
      fast_(std::make_unique<FastReader>()) {
  assembler_.start();
}

OpenAiResponsesDecoder::~OpenAiResponsesDecoder() = default;

void OpenAiResponsesDecoder::push(std::string_view bytes) {
  sse_.push(bytes);
}

void OpenAiResponsesDecoder::end_of_body() {
  sse_.finish();
  body_over_ = true;
}

void OpenAiResponsesDecoder::fail(std::string_view text) {
  assembler_.fail(StopReason::kError, printable(text));
}

bool OpenAiResponsesDecoder::count_bytes(std::size_t bytes) {
  message_bytes_ += bytes;
  if (message_bytes_ <= kMessageLimit) return true;
  fail(fmt::format("The stream sent a message larger than {} bytes", kMessageLimit));
  return false;
}

std::optional<StreamEvent> OpenAiResponsesDecoder::next() {
  // A frame is read when everything of the one before has been handed out, so views into it stay valid.
  while (!assembler_.has_step()) {
    if (assembler_.settled()) return std::nullopt;
    if (const std::optional<http::SseFrame> frame = sse_.next()) {
      handle_frame(frame->data);
    } else if (sse_.overflowed()) {
      fail(fmt::format("The stream sent an event larger than {} bytes", kEventLimit));
    } else if (body_over_) {
      fail("OpenAI Responses stream ended before a terminal response event");  // AI-176
    } else {
      break;
    }
  }
  return assembler_.next();
}

void OpenAiResponsesDecoder::handle_frame(std::string_view data) {
  if (data.starts_with("[DONE]")) return;  // what matters came in a terminal event
  if (const auto piece = fast_->text_of(data)) {
    const auto slot = slots_.find(piece->index);
    if (slot != slots_.end() && slot->second.open && assembler_.kind_of(slot->second.block) == BlockKind::kText &&
        count_bytes(piece->text.size())) {
      assembler_.append(slot->second.block, piece->text);
    }
    return;
  }
  const auto parsed = json::parse(data);
  if (!parsed) {
    fail(fmt::format("The stream sent an event that is not JSON: {}", parsed.error().describe()));
    return;
  }
  const json::object* event = parsed->if_object();
  if (event == nullptr) return;
  handle_event(json::string_or(*event, "type"), *event);
}

void OpenAiResponsesDecoder::handle_event(std::string_view type, const json::object& event) {
  const auto response = [&]() -> const json::object& {
    static const json::object kNone;
    const json::object* o = json::find_object(event, "response");
    return o != nullptr ? *o : kNone;
  };
  if (type == "response.created") {
    if (const auto id = json::find_string(response(), "id"); id && !id->empty()) {
      assembler_.message().response_id = std::string(*id);
    }
  } else if (type == "response.output_item.added") {
    const json::object* item = json::find_object(event, "item");
    if (item != nullptr) open_slot(output_index(event), *item);
  } else if (type == "response.output_text.delta" || type == "response.refusal.delta" ||
             type == "response.reasoning_summary_text.delta" || type == "response.reasoning_text.delta") {
    add_text(event);
  } else if (type == "response.reasoning_summary_part.done") {
    Slot* slot = slot_of(event);
    if (slot != nullptr && assembler_.kind_of(slot->block) == BlockKind::kThinking) {
      assembler_.append_owned(slot->block, "\n\n");
    }
  } else if (type == "response.function_call_arguments.delta") {
    add_arguments(event);
  } else if (type == "response.function_call_arguments.done") {
    arguments_done(event);
  } else if (type == "response.custom_tool_call_input.delta" || type == "response.custom_tool_call_input.done") {
    custom_input(event, type.ends_with(".done"));
  } else if (type == "response.output_item.done") {
    item_done(event);
  } else if (type == "response.completed" || type == "response.incomplete" || type == "response.done") {
    finalize(response());
  } else if (type == "response.failed") {
    response_failed(response());
  } else if (type == "error" || event.contains("error")) {
    stream_error(event);
  }
}

/// The error stands in the event itself or, as gateways and newer servers send it, in an object of its own (AI-90).
void OpenAiResponsesDecoder::stream_error(const json::object& event) {
  const json::value* inner = json::find(event, "error");
  if (inner != nullptr && (inner->is_null() || *inner == json::value(false))) inner = nullptr;
  const json::object* o = inner != nullptr ? inner->if_object() : nullptr;
  const bool is_error = json::string_or(event, "type") == "error";
  if (!is_error && inner == nullptr) return;
  if (inner != nullptr && o == nullptr) {
    fail(inner->is_string() ? std::string(json::view(inner->get_string())) : json::to_text(*inner));
    return;
  }
  const json::object& error = o != nullptr ? *o : event;
  const auto message = json::find_string(error, "message");
  // The kind of an error is its code where it has none; the type of an event is not.
  const std::string code = json::string_or(error, "code", o != nullptr ? json::string_or(*o, "type") : "");
  if (is_error && service_ == ResponsesService::kCodex) {
    fail(fmt::format("Codex error: {}", message ? *message : !code.empty() ? code : "unknown"));
  } else if (o != nullptr && code.empty()) {
    fail(message ? std::string(*message) : json::to_text(*inner));
  } else {
    // With its code also when the error is an object: the words of the code decide about a retry (FF-49).
    fail(fmt::format("Error Code {}: {}", code.empty() ? "unknown" : code, message ? *message : "no message"));
  }
}

OpenAiResponsesDecoder::Slot* OpenAiResponsesDecoder::slot_of(const json::object& event) {
  const auto slot = slots_.find(output_index(event));
  return slot != slots_.end() && slot->second.open ? &slot->second : nullptr;
}

/// Null for an item that is no block.
OpenAiResponsesDecoder::Slot* OpenAiResponsesDecoder::open_slot(std::int64_t index, const json::object& item) {
  const std::string type = json::string_or(item, "type");
  Slot slot;
  if (type == "reasoning") {
    slot.block = assembler_.open(ThinkingContent{});
  } else if (type == "message") {
    slot.block = assembler_.open(TextContent{});
  } else if (type == "function_call" || type == "custom_tool_call") {
    ToolCall call;
    const std::string item_id = json::string_or(item, "id");
    call.id = json::string_or(item, "call_id");
    if (!item_id.empty()) call.id += "|" + item_id;
    call.name = json::string_or(item, "name");
    if (const auto name_space = json::find_string(item, "namespace")) call.name_space = std::string(*name_space);
    if (type == "custom_tool_call") {
      const auto tool = std::find_if(tools_.begin(), tools_.end(), [&](const Tool& t) { return t.name == call.name; });
      const auto grammar = tool != tools_.end() ? grammar_of(*tool, true) : std::nullopt;
      slot.grammar.emplace(grammar && *grammar ? (*grammar)->property : "input");
    }
    slot.block = assembler_.open(std::move(call));
    if (type == "function_call") {
      assembler_.argument_text(slot.block) = json::string_or(item, "arguments");
    }
  } else {
    return nullptr;
  }
  return &slots_.insert_or_assign(index, std::move(slot)).first->second;
}

void OpenAiResponsesDecoder::add_text(const json::object& event) {
  Slot* slot = slot_of(event);
  const auto text = json::find_string(event, "delta");
  if (slot == nullptr || !text || assembler_.kind_of(slot->block) == BlockKind::kToolCall) return;
  if (count_bytes(text->size())) assembler_.append_owned(slot->block, std::string(*text));
}

void OpenAiResponsesDecoder::add_arguments(const json::object& event) {
  Slot* slot = slot_of(event);
  const auto text = json::find_string(event, "delta");
  if (slot == nullptr || !text || assembler_.kind_of(slot->block) != BlockKind::kToolCall || slot->grammar) return;
  if (count_bytes(text->size())) assembler_.append_owned(slot->block, std::string(*text));
}

/// The whole text: what is missing of it is a delta, and it counts from now on.
void OpenAiResponsesDecoder::arguments_done(const json::object& event) {
  Slot* slot = slot_of(event);
  const auto whole = json::find_string(event, "arguments");
  if (slot == nullptr || !whole || assembler_.kind_of(slot->block) != BlockKind::kToolCall || slot->grammar) return;
  const std::string& known = assembler_.argument_text(slot->block);
  if (whole->size() > known.size() && whole->starts_with(known)) {
    if (count_bytes(whole->size() - known.size())) {
      assembler_.append_owned(slot->block, std::string(whole->substr(known.size())));
    }
  } else {
    assembler_.argument_text(slot->block) = std::string(*whole);
  }
}

void OpenAiResponsesDecoder::custom_input(const json::object& event, bool whole) {  // AI-85
  Slot* slot = slot_of(event);
  const auto text = json::find_string(event, whole ? "input" : "delta");
  if (slot == nullptr || !text || !slot->grammar || !count_bytes(whole ? 0 : text->size())) return;
  if (!whole) {
    assembler_.append_owned(slot->block, slot->grammar->append(*text));
    return;
  }
  auto rest = slot->grammar->replace(*text);
  if (!rest) {
    fail(rest.error());
  } else if (!rest->empty()) {
    assembler_.append_owned(slot->block, *std::move(rest));
  }
}

void OpenAiResponsesDecoder::item_done(const json::object& event) {
  const json::object* item = json::find_object(event, "item");
  if (item == nullptr) return;
  const std::int64_t index = output_index(event);
  const std::string type = json::string_or(*item, "type");
  Slot* slot = nullptr;
  if (const auto known = slots_.find(index); known != slots_.end()) {
    slot = &known->second;
    if (!slot->open && index != kNoIndex) return;
    if (!slot->open) slot = open_slot(index, *item);  // the next one without a number
    if (slot == nullptr) return;
  } else {
    slot = open_slot(index, *item);  // its beginning was not announced
    if (slot == nullptr) return;
  }
  const BlockKind kind = assembler_.kind_of(slot->block);
  if (type == "reasoning" && kind == BlockKind::kThinking) {
    finish_reasoning(*slot, *item);
  } else if (type == "message" && kind == BlockKind::kText) {
    finish_text(*slot, *item);
  } else if (kind == BlockKind::kToolCall) {
    finish_call(*slot, *item);
  } else {
    return;  // of another kind than the block
  }
  slot->open = false;
}

void OpenAiResponsesDecoder::finish_reasoning(Slot& slot, const json::object& item) {
  std::string whole = joined_texts(item, "summary", "\n\n");
  if (whole.empty()) whole = joined_texts(item, "content", "\n\n");
  if (const AssistantBlock* streamed = assembler_.applied_block(slot.block); streamed == nullptr) {
    if (!whole.empty()) assembler_.append_owned(slot.block, whole);
  } else if (whole.empty()) {
    whole = std::get<ThinkingContent>(*streamed).thinking;  // AI-170
  }
  ThinkingContent final_block;
  final_block.thinking = std::move(whole);
  final_block.thinking_signature = json::to_text(item);
  assembler_.close_with(slot.block, std::move(final_block));
}

void OpenAiResponsesDecoder::finish_text(Slot& slot, const json::object& item) {
  std::string whole;
  const json::array* parts = json::find_array(item, "content");
  for (std::size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
    const json::object* part = (*parts)[i].if_object();
    if (part == nullptr) continue;
    whole += json::string_or(*part, json::string_or(*part, "type") == "refusal" ? "refusal" : "text");
  }
  if (const AssistantBlock* streamed = assembler_.applied_block(slot.block); streamed == nullptr) {
    if (!whole.empty()) assembler_.append_owned(slot.block, whole);
  } else if (parts == nullptr || parts->empty()) {
    whole = std::get<TextContent>(*streamed).text;  // an item without parts takes nothing back (FF-51)
  }
  json::object signature{{"v", 1}, {"id", json::string_or(item, "id")}};
  const std::string phase = json::string_or(item, "phase");
  if (phase == "commentary" || phase == "final_answer") signature.emplace("phase", phase);
  TextContent final_block;
  final_block.text = std::move(whole);
  final_block.text_signature = json::to_text(signature);
  assembler_.close_with(slot.block, std::move(final_block));
}

void OpenAiResponsesDecoder::finish_call(Slot& slot, const json::object& item) {
  if (slot.grammar) {
    if (const auto input = json::find_string(item, "input")) {
      auto rest = slot.grammar->replace(*input);
      if (!rest) {
        fail(rest.error());
        return;
      }
      if (!rest->empty()) assembler_.append_owned(slot.block, *std::move(rest));
    }
    assembler_.append_owned(slot.block, slot.grammar->close());
  } else if (const auto arguments = json::find_string(item, "arguments"); arguments && !arguments->empty()) {
    assembler_.argument_text(slot.block) = std::string(*arguments);
  }
  assembler_.close(slot.block);
}

/// Encrypted thoughts may come with the last event only (AI-172).
void OpenAiResponsesDecoder::backfill_signatures(const json::object& response) {
  const json::array* output = json::find_array(response, "output");
  for (std::size_t i = 0; output != nullptr && i < output->size(); ++i) {
    const json::object* item = (*output)[i].if_object();
    if (item == nullptr || json::string_or(*item, "type") != "reasoning") continue;
    const auto encrypted = json::find_string(*item, "encrypted_content");
    const auto id = json::find_string(*item, "id");
    if (!encrypted || encrypted->empty() || !id) continue;
    for (AssistantBlock& block : assembler_.message().content) {
      auto* thinking = std::get_if<ThinkingContent>(&block);
      if (thinking == nullptr || !thinking->thinking_signature) continue;
      auto stored = json::parse(*thinking->thinking_signature, {.wtf8 = true});
      json::object* o = stored ? stored->if_object() : nullptr;
      if (o == nullptr || json::find_string(*o, "id") != id || json::find_string(*o, "encrypted_content")) continue;
      (*o)["encrypted_content"] = *encrypted;
      thinking->thinking_signature = json::to_text(*o);
    }
  }
}

void OpenAiResponsesDecoder::read_usage(const json::object& response) {  // AI-174
  Usage& usage = assembler_.message().usage;
  if (const json::object* o = json::find_object(response, "usage")) {
    const json::object* input = json::find_object(*o, "input_tokens_details");
    const json::object* output = json::find_object(*o, "output_tokens_details");
    usage.cache_read = input != nullptr ? json::number_or(*input, "cached_tokens") : 0;
    usage.cache_write = input != nullptr ? json::number_or(*input, "cache_write_tokens") : 0;
    usage.input = std::max(0.0, json::number_or(*o, "input_tokens") - usage.cache_read - usage.cache_write);
    usage.output = json::number_or(*o, "output_tokens");
    usage.reasoning = output != nullptr ? json::number_or(*output, "reasoning_tokens") : 0;
    usage.total_tokens = json::number_or(*o, "total_tokens");
  }
  price(usage, model_);
  if (service_ == ResponsesService::kAzure) return;
  std::string tier = json::string_or(response, "service_tier", service_tier_);
  // The ChatGPT backend says "default" also when it served what was asked for (AI-194).
  const bool asked = service_tier_ == "flex" || service_tier_ == "priority";
  if (service_ == ResponsesService::kCodex && tier == "default" && asked) tier = service_tier_;
  const double factor = tier_factor(tier, model_.id);
  if (factor == 1) return;
  for (double* part :
       {&usage.cost.input, &usage.cost.output, &usage.cost.cache_read, &usage.cost.cache_write, &usage.cost.total}) {
    *part *= factor;
  }
}

void OpenAiResponsesDecoder::finalize(const json::object& response) {  // AI-175
  AssistantMessage& message = assembler_.message();
  if (const auto id = json::find_string(response, "id"); id && !id->empty()) message.response_id = std::string(*id);
  if (service_ == ResponsesService::kCodex) message.end_turn = json::find_bool(response, "end_turn");
  backfill_signatures(response);
  read_usage(response);
  const std::string status = json::string_or(response, "status");
  const json::object* details = json::find_object(response, "incomplete_details");
  const std::string reason = details != nullptr ? json::string_or(*details, "reason") : "";
  if (!status.empty()) message.raw_stop_reason = reason.empty() ? status : status + "." + reason;
  if (status == "incomplete") {
    if (reason == "max_output_tokens") {
      assembler_.finish(StopReason::kLength);
    } else if (reason.empty()) {
      fail("Response incomplete without a provider reason");
    } else {
      fail("Response incomplete: " + reason);
    }
    return;
  }
  if (status == "failed" || status == "cancelled") {
    const json::object* error = json::find_object(response, "error");
    fail(error != nullptr ? code_and_message(*error) : "Response " + status);
    return;
  }
  const bool calls = std::any_of(message.content.begin(), message.content.end(),
                                 [](const AssistantBlock& block) { return std::holds_alternative<ToolCall>(block); });
  assembler_.finish(calls ? StopReason::kToolUse : StopReason::kStop);
}

void OpenAiResponsesDecoder::response_failed(const json::object& response) {
  const std::string status = json::string_or(response, "status");
  if (!status.empty()) assembler_.message().raw_stop_reason = status;
  const json::object* error = json::find_object(response, "error");
  if (service_ == ResponsesService::kCodex) {
    const auto text = error != nullptr ? json::find_string(*error, "message") : std::nullopt;
    fail(text ? *text : "Codex response failed");
    return;
  }
  const json::object* details = json::find_object(response, "incomplete_details");
  const std::string reason = details != nullptr ? json::string_or(*details, "reason") : "";
  if (error != nullptr) {
    fail(code_and_message(*error));
  } else if (!reason.empty()) {
    fail("incomplete: " + reason);
  } else {
    fail("Unknown error (no error details in response)");
  }
}

}  // namespace tau::ai
