// What the model layer costs by itself: bytes of a provider to events, messages to the bytes of a request.
#include <string>

#include <benchmark/benchmark.h>

#include "ai/providers/anthropic_messages.h"
#include "ai/providers/openai_completions.h"

namespace tau::ai {
namespace {

constexpr int kDeltas = 50000;

Model model_of(std::string_view api) {
  Model model;
  model.id = "m1";
  model.api = api;
  model.provider = "local";
  model.max_tokens = 1000;
  return model;
}

std::string anthropic_stream() {
  std::string out =
      "event: message_start\ndata: "
      "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m1\",\"usage\":{}}}\n\n"
      "event: content_block_start\ndata: "
      "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
      "\"text\":\"\"}}\n\n";
  for (int i = 0; i < kDeltas; ++i) {
    out +=
        "event: content_block_delta\ndata: "
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
        "\"text\":\"twenty bytes of text\"}}\n\n";
  }
  return out +
         "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"
         "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
}

std::string completions_stream() {
  std::string out;
  for (int i = 0; i < kDeltas; ++i) {
    out +=
        "data: "
        "{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m1\",\"choices\":[{\"index\":0,"
        "\"delta\":{\"content\":\"twenty bytes of text\"},\"finish_reason\":null}]}\n\n";
  }
  return out + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
}

/// Pieces as a socket gives them.
void drain(StreamDecoder& decoder, std::string_view body) {
  constexpr std::size_t kPiece = 16384;
  for (std::size_t at = 0; at < body.size(); at += kPiece) {
    decoder.push(body.substr(at, kPiece));
    while (auto event = decoder.next())
      benchmark::DoNotOptimize(event->partial.content.size());
  }
  decoder.end_of_body();
  while (decoder.next()) {
  }
}

void decode_anthropic(benchmark::State& state) {
  const std::string body = anthropic_stream();
  const Model model = model_of(kAnthropicMessagesApi);
  for (auto _ : state) {
    AnthropicMessagesDecoder decoder(empty_reply(model), model);
    drain(decoder, body);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * body.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kDeltas);
}
BENCHMARK(decode_anthropic)->Unit(benchmark::kMillisecond);

void decode_completions(benchmark::State& state) {
  const std::string body = completions_stream();
  const Model model = model_of(kOpenAiCompletionsApi);
  for (auto _ : state) {
    OpenAiCompletionsDecoder decoder(model);
    drain(decoder, body);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * body.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kDeltas);
}
BENCHMARK(decode_completions)->Unit(benchmark::kMillisecond);

Context long_conversation(int turns) {
  Context context;
  for (int i = 0; i < turns; ++i) {
    context.messages.push_back(make_message(Message(UserMessage{std::string(300, 'q'), i, {}})));
    AssistantMessage reply;
    reply.api = kAnthropicMessagesApi;
    reply.provider = "local";
    reply.model = "m1";
    reply.content.emplace_back(TextContent{std::string(700, 'a'), {}, {}});
    context.messages.push_back(make_message(Message(std::move(reply))));
  }
  return context;
}

void encode_anthropic_request(benchmark::State& state) {
  const Context context = long_conversation(static_cast<int>(state.range(0)) / 2);
  const Model model = model_of(kAnthropicMessagesApi);
  std::size_t bytes = 0;
  for (auto _ : state) {
    std::string out;
    json::write(out, *encode_anthropic_messages(model, context, {}));
    bytes = out.size();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
}
BENCHMARK(encode_anthropic_request)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tau::ai
