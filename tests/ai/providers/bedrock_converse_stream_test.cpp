#include "ai/providers/bedrock_converse_stream.h"

#include <gtest/gtest.h>

#include "ai/providers/provider_fixtures.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

TAU_PROVIDER_FIXTURES(BedrockConverseStream, "bedrock-converse-stream", {});

Model claude(std::string base_url = "") {
  Model m;
  m.id = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
  m.name = "Claude Sonnet 4.5";
  m.api = "bedrock-converse-stream";
  m.provider = "amazon-bedrock";
  m.base_url = std::move(base_url);
  m.reasoning = true;
  m.max_tokens = 64000;
  return m;
}

Environment only(std::map<std::string, std::string> variables) {
  return layered(std::move(variables), [](std::string_view) { return std::nullopt; });
}

TEST(BedrockEndpoint, RegionsAndHosts) {  // AI-223
  const auto url = [](const Model& model, std::map<std::string, std::string> variables) {
    const BedrockEndpoint endpoint = bedrock_endpoint(model, only(std::move(variables)));
    return endpoint.region + " " + endpoint.base_url;
  };
  const std::string standard = "https://bedrock-runtime.us-west-2.amazonaws.com";
  EXPECT_EQ(url(claude(), {}), "us-east-1 https://bedrock-runtime.us-east-1.amazonaws.com");
  EXPECT_EQ(url(claude(standard), {}), "us-west-2 " + standard);
  EXPECT_EQ(url(claude(standard), {{"AWS_REGION", "eu-west-1"}}),
            "eu-west-1 https://bedrock-runtime.eu-west-1.amazonaws.com");
  EXPECT_EQ(url(claude("https://vpc.example"), {{"AWS_DEFAULT_REGION", "eu-west-1"}}), "eu-west-1 https://vpc.example");
  EXPECT_EQ(url(claude(), {{"AWS_REGION", "cn-north-1"}}),
            "cn-north-1 https://bedrock-runtime.cn-north-1.amazonaws.com.cn");
  Model profile = claude();
  profile.id = "arn:aws:bedrock:ap-south-1:123:application-inference-profile/x";
  EXPECT_EQ(url(profile, {{"AWS_REGION", "eu-west-1"}}), "ap-south-1 https://bedrock-runtime.ap-south-1.amazonaws.com");
}

TEST(BedrockErrors, NamesBecomeWords) {  // AI-227
  EXPECT_EQ(bedrock_error_code("throttlingException"), "ThrottlingException");
  EXPECT_EQ(bedrock_error_code("ValidationException:http://internal.amazon.com/x"), "ValidationException");
  EXPECT_EQ(bedrock_error_text("ThrottlingException", "slow down", 429, ""), "Throttling error: slow down");
  EXPECT_EQ(bedrock_error_text("AccessDeniedException", "no", 403, ""), "AccessDeniedException: no");
  EXPECT_EQ(bedrock_error_text("", "", 502, "<h1>Bad</h1>"), "502: <h1>Bad</h1>");
}

TEST(BedrockEncoder, MessagesOfOneSideAreOneTurn) {
  Context context;
  AssistantMessage reply;
  reply.api = "bedrock-converse-stream";
  reply.provider = "amazon-bedrock";
  reply.model = claude().id;
  ToolCall call;
  call.id = "t1";
  call.name = "read";
  reply.content.emplace_back(call);
  ToolResultMessage result;
  result.tool_call_id = "t1";
  result.tool_name = "read";
  context.messages = {make_message(Message(UserMessage{std::string("a"), 1, {}})), make_message(Message(reply)),
                      make_message(Message(result)), make_message(Message(UserMessage{std::string("b"), 1, {}}))};
  const auto body = encode_bedrock(claude(), context, {}, "eu-west-1");
  ASSERT_TRUE(body) << body.error();
  const json::array& messages = body->at("messages").as_array();
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[2].at("content").as_array().size(), 3U);  // result, text, cache point
}

TEST(BedrockEncoder, TheGovernmentsRegionsShowNoThoughts) {  // AI-225
  StreamOptions options;
  options.reasoning = ThinkingLevel::kHigh;
  const auto thinking = [&](std::string_view region) {
    return encode_bedrock(claude(), {}, options, region)->at("additionalModelRequestFields").at("thinking").as_object();
  };
  EXPECT_TRUE(thinking("eu-west-1").contains("display"));
  EXPECT_FALSE(thinking("us-gov-west-1").contains("display"));
}

TEST(BedrockDecoder, AnyBeginningOfAStreamEndsInOneTerminalEvent) {  // FF-46
  for (const char* name : {"thinking-tools", "redacted", "mid-stream-exception"}) {
    const std::string body = test::case_response("bedrock-converse-stream", name);
    for (std::size_t at = 0; at <= body.size(); ++at) {
      BedrockDecoder decoder(claude());
      const test::Decoded decoded = test::decode(decoder, {std::string_view(body).substr(0, at)});
      ASSERT_EQ(decoded.terminal_events, 1) << name << " cut at " << at;
      if (decoded.message.stop_reason != StopReason::kError) {
        ASSERT_TRUE(decoded.message.raw_stop_reason) << name << " cut at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace tau::ai
