// Wire API "azure-openai-responses" (AI-184, AI-185): the Responses API as Azure serves it. Addresses and model names
// are the customer's own, so they come from the environment; items and stream are those of openai_responses.h.
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

inline constexpr std::string_view kAzureOpenAiResponsesApi = "azure-openai-responses";

/// One call. Never throws; failures are error events.
asio::awaitable<AssistantMessage> stream_azure_openai_responses(http::Client& client, Model model, Context context,
                                                                StreamOptions options, EventSink sink,
                                                                std::stop_token stop);

std::expected<json::object, std::string> encode_azure_openai_responses(const Model& model, const Context& context,
                                                                       const StreamOptions& options);

/// Where to send the request: AZURE_OPENAI_BASE_URL, else AZURE_OPENAI_RESOURCE_NAME, else the model's own address,
/// with AZURE_OPENAI_API_VERSION. An error when there is none.
std::expected<std::string, std::string> azure_openai_url(const Model& model, const StreamOptions& options);

/// The deployment that serves the model: its entry in AZURE_OPENAI_DEPLOYMENT_NAME_MAP ("id=name,id2=name2"), else the
/// model's id.
std::string azure_openai_deployment(const Model& model, const StreamOptions& options);

}  // namespace tau::ai
