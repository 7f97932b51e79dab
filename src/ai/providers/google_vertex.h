// Wire API "google-vertex" (AI-210, AI-211): Gemini as Google Cloud serves it. Bodies and stream are those of
// google_generative_ai.h; the address has project and location in it, and without a key an access token is fetched.
#pragma once

#include <expected>
#include <stop_token>
#include <string>
#include <string_view>

#include "ai/context.h"
#include "ai/http/http_client.h"
#include "ai/model.h"
#include "ai/stream.h"

namespace tau::ai {

inline constexpr std::string_view kGoogleVertexApi = "google-vertex";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_google_vertex(http::Client& client, Model model, Context context,
                                                       StreamOptions options, EventSink sink, std::stop_token stop);

/// Whether the options hold a key that can be sent, and not one of the words that stand for "use the login".
bool has_vertex_key(const StreamOptions& options);

/// The address for a call with a key or, without one, for project and location. An error names the variables that are
/// missing.
std::expected<std::string, std::string> vertex_url(const Model& model, const StreamOptions& options);

}  // namespace tau::ai
