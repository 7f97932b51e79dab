// One model call over HTTP: what every HTTP provider does around its encoder and its decoder.
//
// Retries happen here only while nothing of the reply has been seen (AI-91). A reply that breaks off in the middle is a
// message with stop reason kError; whether the turn is tried again is decided above, by its text (AI-220).
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "ai/http/http_client.h"
#include "ai/stream.h"
#include "ai/stream_decoder.h"

namespace tau::ai {

struct ProviderCall {
  http::Request request;  // timeouts and proxy variables are filled in from the options
  std::unique_ptr<StreamDecoder> decoder;
  /// The text of an HTTP error in this API's form (AI-92). `body` is cut to 64 KiB.
  std::function<std::string(int status, std::string_view reason, const http::HeaderList& headers,
                            std::string_view body)>
      error_text;
  /// What else the settled message shall say of an HTTP error (diagnostics); may be empty.
  std::function<void(AssistantMessage& message, int status, std::string_view reason, const http::HeaderList& headers,
                     std::string_view body)>
      describe_error;
  /// Called when the reply has begun, before its body; may be empty.
  std::function<void(StreamDecoder& decoder, const http::HeaderList& headers)> on_headers;
};

/// Sends the request, retries before the stream starts as AI-91 says, feeds the decoder, hands its events to the sink,
/// and returns the settled message. Failures of any kind end in a StreamError (AI-28); before the headers it is the
/// only event (AI-21). Keys never appear in its text (FF-108), nor do control characters (FF-107).
///
/// Texts (AI-94): "Request was aborted", "Request timed out: <what was awaited, and for how long>",
/// "Connection error: <what happened>"; the last two are retryable, "Cannot make the request: <why>" is not.
///
/// Throws only what the sink throws; the transfer is closed then. `client` must outlive the call.
asio::awaitable<AssistantMessage> run_provider_call(http::Client& client, ProviderCall call, Model model,
                                                    StreamOptions options, EventSink sink, std::stop_token stop);

/// Makes the request of one API; an error is the text of what cannot be sent.
using PrepareCall = std::expected<ProviderCall, std::string> (*)(const Model& model, const Context& context,
                                                                 const StreamOptions& options);

/// run_provider_call with what `prepare` makes; what cannot be sent, or throws, becomes an error event. The request is
/// made before this returns.
asio::awaitable<AssistantMessage> call_provider(http::Client& client, PrepareCall prepare, Model model, Context context,
                                                StreamOptions options, EventSink sink, std::stop_token stop);

// ---- pieces of requests ------------------------------------------------------------------------------------------

/// Both with one slash between them.
std::string join_url(std::string_view base, std::string_view path);
/// The headers that have a value (AI-48).
http::HeaderList present_headers(Headers headers);
/// Lets options.on_payload replace the body; what it returns is made fit for the wire (FF-4).
void replace_payload(json::object& body, const Model& model, const StreamOptions& options);

/// The stream of a call that cannot be made: one StreamError with an empty message (AI-33).
asio::awaitable<AssistantMessage> fail_call(Model model, std::string error_message, EventSink sink);

/// "tau/<version> (linux <kernel release>; x64)", sent as user-agent (AI-47).
std::string user_agent();

}  // namespace tau::ai
