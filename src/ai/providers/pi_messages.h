// Wire API "pi-messages" (AI-228): a gateway that takes the neutral context as it is and answers with the stream events
// of this layer.
#pragma once

#include <expected>
#include <map>
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

inline constexpr std::string_view kPiMessagesApi = "pi-messages";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_pi_messages(http::Client& client, Model model, Context context,
                                                     StreamOptions options, EventSink sink, std::stop_token stop);

json::object encode_pi_messages(const Model& model, const Context& context, const StreamOptions& options);

class PiMessagesDecoder final : public StreamDecoder {
 public:
  explicit PiMessagesDecoder(const Model& model);

  void push(std::string_view bytes) override;
  void end_of_body() override;
  std::optional<StreamEvent> next() override;

 private:
  void handle_frame(std::string_view data);
  void handle_event(std::string_view type, const json::object& event);
  void block_start(std::string_view type, const json::object& event, std::int64_t number);
  void block_end(std::string_view type, const json::object& event, std::size_t block);
  void terminal(bool failed, const json::object& event);
  void fail(std::string_view text);

  Model model_;
  http::SseDecoder sse_;
  std::map<std::int64_t, std::size_t> blocks_;  // the gateway's contentIndex -> ours
  std::size_t message_bytes_ = 0;
  bool begun_ = false;
  bool body_over_ = false;
};

}  // namespace tau::ai
