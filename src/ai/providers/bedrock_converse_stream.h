// Wire API "bedrock-converse-stream" (AI-223 to AI-227): Amazon's, for models of many makers. Requests are signed, the
// reply is a binary event stream.
//
// Encoder and decoder are pure: values in, values out.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "ai/auth/environment.h"
#include "ai/context.h"
#include "ai/http/event_stream_decoder.h"
#include "ai/http/http_client.h"
#include "ai/model.h"
#include "ai/stream.h"
#include "ai/stream_decoder.h"

namespace tau::ai {

inline constexpr std::string_view kBedrockConverseStreamApi = "bedrock-converse-stream";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_bedrock(http::Client& client, Model model, Context context,
                                                 StreamOptions options, EventSink sink, std::stop_token stop);

/// The body (AI-225). `region` decides what a thinking model may show.
std::expected<json::object, std::string> encode_bedrock(const Model& model, const Context& context,
                                                        const StreamOptions& options, std::string_view region);

struct BedrockEndpoint {
  std::string region;
  std::string base_url;
};

/// Region and host (AI-223).
BedrockEndpoint bedrock_endpoint(const Model& model, const Environment& environment);

/// "Validation error: …" (AI-227). `code`: the exception's name, as it came.
std::string bedrock_error_text(std::string_view code, std::string_view message, int status, std::string_view body);

/// "throttlingException:http://…" -> "ThrottlingException".
std::string bedrock_error_code(std::string_view name);

class BedrockDecoder final : public StreamDecoder {
 public:
  explicit BedrockDecoder(const Model& model);

  void push(std::string_view bytes) override;
  void end_of_body() override;
  std::optional<StreamEvent> next() override;

  /// The id under which the service knows the request; part of what is said of a failure.
  void set_request_id(std::string id) { request_id_ = std::move(id); }

 private:
  struct Block {
    std::size_t index = 0;
    bool redacted = false;
    std::string secret;  // bytes of redacted reasoning
  };

  void handle(const http::EventStreamMessage& message);
  void handle_event(std::string_view type, const json::object& payload);
  void block_delta(const json::object& payload);
  void reasoning_delta(std::int64_t number, const json::object& reasoning);
  void block_stop(const json::object& payload);
  void read_usage(const json::object& usage);
  void end_of_stream();
  void begin();
  Block& open(std::int64_t number, AssistantBlock block);
  bool count_bytes(std::size_t bytes);
  void fail_with(std::string code, std::string_view message, std::string_view body);
  void fail(std::string_view text);

  Model model_;
  http::EventStreamDecoder frames_;
  std::map<std::int64_t, Block> blocks_;  // by contentBlockIndex
  std::optional<std::string> stop_word_;
  std::string request_id_;
  std::size_t message_bytes_ = 0;
  bool begun_ = false;
  bool body_over_ = false;
};

}  // namespace tau::ai
