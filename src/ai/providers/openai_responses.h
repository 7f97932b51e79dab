// Wire API "openai-responses" (AI-160 to AI-178): OpenAI's newer protocol, in which a conversation is a list of items.
//
// Two relatives speak the same items and the same stream and differ in where and how they are asked: Azure
// (azure_openai_responses.h) and the ChatGPT backend (openai_codex_responses.h). What all three share is here and in
// responses_input.h.
//
// Encoder and decoder are pure: values in, values out. Nearly all frames of a long reply carry one piece of text; those
// are read by simdjson without making JSON values.
#pragma once

#include <expected>
#include <map>
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

inline constexpr std::string_view kOpenAiResponsesApi = "openai-responses";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_openai_responses(http::Client& client, Model model, Context context,
                                                          StreamOptions options, EventSink sink, std::stop_token stop);

/// The body, with members in the order of AI-161. Every string in it is valid UTF-8 (FF-4). An error when a tool or a
/// replayed call cannot be sent (AI-80, AI-84).
std::expected<json::object, std::string> encode_openai_responses(const Model& model, const Context& context,
                                                                 const StreamOptions& options);

/// All headers of the request; an error when there is no key (AI-18).
std::expected<http::HeaderList, std::string> openai_responses_headers(const Model& model, const Context& context,
                                                                      const StreamOptions& options);

/// "OpenAI API error (400): {…}" (AI-92). `service` is its beginning: "OpenAI", "Azure OpenAI".
std::string openai_responses_error_text(std::string_view service, int status, std::string_view body);

/// Who answers: they differ in a few words (AI-193, AI-194), and Azure's prices know no tiers (AI-185).
enum class ResponsesService { kOpenAi, kAzure, kCodex };

class OpenAiResponsesDecoder final : public StreamDecoder {
 public:
  /// `tools`: those of the request, for calls of grammar tools. `service_tier`: the one that was asked for; it decides
  /// the price when the reply names none (AI-174).
  OpenAiResponsesDecoder(const Model& model, std::vector<Tool> tools = {},
                         ResponsesService service = ResponsesService::kOpenAi, std::string service_tier = {});
  ~OpenAiResponsesDecoder() override;

  void push(std::string_view bytes) override;
  void end_of_body() override;
  std::optional<StreamEvent> next() override;

 private:
  class FastReader;

  /// An item of the output that became a block.
  struct Slot {
    std::size_t block = 0;
    std::optional<GrammarArguments> grammar;  // arguments that stream in as text
    bool open = true;
  };

  void handle_frame(std::string_view data);
  void handle_event(std::string_view type, const json::object& event);
  Slot* slot_of(const json::object& event);
  Slot* open_slot(std::int64_t index, const json::object& item);
  void add_text(const json::object& event);
  void add_arguments(const json::object& event);
  void arguments_done(const json::object& event);
  void custom_input(const json::object& event, bool whole);
  void item_done(const json::object& event);
  void finish_reasoning(Slot& slot, const json::object& item);
  void finish_text(Slot& slot, const json::object& item);
  void finish_call(Slot& slot, const json::object& item);
  void backfill_signatures(const json::object& response);
  void read_usage(const json::object& response);
  void finalize(const json::object& response);
  void response_failed(const json::object& response);
  void stream_error(const json::object& event);
  bool count_bytes(std::size_t bytes);
  void fail(std::string_view text);

  Model model_;
  std::vector<Tool> tools_;
  ResponsesService service_;
  std::string service_tier_;
  http::SseDecoder sse_;
  std::unique_ptr<FastReader> fast_;

  std::map<std::int64_t, Slot> slots_;  // by output_index (AI-170), or kNoIndex
  std::size_t message_bytes_ = 0;
  bool body_over_ = false;
};

}  // namespace tau::ai
