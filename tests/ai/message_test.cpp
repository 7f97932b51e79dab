#include "ai/message.h"

#include <string>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::ai {
namespace {

json::object object(std::string_view text) {
  return json::parse(text)->get_object();
}

/// The message read and written again.
std::string again(std::string_view text) {
  const auto message = message_from_json(object(text));
  return message ? json::to_text(to_json(*message)) : message.error().message;
}

constexpr std::string_view kUsage =
    R"("usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,)"
    R"("cost":{"input":0.0006000000000000001,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.003474},"cacheWrite1h":0,"reasoning":1,"later":true})";

// AI-5, AI-10, AI-11
TEST(Message, IsWrittenAsItWasRead) {
  for (
      const std::string& text : std::initializer_list<std::string>{
          R"({"role":"user","content":"hi","timestamp":1})",
          R"({"role":"user","content":[],"timestamp":1})",
          R"({"role":"user","content":[{"type":"text","text":"a \ud83d","new":1},{"type":"image","data":"QQ==","mimeType":"image/png","w":2},{"type":"video","src":"x"}],"timestamp":1,"future":{"a":[1]}})",
          R"({"role":"assistant","content":[{"type":"thinking","thinking":"","thinkingSignature":"","redacted":true,"x":1},{"type":"text","text":"t","textSignature":"s"},{"type":"toolCall","id":"c","name":"n","arguments":{"z":1,"a":2},"thoughtSignature":"ts","namespace":"ns","y":null},{"type":"new"}],"api":"a","provider":"p","model":"m",)" +
              std::string(kUsage) +
              R"(,"stopReason":"deferred","timestamp":5,"responseId":"r","responseModel":"rm","providerThinkingLevel":"high","rawStopReason":"raw","endTurn":false,"diagnostics":[{"type":"d"}],"deferred":{"id":"h"},"errorMessage":"e","other":"o"})",
          R"({"role":"toolResult","toolCallId":"c","toolName":"n","content":[{"type":"text","text":"r"}],"details":null,)" +
              std::string(kUsage) + R"(,"addedToolNames":["x"],"isError":true,"timestamp":7,"k":"v"})",
      }) {
    EXPECT_EQ(again(text), text);
  }
}

// AI-7
TEST(Message, MissingContentReadsAsNone) {
  for (const char* role : {"user", "assistant", "toolResult"}) {
    for (const char* content : {"", R"("content":null,)"}) {
      const auto message =
          message_from_json(object("{" + std::string(content) + "\"role\":\"" + role + "\",\"timestamp\":1}"));
      ASSERT_TRUE(message) << role;
      EXPECT_NE(json::to_text(to_json(*message)).find(R"("content":[])"), std::string::npos) << role;
    }
  }
}

TEST(Message, SurvivesWrongTypes) {
  const auto message = message_from_json(object(
      R"({"role":"assistant","content":[5,{"type":7},{"type":"toolCall","arguments":[1]},{"type":"text","text":3}],"usage":[],"timestamp":1e300,"stopReason":9,"model":null})"));
  ASSERT_TRUE(message);
  const auto& assistant = std::get<AssistantMessage>(*message);
  EXPECT_EQ(assistant.content.size(), 4U);
  EXPECT_EQ(assistant.timestamp, 0);
  EXPECT_EQ(assistant.stop_reason, StopReason::kStop);
}

TEST(Message, NeedsARoleOfThisLayer) {
  EXPECT_FALSE(message_from_json(object(R"({"role":"bashExecution"})")));
  EXPECT_FALSE(message_from_json({}));
}

// AI-12
TEST(StopReason, HasANameForEachValue) {
  for (const char* name : {"pending", "stop", "length", "toolUse", "error", "aborted", "deferred"})
    EXPECT_EQ(to_string(*stop_reason_from(name)), name);
  EXPECT_EQ(stop_reason_from("other"), std::nullopt);
}

// FF-19
TEST(Message, MalformedArgumentsAreNotStored) {
  ToolCall call;
  call.id = "c";
  call.malformed_arguments = "{broken";
  EXPECT_EQ(json::to_text(to_json(call)), R"({"type":"toolCall","id":"c","name":"","arguments":{}})");
}

// AI-49
TEST(Message, TextOfContent) {
  EXPECT_EQ(text_of(UserContent{"plain"}), "plain");
  const std::vector<UserBlock> blocks{TextContent{"a", {}, {}}, ImageContent{"QQ==", "image/png", {}},
                                      TextContent{"b", {}, {}}};
  EXPECT_EQ(text_of(blocks), "a\nb");
  EXPECT_TRUE(has_image(blocks));
  AssistantMessage message;
  message.content = {TextContent{"a\xED\xA0\xBD", {}, {}}, ToolCall{},
                     TextContent{"\xED\xB8\x80"
                                 "b",
                                 {},
                                 {}}};
  EXPECT_EQ(text_of(message),
            "a\xF0\x9F\x98\x80"
            "b");
  EXPECT_EQ(tool_calls_of(message).size(), 1U);
}

}  // namespace
}  // namespace tau::ai
