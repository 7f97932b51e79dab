// Wire API "mistral-conversations" (AI-212 to AI-214b): Mistral's form of chat completions, with ids of exactly nine
// characters and thinking as parts of the content.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "ai/context.h"
#include "ai/http/http_client.h"
#include "ai/http/sse_decoder.h"
#include "ai/model.h"
#include "ai/stream.h"
#include "ai/stream_decoder.h"

namespace tau::ai {

inline constexpr std::string_view kMistralConversationsApi = "mistral-conversations";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_mistral_conversations(http::Client& client, Model model, Context context,
                                                               StreamOptions options, EventSink sink,
                                                               std::stop_token stop);

std::expected<json::object, std::string> encode_mistral(const Model& model, const Context& context,
                                                        const StreamOptions& options);

/// Nine letters and digits that stand for `id` (AI-213); `attempt` > 0 gives another one.
std::string mistral_call_id(std::string_view id, int attempt = 0);

std::string mistral_error_text(int status, std::string_view reason, std::string_view body);

class MistralDecoder final : public StreamDecoder {
 public:
  explicit MistralDecoder(const Model& model);

  void push(std::string_view bytes) override;
  void end_of_body() override;
  std::optional<StreamEvent> next() override;

 private:
  void handle_frame(std::string_view data);
  void handle_choice(const json::object& choice);
  void handle_content(const json::value& content);
  void handle_text(BlockKind kind, std::string_view text);
  void handle_call(const json::object& call, std::size_t position);
  void read_usage(const json::object& usage);
  void close_block();
  void end_of_stream();
  bool count_bytes(std::size_t bytes);
  void fail(std::string_view text);

  Model model_;
  http::SseDecoder sse_;
  std::optional<std::size_t> open_block_;      // of text or thinking
  std::map<std::int64_t, std::size_t> calls_;  // the provider's index -> block
  std::optional<std::string> finish_;
  std::size_t message_bytes_ = 0;
  bool body_over_ = false;
  bool over_ = false;  // [DONE]
};

}  // namespace tau::ai
