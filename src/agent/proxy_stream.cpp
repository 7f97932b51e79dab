#include "agent/proxy_stream.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "ai/provider_call.h"
#include "ai/stream_decoder.h"

namespace tau::agent {

namespace {

constexpr std::string_view kDataPrefix = "data: ";

/// One line "data: {event}" after the other (PX-4); PX-5 has the events.
class ProxyDecoder final : public ai::StreamDecoder {
 public:
  explicit ProxyDecoder(const ai::Model& model) : StreamDecoder(ai::empty_reply(model)) {}

  void push(std::string_view bytes) override { bytes_ += bytes; }
  void end_of_body() override { over_ = true; }

  std::optional<ai::StreamEvent> next() override {
    while (!assembler_.has_step() && !ended_) {
      const auto line = take_line();
      if (!line) {
        if (!over_) break;
        stop("The proxy closed the connection before the end of the reply");
      } else if (line->starts_with(kDataPrefix)) {
        take(line->substr(kDataPrefix.size()));
      }
    }
    return assembler_.next();
  }

 private:
  /// The next line; at the end of the body also one without a line end. Valid until the next call.
  std::optional<std::string_view> take_line() {
    if (position_ > 0 && position_ == bytes_.size()) {
      bytes_.clear();
      position_ = 0;
      searched_ = 0;
    }
    const std::size_t end = bytes_.find('\n', std::max(position_, searched_));
    if (end == std::string::npos && (!over_ || position_ == bytes_.size())) {
      bytes_.erase(0, position_);
      position_ = 0;
      searched_ = bytes_.size();
      return std::nullopt;
    }
    const std::size_t begin = position_;
    position_ = end == std::string::npos ? bytes_.size() : end + 1;
    searched_ = position_;
    return std::string_view(bytes_).substr(begin, end == std::string::npos ? end : end - begin);
  }

  void stop(std::string text) {
    ended_ = true;
    assembler_.fail(ai::StopReason::kError, std::move(text));
  }

  void take(std::string_view data) {
    if (data.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const auto event = json::parse(data);
    if (!event || !event->is_object()) {
      return stop("The proxy sent an event that is not JSON: " +
                  (event ? std::string("no object") : event.error().describe()));
    }
    const json::object& o = event->get_object();
    const std::string type = json::string_or(o, "type");
    if (type == "start") {
      assembler_.start();
    } else if (type == "done" || type == "error") {
      finish(o, type == "done");
    } else if (type == "text_start") {
      open(o, ai::TextContent{});
    } else if (type == "thinking_start") {
      open(o, ai::ThinkingContent{});
    } else if (type == "toolcall_start") {
      ai::ToolCall call;
      call.id = json::string_or(o, "id");
      call.name = json::string_or(o, "toolName");
      open(o, std::move(call));
    } else if (const auto kind = kind_of(type)) {
      continue_block(o, type, *kind);
    }  // an unknown event is of a newer server: passed over
  }

  static std::optional<ai::BlockKind> kind_of(std::string_view type) {
    if (type == "text_delta" || type == "text_end") return ai::BlockKind::kText;
    if (type == "thinking_delta" || type == "thinking_end") return ai::BlockKind::kThinking;
    if (type == "toolcall_delta" || type == "toolcall_end") return ai::BlockKind::kToolCall;
    return std::nullopt;
  }

  static std::int64_t content_index(const json::object& o) { return json::find_integer(o, "contentIndex").value_or(0); }

  void open(const json::object& o, ai::AssistantBlock block) {
    blocks_[content_index(o)] = assembler_.open(std::move(block));
  }

  void continue_block(const json::object& o, const std::string& type, ai::BlockKind kind) {
    const auto block = blocks_.find(content_index(o));
    const bool fits = block != blocks_.end() && assembler_.kind_of(block->second) == kind;
    if (type.ends_with("_delta")) {
      if (!fits) return stop(fmt::format("The proxy sent {} for a block of another type", type));
      assembler_.append_owned(block->second, json::string_or(o, "delta"));
    } else if (fits) {
      settle(o, block->second);
      assembler_.close(block->second, true);
      blocks_.erase(block);
    }
  }

  /// What the end of a block says about it. All its deltas have been applied: there is one event at a time.
  void settle(const json::object& o, std::size_t index) {
    ai::AssistantBlock& block = *assembler_.applied_block(index);
    const auto signature = json::find_string(o, "contentSignature");
    if (auto* text = std::get_if<ai::TextContent>(&block)) {
      if (signature) text->text_signature = std::string(*signature);
    } else if (auto* thinking = std::get_if<ai::ThinkingContent>(&block)) {
      if (signature) thinking->thinking_signature = std::string(*signature);
    } else if (auto* call = std::get_if<ai::ToolCall>(&block)) {
      const json::object* said = json::find_object(o, "toolCall");
      if (said == nullptr) return;
      json::object merged = ai::to_json(*call);
      for (const auto& member : *said)
        merged[member.key()] = member.value();
      if (said->contains("arguments")) assembler_.argument_text(index).clear();
      block = ai::assistant_block_from_json(merged);
    }
  }

  void finish(const json::object& o, bool done) {
    ended_ = true;
    ai::AssistantMessage& message = assembler_.message();
    if (const json::object* usage = json::find_object(o, "usage")) message.usage = ai::usage_from_json(*usage);
    if (const auto level = json::find_string(o, "providerThinkingLevel")) {
      message.provider_thinking_level = std::string(*level);
    }
    const auto reason = ai::stop_reason_from(json::string_or(o, "reason"));
    if (done) {
      assembler_.finish(reason.value_or(ai::StopReason::kStop));
    } else {
      assembler_.fail(reason == ai::StopReason::kAborted ? *reason : ai::StopReason::kError,
                      json::string_or(o, "errorMessage", "The proxy reported an error"));
    }
  }

  std::string bytes_;         // received and not yet taken
  std::size_t position_ = 0;  // of the next line
  std::size_t searched_ = 0;  // no line end before it
  bool over_ = false;
  bool ended_ = false;
  std::map<std::int64_t, std::size_t> blocks_;  // the server's index of an open block -> ours
};

/// PX-7
std::string error_text(int status, std::string_view reason, std::string_view body) {
  if (const auto answer = json::parse(body); answer && answer->is_object()) {
    if (const auto text = json::find_string(answer->get_object(), "error"))
      return fmt::format("Proxy error: {}", *text);
  }
  return fmt::format("Proxy error: {}{}{}", status, reason.empty() ? "" : " ", reason);
}

std::string_view name_of(ai::CacheRetention retention) {
  switch (retention) {
    case ai::CacheRetention::kNone:
      return "none";
    case ai::CacheRetention::kShort:
      return "short";
    case ai::CacheRetention::kLong:
      return "long";
  }
  std::unreachable();
}

}  // namespace

json::object proxy_request_body(const ai::Model& model, const ai::Context& context, const ai::StreamOptions& options) {
  json::object sent;
  if (options.temperature) sent["temperature"] = json::number(*options.temperature);
  if (!options.sampling_params.empty()) sent["samplingParams"] = options.sampling_params;
  if (options.max_tokens) sent["maxTokens"] = json::number(*options.max_tokens);
  if (options.reasoning) sent["reasoning"] = ai::to_string(*options.reasoning);
  if (options.cache_retention) sent["cacheRetention"] = name_of(*options.cache_retention);
  if (options.session_id) sent["sessionId"] = *options.session_id;
  if (!options.headers.empty()) {
    json::object headers;
    for (const auto& [name, value] : options.headers)
      headers[name] = value ? json::value(*value) : json::value(nullptr);
    sent["headers"] = std::move(headers);
  }
  if (!options.metadata.empty()) sent["metadata"] = options.metadata;
  sent["transport"] = options.transport;
  if (!options.thinking_budgets.empty()) {
    json::object budgets;
    for (const auto& [level, tokens] : options.thinking_budgets)
      budgets[ai::to_string(level)] = json::number(tokens);
    sent["thinkingBudgets"] = std::move(budgets);
  }
  sent["maxRetryDelayMs"] = options.max_retry_delay.count();

  json::object conversation;
  if (context.system_prompt) conversation["systemPrompt"] = *context.system_prompt;
  json::array messages;
  messages.reserve(context.messages.size());
  for (const ai::MessageRef& message : context.messages)
    messages.emplace_back(ai::to_json(*message));
  conversation["messages"] = std::move(messages);
  if (!context.tools.empty()) {
    json::array tools;
    for (const ai::Tool& tool : context.tools)
      tools.emplace_back(ai::to_json(tool));
    conversation["tools"] = std::move(tools);
  }
  return {{"model", ai::to_json(model)}, {"context", std::move(conversation)}, {"options", std::move(sent)}};
}

ai::StreamFunction make_proxy_stream(ai::http::Client& client, ProxyServer server) {
  return [&client, server = std::move(server)](ai::Model model, const ai::Context& context, ai::StreamOptions options,
                                               ai::EventSink sink, std::stop_token stop) {
    ai::ProviderCall call;
    call.request.url = server.url + "/api/stream";
    call.request.headers = {{"Authorization", "Bearer " + server.auth_token}, {"Content-Type", "application/json"}};
    json::write(call.request.body, proxy_request_body(model, context, options));
    call.decoder = std::make_unique<ProxyDecoder>(model);
    call.error_text = [](int status, std::string_view reason, const ai::http::HeaderList&, std::string_view body) {
      return error_text(status, reason, body);
    };
    return ai::run_provider_call(client, std::move(call), std::move(model), std::move(options), std::move(sink),
                                 std::move(stop));
  };
}

}  // namespace tau::agent
