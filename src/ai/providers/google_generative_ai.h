// Wire API "google-generative-ai" (AI-195 to AI-203): Gemini's. google_vertex.h speaks the same bodies at another
// address with other credentials.
//
// Encoder and decoder are pure: values in, values out.
#pragma once

#include <deque>
#include <expected>
#include <optional>
#include <set>
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

inline constexpr std::string_view kGoogleGenerativeAiApi = "google-generative-ai";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_google_generative_ai(http::Client& client, Model model, Context context,
                                                              StreamOptions options, EventSink sink,
                                                              std::stop_token stop);

/// The two services differ in which models they know (AI-211).
enum class GoogleService { kGenerativeAi, kVertex };

/// The body (AI-196). Every string in it is valid UTF-8 (FF-4). An error when a tool cannot be sent (AI-80), or when a
/// thinking level is mapped to a word that the service does not know (AI-199).
std::expected<json::object, std::string> encode_google(const Model& model, const Context& context,
                                                       const StreamOptions& options,
                                                       GoogleService service = GoogleService::kGenerativeAi);

/// The whole body as compact JSON; a text is dressed as the service's own error (AI-92).
std::string google_error_text(int status, std::string_view reason, std::string_view body);

class GoogleDecoder final : public StreamDecoder {
 public:
  explicit GoogleDecoder(const Model& model, GoogleService service = GoogleService::kGenerativeAi);

  void push(std::string_view bytes) override;
  void end_of_body() override;
  std::optional<StreamEvent> next() override;

 private:
  void keep_bare_json(std::string_view& bytes);
  bool has_bare_error() const;
  void handle_chunk(std::string_view data);
  void handle_part(const json::object& part);
  void handle_text(const json::object& part, std::string_view text);
  void handle_call(const json::object& part, const json::object& call);
  void finish_chunk(const json::object& chunk);
  void read_usage(const json::object& usage);
  void close_block();
  void end_of_stream();
  void fail_with_error(const json::value& chunk);
  bool count_bytes(std::size_t bytes);
  void fail(std::string_view text);

  Model model_;
  GoogleService service_;
  http::SseDecoder sse_;

  // A chunk is taken apart step by step: a part may write to the block that the one before has opened.
  std::optional<json::value> chunk_;
  std::size_t next_part_ = 0;

  std::optional<std::size_t> open_block_;
  std::set<std::string> call_ids_;
  int made_ids_ = 0;
  std::string bare_;  // JSON that came without the dress of an event (AI-203)
  bool at_line_start_ = true;
  std::optional<std::string> finish_;
  std::size_t message_bytes_ = 0;
  bool body_over_ = false;
};

}  // namespace tau::ai
