#include "agent/faux_provider.h"

#include <stdexcept>
#include <utility>

namespace tau::test {

namespace {

namespace asio = boost::asio;

constexpr std::size_t kChunk = 16;  // the scripts are ASCII: bytes are UTF-16 code units

asio::awaitable<void> emit(const ai::EventSink& sink, ai::StreamEvent event) {
  std::optional<asio::awaitable<void>> wait = sink(event);
  if (wait) co_await *std::move(wait);
}

ai::AssistantMessage settled_form(const ai::Model& model, const FauxReply& reply) {
  json::object o = reply;
  o["role"] = "assistant";
  o["api"] = model.api;
  o["provider"] = model.provider;
  o["model"] = model.id;
  o["timestamp"] = 1;
  if (!o.contains("stopReason")) o["stopReason"] = "stop";
  auto message = ai::message_from_json(o);
  auto settled = std::get<ai::AssistantMessage>(*std::move(message));
  if (!reply.contains("stopReason") && !ai::tool_calls_of(settled).empty())
    settled.stop_reason = ai::StopReason::kToolUse;
  return settled;
}

ai::BlockKind kind_of(const ai::AssistantBlock& block) {
  if (std::holds_alternative<ai::ThinkingContent>(block)) return ai::BlockKind::kThinking;
  if (std::holds_alternative<ai::ToolCall>(block)) return ai::BlockKind::kToolCall;
  return ai::BlockKind::kText;
}

std::string streamed_text(const ai::AssistantBlock& block) {
  if (const auto* thinking = std::get_if<ai::ThinkingContent>(&block)) return thinking->thinking;
  if (const auto* call = std::get_if<ai::ToolCall>(&block)) return json::to_text(call->arguments);
  return std::get<ai::TextContent>(block).text;
}

ai::AssistantBlock empty_form(const ai::AssistantBlock& block) {
  ai::AssistantBlock empty = block;
  if (auto* thinking = std::get_if<ai::ThinkingContent>(&empty)) thinking->thinking.clear();
  if (auto* text = std::get_if<ai::TextContent>(&empty)) text->text.clear();
  if (auto* call = std::get_if<ai::ToolCall>(&empty)) call->arguments = json::object{};
  return empty;
}

void append(ai::AssistantBlock& block, std::string_view delta) {
  if (auto* thinking = std::get_if<ai::ThinkingContent>(&block)) thinking->thinking += delta;
  if (auto* text = std::get_if<ai::TextContent>(&block)) text->text += delta;
}

asio::awaitable<ai::AssistantMessage> fail(ai::AssistantMessage message, ai::StopReason reason, std::string text,
                                           ai::EventSink sink) {
  message.stop_reason = reason;
  message.error_message = std::move(text);
  co_await emit(sink, {ai::StreamError{}, message});
  co_return message;
}

asio::awaitable<ai::AssistantMessage> play(FauxProvider* provider, ai::Model model, ai::Context context,
                                           ai::StreamOptions options, ai::EventSink sink, std::stop_token stop) {
  const int call = ++provider->calls;
  if (provider->on_call) provider->on_call(call, model, context, options, stop);
  FauxReply reply{{"throw", "No more faux responses queued"}};
  if (!provider->replies.empty()) {
    reply = std::move(provider->replies.front());
    provider->replies.pop_front();
  }
  const auto thrown = json::find_string(reply, "throw");
  const ai::AssistantMessage settled = settled_form(model, thrown ? FauxReply{} : reply);
  ai::AssistantMessage partial = settled;
  partial.content.clear();
  if (thrown) {
    auto failed = co_await fail(std::move(partial), ai::StopReason::kError, std::string(*thrown), std::move(sink));
    co_return failed;
  }
  const std::string aborted = "Request was aborted";
  if (stop.stop_requested()) {
    auto failed = co_await fail(std::move(partial), ai::StopReason::kAborted, aborted, std::move(sink));
    co_return failed;
  }
  partial.stop_reason = ai::StopReason::kPending;
  co_await emit(sink, {ai::StreamStart{}, partial});
  for (std::size_t i = 0; i < settled.content.size(); ++i) {
    const ai::AssistantBlock& block = settled.content[i];
    const ai::BlockKind kind = kind_of(block);
    bool was_aborted = stop.stop_requested();
    if (!was_aborted) {
      partial.content.push_back(empty_form(block));
      co_await emit(sink, {ai::BlockStart{kind, i}, partial});
      const std::string text = streamed_text(block);
      std::size_t at = 0;
      do {
        was_aborted = stop.stop_requested();
        if (was_aborted) break;
        const std::string_view delta = std::string_view(text).substr(at, kChunk);
        append(partial.content[i], delta);
        co_await emit(sink, {ai::BlockDelta{kind, i, delta}, partial});
        at += kChunk;
      } while (at < text.size());
    }
    if (was_aborted) {
      auto failed = co_await fail(std::move(partial), ai::StopReason::kAborted, aborted, std::move(sink));
      co_return failed;
    }
    partial.content[i] = block;
    co_await emit(sink, {ai::BlockEnd{kind, i}, partial});
  }
  if (settled.stop_reason == ai::StopReason::kError || settled.stop_reason == ai::StopReason::kAborted) {
    co_await emit(sink, {ai::StreamError{}, settled});
  } else {
    co_await emit(sink, {ai::StreamDone{}, settled});
  }
  co_return settled;
}

}  // namespace

ai::Model faux_model(std::string id) {
  ai::Model model;
  model.id = std::move(id);
  model.name = model.id;
  model.api = "faux";
  model.provider = "faux";
  model.reasoning = true;
  return model;
}

ai::StreamFunction FauxProvider::stream() {
  return [this](ai::Model model, ai::Context context, ai::StreamOptions options, ai::EventSink sink,
                std::stop_token stop) {
    return play(this, std::move(model), std::move(context), std::move(options), std::move(sink), std::move(stop));
  };
}

}  // namespace tau::test
