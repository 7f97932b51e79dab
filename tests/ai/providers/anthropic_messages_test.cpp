#include "ai/providers/anthropic_messages.h"

#include "ai/providers/provider_fixtures.h"

namespace tau::ai {
namespace {

// FF-3 over AI-118: the configured id stays in `model`, the reported one goes to `responseModel`.
test::Difference keeps_configured_model(std::string configured) {
  return {"FF-3: the id that a reply names must not make the next request treat its signatures as foreign",
          [configured = std::move(configured)](test::Expectation& expected) {
            expected.message["responseModel"] = expected.message.at("model");
            expected.message["model"] = configured;
          }};
}

const test::Differences kDifferences{
    {"adaptive-thinking", keeps_configured_model("claude-opus-4-8")},
    {"alias-model-replay", keeps_configured_model("claude-sonnet-4-5")},
    {"no-eager-streaming", keeps_configured_model("kimi-k2")},
    {"server-fallback", keeps_configured_model("claude-fable-5")},
};

TAU_PROVIDER_FIXTURES(AnthropicMessages, "anthropic-messages", kDifferences);

}  // namespace
}  // namespace tau::ai
