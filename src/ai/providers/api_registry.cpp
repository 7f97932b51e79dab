#include "ai/providers/api_registry.h"

#include <utility>

#include <fmt/format.h>

#include "ai/provider_call.h"
#include "ai/providers/anthropic_messages.h"
#include "ai/providers/azure_openai_responses.h"
#include "ai/providers/bedrock_converse_stream.h"
#include "ai/providers/google_generative_ai.h"
#include "ai/providers/google_vertex.h"
#include "ai/providers/mistral_conversations.h"
#include "ai/providers/openai_codex_responses.h"
#include "ai/providers/openai_completions.h"
#include "ai/providers/openai_responses.h"
#include "ai/providers/pi_messages.h"

namespace tau::ai {

namespace {

struct ApiEntry {
  std::string_view api;
  ApiFunction call;
};

constexpr ApiEntry kApis[] = {
    {kAnthropicMessagesApi, stream_anthropic_messages},
    {kOpenAiCompletionsApi, stream_openai_completions},
    {kOpenAiResponsesApi, stream_openai_responses},
    {kAzureOpenAiResponsesApi, stream_azure_openai_responses},
    {kOpenAiCodexResponsesApi, stream_openai_codex_responses},
    {kGoogleGenerativeAiApi, stream_google_generative_ai},
    {kGoogleVertexApi, stream_google_vertex},
    {kMistralConversationsApi, stream_mistral_conversations},
    {kBedrockConverseStreamApi, stream_bedrock},
    {kPiMessagesApi, stream_pi_messages},
};

}  // namespace

ApiFunction find_api(std::string_view api) {
  for (const ApiEntry& entry : kApis) {
    if (entry.api == api) return entry.call;
  }
  return nullptr;
}

StreamFunction make_stream_function(http::Client& client) {
  return [&client](Model model, Context context, StreamOptions options, EventSink sink, std::stop_token stop) {
    const ApiFunction call = find_api(model.api);
    if (call == nullptr) {
      std::string text = fmt::format("Provider {} has no API implementation for \"{}\"", model.provider, model.api);
      return fail_call(std::move(model), std::move(text), std::move(sink));
    }
    return call(client, std::move(model), std::move(context), std::move(options), std::move(sink), std::move(stop));
  };
}

}  // namespace tau::ai
