#include "ai/providers/mistral_conversations.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <gtest/gtest.h>

#include "ai/providers/provider_fixtures.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

TAU_PROVIDER_FIXTURES(MistralConversations, "mistral-conversations", {});

Model mistral() {
  Model m;
  m.id = "mistral-medium-3.5";
  m.api = "mistral-conversations";
  m.provider = "mistral";
  m.base_url = "http://127.0.0.1:1";
  m.reasoning = true;
  m.max_tokens = 1000;
  return m;
}

test::Decoded decode(std::string_view body, std::size_t piece = 1 << 20) {
  MistralDecoder decoder(mistral());
  return test::decode(decoder, test::pieces_of(body, piece));
}

TEST(MistralCallIds, AreNineLettersOrDigits) {  // AI-213
  for (const char* id : {"", "a", "toolu_01Abc", "call_x|fc_y", "|||", "abcDEF1234567890"}) {
    const std::string made = mistral_call_id(id);
    EXPECT_EQ(made.size(), 9U) << id;
    EXPECT_TRUE(std::all_of(made.begin(), made.end(), [](unsigned char c) { return std::isalnum(c) != 0; })) << made;
    EXPECT_NE(mistral_call_id(id, 1), made);
  }
  EXPECT_EQ(mistral_call_id("abc-DEF_123"), "abcDEF123");
}

TEST(MistralDecoder, ACallWithoutAUsableIdGetsOne) {  // FF-8
  const test::Decoded decoded = decode(
      "data: {\"id\":\"x\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"null\",\"index\":0,\"function\":{"
      "\"name\":\"read\",\"arguments\":\"{}\"}},{\"index\":1,\"function\":{\"name\":\"ls\",\"arguments\":null}}]},"
      "\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
  const auto calls = tool_calls_of(decoded.message);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0]->id.size(), 9U);
  EXPECT_NE(calls[0]->id, calls[1]->id);
  EXPECT_EQ(json::to_text(calls[1]->arguments), "{}");
}

TEST(MistralDecoder, AnErrorInsideTheStreamIsReported) {  // AI-214b
  const test::Decoded decoded = decode("data: {\"object\":\"error\",\"message\":\"overloaded\"}\n\n");
  EXPECT_EQ(decoded.message.error_message, "Invalid Mistral streaming event: overloaded");
}

TEST(MistralDecoder, AnySplitOfTheBytesGivesTheSameEvents) {  // FF-53
  for (const char* name : {"tool-calls", "thinking", "plain-text"}) {
    const std::string body = test::case_response("mistral-conversations", name);
    const test::Decoded whole = decode(body);
    EXPECT_EQ(decode(body, 1).events, whole.events) << name;
    for (std::size_t at = 0; at <= body.size(); ++at) {
      MistralDecoder decoder(mistral());
      const std::string_view text = body;
      ASSERT_EQ(test::decode(decoder, {text.substr(0, at), text.substr(at)}).events, whole.events) << name << at;
      ASSERT_EQ(decode(text.substr(0, at)).terminal_events, 1);  // FF-46
    }
  }
}

TEST(MistralEncoder, IdsOfOneRequestDoNotCollide) {  // AI-213, FF-7
  Context context;
  AssistantMessage reply;
  reply.api = "anthropic-messages";
  reply.provider = "anthropic";
  reply.model = "claude";
  for (const char* id : {"abc-DEF_123", "abcDEF123", "abcDEF.123"}) {
    ToolCall call;
    call.id = id;
    call.name = "t";
    reply.content.emplace_back(call);
  }
  context.messages.push_back(make_message(Message(reply)));
  const auto body = encode_mistral(mistral(), context, {});
  ASSERT_TRUE(body);
  std::set<std::string> ids;
  for (const json::value& call : body->at("messages").at(0).at("tool_calls").as_array())
    ids.insert(json::string_or(call.get_object(), "id"));
  EXPECT_EQ(ids.size(), 3U);
}

}  // namespace
}  // namespace tau::ai
