// Wire API "anthropic-messages" (AI-100 to AI-121): Anthropic, and everyone who speaks its protocol.
//
// Encoder and decoder are pure: values in, values out. stream_anthropic_messages puts the HTTP call between them.
//
// The decoder is on the path of every token. A reply of 500,000 deltas (67 MB of frames) must cost 0.15 s, so the one
// frame that matters, content_block_delta, is read by a scanner that makes no JSON value and allocates nothing. It
// knows the shapes that servers send and gives up at the first surprise; json::parse, and then literal repair, take
// over.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ai/http/http_client.h"
#include "ai/http/sse_decoder.h"
#include "ai/stream.h"
#include "ai/stream_decoder.h"

namespace tau::ai {

inline constexpr std::string_view kAnthropicMessagesApi = "anthropic-messages";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_anthropic_messages(http::Client& client, Model model, Context context,
                                                            StreamOptions options, EventSink sink,
                                                            std::stop_token stop);

// ---- request -----------------------------------------------------------------------------------------------------

/// The body, with members in the order of AI-102. Every string in it is valid UTF-8 (FF-4). An error when a tool
/// requires a sampling that the model does not offer (AI-80).
std::expected<json::object, std::string> encode_anthropic_messages(const Model& model, const Context& context,
                                                                   const StreamOptions& options);

/// All headers of the request (AI-100, AI-101); an error when there is no key (AI-18).
std::expected<http::HeaderList, std::string> anthropic_headers(const Model& model, const Context& context,
                                                               const StreamOptions& options);

/// Whether the key is a subscription's token: such calls name their tools as the vendor's own client does (AI-108).
bool uses_anthropic_oauth(const Model& model, const StreamOptions& options);

/// The effort that the request asks for, of models that take it in mid-conversation (AI-104); nothing for others. It
/// becomes providerThinkingLevel of the reply.
std::optional<std::string> anthropic_effort(const Model& model, const StreamOptions& options);

/// "400 {…}", "502 <text>", "500 status code (no body)" (AI-92).
std::string anthropic_error_text(int status, std::string_view body);

// ---- reply -------------------------------------------------------------------------------------------------------

/// What a reply may take of this machine's memory; a larger one is an error.
struct ReplyLimits {
  std::size_t event_bytes = std::size_t{64} << 20;
  std::size_t message_bytes = std::size_t{256} << 20;  // texts, signatures and arguments together
};

class AnthropicMessagesDecoder final : public StreamDecoder {
 public:
  /// `initial` as empty_reply(model) makes it, perhaps with an effort. `tool_names`: spellings that names in the reply
  /// are changed back to (AI-108); empty when nothing was renamed.
  AnthropicMessagesDecoder(AssistantMessage initial, Model model, std::vector<std::string> tool_names = {},
                           ReplyLimits limits = {});

  void push(std::string_view bytes) override;
  void end_of_body() override;
  std::optional<StreamEvent> next() override;

 private:
  /// A block of the reply that is being written, by the provider's index.
  struct OpenBlock {
    std::size_t block = 0;
    bool has_input_delta = false;  // of a call
    std::string first_input;       // of a call: input that came with the block start, as JSON text (FF-48)
  };

  void handle_frame(const http::SseFrame& frame);
  bool handle_plain_delta(std::string_view data);
  void handle_event(std::string_view type, const json::object& event);
  void message_start(const json::object& event);
  void block_start(const json::object& event);
  void block_delta(const json::object& event);
  void block_stop(const json::object& event);
  void message_delta(const json::object& event);
  void message_stop();
  void end_of_stream();
  void fail(std::string_view text);

  void append(OpenBlock& open, BlockKind kind, std::string_view delta, bool owned);
  bool count_bytes(std::size_t bytes);
  OpenBlock* open_block(std::int64_t index);
  std::int64_t index_of(const json::object& event) const;
  void read_usage(const json::object& usage);
  void read_stop_reason(const json::object& delta);
  void read_transformations(const json::object& holder);

  ReplyLimits limits_;
  http::SseDecoder sse_;
  Model priced_as_;
  std::vector<std::string> tool_names_;

  std::map<std::int64_t, OpenBlock> open_;
  std::int64_t current_index_ = -1;     // of the block that was used last
  OpenBlock* current_block_ = nullptr;  // in open_, or null
  std::string unescaped_;               // the delta at hand, when it had escapes
  std::size_t message_bytes_ = 0;

  bool body_over_ = false;
  bool started_ = false;
  StopReason stop_reason_ = StopReason::kPending;
  std::string stop_error_;  // with stop reason kError
  json::array transformations_;
};

}  // namespace tau::ai
