#include "ai/providers/pi_messages.h"

#include <utility>

#include <fmt/format.h>

#include "ai/provider_call.h"
#include "ai/surrogates.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kEventLimit = std::size_t{64} << 20;
constexpr std::size_t kMessageLimit = std::size_t{256} << 20;

std::string error_text(int status, std::string_view reason, std::string_view body) {
  const auto parsed = json::parse(utf8::trim(body));
  const json::object* o = parsed ? parsed->if_object() : nullptr;
  const json::object* error = o != nullptr ? json::find_object(*o, "error") : nullptr;
  const std::string head = reason.empty() ? fmt::format("{}", status) : fmt::format("{} {}", status, reason);
  if (error == nullptr) {
    constexpr std::size_t kLongest = 4000;
    const std::string_view shown = utf8::prefix_utf16(utf8::trim(body), kLongest);
    return shown.empty() ? head : fmt::format("{}: {}", head, shown);
  }
  std::string text = fmt::format("{}: {}", head, json::string_or(*error, "message", "no message"));
  if (const auto code = json::find_string(*error, "code")) text += fmt::format(" ({})", *code);
  return text;
}

void describe_error(AssistantMessage& message, const std::string& url, int status, std::string_view reason,
                    std::string_view body) {
  const auto parsed = json::parse(utf8::trim(body));
  const json::object* o = parsed ? parsed->if_object() : nullptr;
  const json::object* error = o != nullptr ? json::find_object(*o, "error") : nullptr;
  json::object described{{"name", "PiMessagesResponseError"}, {"message", error_text(status, reason, body)}};
  json::object details{{"version", 1},     {"provider", message.provider}, {"model", message.model}, {"url", url},
                       {"status", status}, {"statusText", reason}};
  if (error != nullptr) {
    if (const auto code = json::find_string(*error, "code")) described.emplace("code", *code);
    details.emplace("error", *error);
  }
  details.emplace("timestampMs", now_milliseconds());
  message.diagnostics.emplace().emplace_back(json::object{{"type", "pi_messages_response_failure"},
                                                          {"timestamp", now_milliseconds()},
                                                          {"error", std::move(described)},
                                                          {"details", std::move(details)}});
}

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  if (!options.api_key || utf8::is_blank(*options.api_key)) {
    return std::unexpected("No API key for provider: " + model.provider);
  }
  json::object body = encode_pi_messages(model, context, options);
  replace_payload(body, model, options);
  Headers headers{{"content-type", "application/json"},
                  {"accept", "text/event-stream"},
                  {"user-agent", user_agent()},
                  {"authorization", "Bearer " + *options.api_key}};
  merge_headers(headers, model.headers);
  merge_headers(headers, options.headers);
  ProviderCall call;
  call.request.url = join_url(model.base_url, "/messages");
  call.request.headers = present_headers(std::move(headers));
  json::write(call.request.body, body);
  call.error_text = [](int status, std::string_view reason, const http::HeaderList&, std::string_view text) {
    return error_text(status, reason, text);
  };
  call.describe_error = [url = call.request.url](AssistantMessage& message, int status, std::string_view reason,
                                                 const http::HeaderList&, std::string_view text) {
    describe_error(message, url, status, reason, text);
  };
  call.decoder = std::make_unique<PiMessagesDecoder>(model);
  return call;
}

}  // namespace

json::object encode_pi_messages(const Model& model, const Context& context, const StreamOptions& options) {
  json::object conversation;
  if (context.system_prompt) conversation.emplace("systemPrompt", *context.system_prompt);
  json::array messages;
  messages.reserve(context.messages.size());
  for (const MessageRef& message : context.messages)
    messages.emplace_back(to_json(*message));
  conversation.emplace("messages", std::move(messages));
  if (!context.tools.empty()) {
    json::array tools;
    for (const Tool& tool : context.tools)
      tools.emplace_back(to_json(tool));
    conversation.emplace("tools", std::move(tools));
  }
  json::object wanted;
  if (options.temperature) wanted.emplace("temperature", json::number(*options.temperature));
  if (options.max_tokens) wanted.emplace("maxTokens", json::number(*options.max_tokens));
  if (options.reasoning && *options.reasoning != ThinkingLevel::kOff) {
    wanted.emplace("reasoning", to_string(*options.reasoning));
  }
  if (options.cache_retention) {
    constexpr std::string_view kWords[] = {"none", "short", "long"};
    wanted.emplace("cacheRetention", kWords[static_cast<std::size_t>(*options.cache_retention)]);
  }
  if (options.session_id) wanted.emplace("sessionId", *options.session_id);
  if (options.tool_choice) wanted.emplace("toolChoice", *options.tool_choice);
  json::object body{{"model", model.id}};
  body.emplace("context", std::move(conversation));
  body.emplace("options", std::move(wanted));
  json::value whole = std::move(body);
  remove_lone_surrogates(whole);
  return std::move(whole.get_object());
}

asio::awaitable<AssistantMessage> stream_pi_messages(http::Client& client, Model model, Context context,
                                                     StreamOptions options, EventSink sink, std::stop_token stop) {
  return call_provider(client, prepare, std::move(model), std::move(context), std::move(options), std::move(sink),
                       std::move(stop));
}

PiMessagesDecoder::PiMessagesDecoder(const Model& model)
    : StreamDecoder(empty_reply(model)), model_(model), sse_(kEventLimit) {}

void PiMessagesDecoder::push(std::string_view bytes) {
  sse_.push(bytes);
}

void PiMessagesDecoder::end_of_body() {
  sse_.finish();
  body_over_ = true;
}

void PiMessagesDecoder::fail(std::string_view text) {
  assembler_.fail(StopReason::kError, printable(text));
}

std::optional<StreamEvent> PiMessagesDecoder::next() {
  while (!assembler_.has_step()) {
    if (assembler_.settled()) return std::nullopt;
    if (const std::optional<http::SseFrame> frame = sse_.next()) {
      handle_frame(frame->data);
    } else if (sse_.overflowed()) {
      fail(fmt::format("The stream sent an event larger than {} bytes", kEventLimit));
    } else if (body_over_) {
      assembler_.message().content.clear();  // AI-228: what came is not to be relied on
      fail(fmt::format("{} stream ended without a terminal event", model_.provider));
    } else {
      break;
    }
  }
  return assembler_.next();
}

void PiMessagesDecoder::handle_frame(std::string_view data) {
  if (data.starts_with("[DONE]")) return;
  message_bytes_ += data.size();
  if (message_bytes_ > kMessageLimit) {
    fail(fmt::format("The stream sent a message larger than {} bytes", kMessageLimit));
    return;
  }
  const auto parsed = json::parse(data);
  if (!parsed) {
    fail(fmt::format("The stream sent an event that is not JSON: {}", parsed.error().describe()));
    return;
  }
  if (const json::object* event = parsed->if_object()) handle_event(json::string_or(*event, "type"), *event);
}

void PiMessagesDecoder::handle_event(std::string_view type, const json::object& event) {
  if (type == "done" || type == "error") {
    terminal(type == "error", event);
    return;
  }
  if (!std::exchange(begun_, true)) assembler_.start();
  const auto number = json::find_integer(event, "contentIndex");
  if (!number) return;
  const auto known = blocks_.find(*number);
  if (type.ends_with("_start")) {
    block_start(type, event, *number);
  } else if (known == blocks_.end()) {
    return;
  } else if (type.ends_with("_delta")) {
    if (const auto text = json::find_string(event, "delta")) {
      assembler_.append_owned(known->second, std::string(*text));
    }
  } else if (type.ends_with("_end")) {
    block_end(type, event, known->second);
  }
}

void PiMessagesDecoder::block_start(std::string_view type, const json::object& event, std::int64_t number) {
  if (type == "text_start") {
    blocks_[number] = assembler_.open(TextContent{});
  } else if (type == "thinking_start") {
    blocks_[number] = assembler_.open(ThinkingContent{});
  } else if (type == "toolcall_start") {
    ToolCall call;
    call.id = json::string_or(event, "id");
    call.name = json::string_or(event, "toolName");
    blocks_[number] = assembler_.open(std::move(call));
  }
}

void PiMessagesDecoder::block_end(std::string_view type, const json::object& event, std::size_t block) {
  const auto content = json::find_string(event, "content");
  const auto signature = json::find_string(event, "contentSignature");
  const BlockKind kind = assembler_.kind_of(block);
  if (type == "text_end" && kind == BlockKind::kText) {
    TextContent whole = std::get<TextContent>(*assembler_.applied_block(block));
    if (content) whole.text = std::string(*content);
    if (signature) whole.text_signature = std::string(*signature);
    assembler_.close_with(block, std::move(whole));
  } else if (type == "thinking_end" && kind == BlockKind::kThinking) {
    ThinkingContent whole = std::get<ThinkingContent>(*assembler_.applied_block(block));
    if (content) whole.thinking = std::string(*content);
    if (signature) whole.thinking_signature = std::string(*signature);
    whole.redacted = json::bool_or(event, "redacted");
    assembler_.close_with(block, std::move(whole));
  } else if (type == "toolcall_end" && kind == BlockKind::kToolCall) {
    if (const json::object* call = json::find_object(event, "toolCall")) {
      const json::object* arguments = json::find_object(*call, "arguments");
      if (arguments != nullptr) assembler_.argument_text(block) = json::to_text(*arguments);
      auto& applied = std::get<ToolCall>(*assembler_.applied_block(block));
      if (const auto thought = json::find_string(*call, "thoughtSignature")) {
        applied.thought_signature = std::string(*thought);
      }
    }
    assembler_.close(block);
  }
}

void PiMessagesDecoder::terminal(bool failed, const json::object& event) {
  AssistantMessage& message = assembler_.message();
  if (const json::object* usage = json::find_object(event, "usage")) message.usage = usage_from_json(*usage);
  if (const auto id = json::find_string(event, "responseId")) message.response_id = std::string(*id);
  if (const auto level = json::find_string(event, "providerThinkingLevel")) {
    message.provider_thinking_level = std::string(*level);
  }
  if (const json::object* rewrite = json::find_object(event, "rewrite")) {
    message.diagnostics.emplace().emplace_back(
        json::object{{"type", "pi_messages_rewrite"}, {"timestamp", now_milliseconds()}, {"details", *rewrite}});
  }
  const auto reason = stop_reason_from(json::string_or(event, "reason"));
  if (failed) {
    const bool aborted = reason == StopReason::kAborted;
    assembler_.fail(aborted ? StopReason::kAborted : StopReason::kError,
                    printable(json::string_or(event, "errorMessage", "The gateway reported an error without a text")));
    return;
  }
  const bool fits = reason == StopReason::kStop || reason == StopReason::kLength || reason == StopReason::kToolUse ||
                    reason == StopReason::kDeferred;
  if (fits) {
    assembler_.finish(*reason);
  } else {
    fail(fmt::format("The gateway ended the reply with the unknown reason \"{}\"", json::string_or(event, "reason")));
  }
}

}  // namespace tau::ai
