#include "ai/providers/anthropic_messages.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ai/providers/api_registry.h"
#include "ai/providers/provider_fixtures.h"

#include "support/http_server.h"
#include "support/reply_stream.h"
#include "support/run.h"

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

class AnthropicMessagesCall : public ::testing::Test {
 protected:
  AssistantMessage call(const Model& model, const Context& context, const StreamOptions& options) {
    const EventSink sink = [this](const StreamEvent& event) -> std::optional<asio::awaitable<void>> {
      events_.push_back(json::to_text(to_json(event)));
      return std::nullopt;
    };
    return test::run(io_, make_stream_function(*client_)(model, context, options, sink, {}));
  }

  Model model(std::string api = "anthropic-messages") {
    Model m;
    m.id = "m1";
    m.api = std::move(api);
    m.provider = "relay";
    m.base_url = server_.url() + "/";
    m.max_tokens = 100;
    return m;
  }

  Context context() {
    Context c;
    c.messages = {make_message(UserMessage{"go", 0, {}})};
    return c;
  }

  test::HttpServer server_;
  boost::asio::io_context io_;
  std::unique_ptr<http::Client> client_ = http::make_client(io_.get_executor());
  std::vector<std::string> events_;
};

// AI-240, AI-33
TEST_F(AnthropicMessagesCall, OfAnUnknownApiEndsInOneErrorEvent) {
  const AssistantMessage message = call(model("telepathy"), context(), {});
  EXPECT_EQ(message.error_message, "Provider relay has no API implementation for \"telepathy\"");
  EXPECT_THAT(events_, ::testing::ElementsAre(R"({"type":"error","reason":"error"})"));
  EXPECT_EQ(server_.requests().size(), 0U);
}

// AI-16
TEST_F(AnthropicMessagesCall, SendsWhatThePayloadHookReturnsAndStreams) {
  server_.add(test::sse_answer(test::reply_stream("anthropic-messages", {.text = "Hello"})));
  StreamOptions options;
  options.api_key = "sk-test";
  options.on_payload = [](const json::object& body, const Model&) {
    json::object changed = body;
    changed["stream"] = false;
    changed["extra"] = 1;
    return std::optional(changed);
  };
  EXPECT_EQ(text_of(call(model(), context(), options)), "Hello");
  const json::object body = server_.requests().at(0).json();
  EXPECT_EQ(body.at("stream"), true);
  EXPECT_EQ(body.at("extra"), 1);
  EXPECT_EQ(server_.requests().at(0).path, "/v1/messages?beta=true");
}

// AI-80
TEST_F(AnthropicMessagesCall, ThatCannotBeEncodedEndsInOneErrorEvent) {
  StreamOptions options;
  options.api_key = "sk-test";
  Context c = context();
  c.tools = {{"x", "d", {}, json::object{{"type", "json_schema"}, {"strict", "require"}}}};
  EXPECT_THAT(*call(model(), c, options).error_message, ::testing::HasSubstr("requires JSON-schema"));
  EXPECT_EQ(events_.size(), 1U);
}

}  // namespace
}  // namespace tau::ai
