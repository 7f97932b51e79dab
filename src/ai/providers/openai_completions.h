// Wire API "openai-completions" (AI-130 to AI-146): OpenAI's older protocol, which nearly every other server speaks.
//
// Nearly, because no two of them agree on the details. What is known of each stands in one place
// (openai_completions_compat.h); encoder and decoder ask there and know no hosts.
//
// Encoder and decoder are pure: values in, values out. Most chunks of a reply carry one piece of text; those are read
// by simdjson without making JSON values, and everything else by the ordinary reader.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "ai/context.h"
#include "ai/grammar_tool.h"
#include "ai/http/http_client.h"
#include "ai/http/sse_decoder.h"
#include "ai/model.h"
#include "ai/stream.h"
#include "ai/stream_decoder.h"

namespace tau::ai {

inline constexpr std::string_view kOpenAiCompletionsApi = "openai-completions";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_openai_completions(http::Client& client, Model model, Context context,
                                                            StreamOptions options, EventSink sink,
                                                            std::stop_token stop);

/// The body, with members in the order of AI-131. Every string in it is valid UTF-8 (FF-4). An error when a tool or a
/// replayed call cannot be sent (AI-80, AI-84).
std::expected<json::object, std::string> encode_openai_completions(const Model& model, const Context& context,
                                                                   const StreamOptions& options);

/// All headers of the request; an error when there is no key (AI-18).
std::expected<http::HeaderList, std::string> openai_completions_headers(const Model& model, const Context& context,
                                                                        const StreamOptions& options);

/// "400: {…}", "502 <text>", "500 status code (no body)" (AI-92, AI-93).
std::string openai_completions_error_text(int status, std::string_view body);

class OpenAiCompletionsDecoder final : public StreamDecoder {
 public:
  /// `tools`: those of the request, for calls of grammar tools.
  OpenAiCompletionsDecoder(const Model& model, std::vector<Tool> tools = {});
  ~OpenAiCompletionsDecoder() override;

  void push(std::string_view bytes) override;
  void end_of_body() override;
  std::optional<StreamEvent> next() override;

 private:
  class FastReader;

  struct Call {
    std::size_t block = 0;
    std::optional<std::int64_t> index;        // the provider's
    std::optional<GrammarArguments> grammar;  // arguments that stream in as text
    bool custom = false;
  };

  void handle_frame(std::string_view data);
  void handle_chunk(const json::object& chunk);
  void handle_choice(const json::object& choice);
  void handle_text(std::string_view text, bool owned);
  void handle_reasoning(std::string_view field, std::string_view text);
  void handle_call(const json::object& delta);
  void handle_details(const json::array& details);
  void read_usage(const json::object& usage);
  Call& find_call(const json::object& delta);
  void end_of_stream();
  void close_blocks();
  bool count_bytes(std::size_t bytes);
  void fail(std::string_view text);

  Model model_;
  std::vector<Tool> tools_;
  http::SseDecoder sse_;
  std::unique_ptr<FastReader> fast_;

  std::optional<std::size_t> text_block_;
  std::optional<std::size_t> thinking_block_;
  std::vector<Call> calls_;
  json::array details_;                // reasoning_details, merged (AI-143)
  std::optional<std::string> finish_;  // the provider's word
  std::size_t message_bytes_ = 0;
  bool body_over_ = false;
  bool over_ = false;  // [DONE]
};

}  // namespace tau::ai
