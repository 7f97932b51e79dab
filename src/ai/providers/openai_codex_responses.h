// Wire API "openai-codex-responses" (AI-188 to AI-194): the Responses API behind a ChatGPT subscription. The token is a
// JWT that names the account; bodies are compressed; the stream is that of openai_responses.h. tau uses server-sent
// events (AI-191 leaves WebSockets to choice).
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "ai/context.h"
#include "ai/http/http_client.h"
#include "ai/model.h"
#include "ai/stream.h"

namespace tau::ai {

inline constexpr std::string_view kOpenAiCodexResponsesApi = "openai-codex-responses";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_openai_codex_responses(http::Client& client, Model model, Context context,
                                                                StreamOptions options, EventSink sink,
                                                                std::stop_token stop);

std::expected<json::object, std::string> encode_openai_codex_responses(const Model& model, const Context& context,
                                                                       const StreamOptions& options);

/// The account that a token was issued for; nothing when it is no such token. The signature is the server's business.
std::optional<std::string> codex_account_id(std::string_view token);

/// ".../codex/responses"; parts that the address already has are not doubled.
std::string codex_url(std::string_view base_url);

/// A usage limit as a sentence with plan and waiting time; else what the server says. `now` in Unix milliseconds.
std::string codex_error_text(int status, std::string_view reason, std::string_view body, std::int64_t now);

}  // namespace tau::ai
