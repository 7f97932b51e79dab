#include "ai/providers/openai_completions.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ai/providers/provider_fixtures.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

/// The messages of every request of a case.
json::array& messages_of(json::object& request) {
  return request.at("body").at("messages").as_array();
}

/// FF-15: servers that are not known to have the developer role get a system message.
void use_system_role(test::Expectation& expected) {
  for (json::object& request : expected.requests) {
    for (json::value& message : messages_of(request)) {
      if (json::string_or(message.get_object(), "role") == "developer") message.get_object()["role"] = "system";
    }
  }
}

bool is_blank_text(const json::value& part) {
  const json::value* text = json::find(part, "text");
  return text != nullptr && text->is_string() && text->get_string().empty();
}

/// FF-9, FF-10: no empty text reaches a server, neither as a message nor beside an image.
void leave_out_blank_text(test::Expectation& expected) {
  use_system_role(expected);
  json::array kept;
  for (json::value& message : messages_of(expected.requests.at(0))) {
    json::value& content = message.get_object()["content"];
    if (content.is_string() && content.get_string().empty()) continue;
    if (json::array* parts = content.if_array()) {
      parts->erase(std::remove_if(parts->begin(), parts->end(), is_blank_text), parts->end());
    }
    kept.push_back(std::move(message));
  }
  messages_of(expected.requests.at(0)) = std::move(kept);
}

/// AI-26: an abort ends the stream at once; the open block gets no end of its own.
void end_at_once(test::Expectation& expected) {
  use_system_role(expected);
  std::erase_if(expected.events,
                [](const json::value& event) { return json::string_or(event.get_object(), "type") == "text_end"; });
}

test::Differences differences() {
  test::Differences all;
  for (const std::string& name : test::provider_cases("openai-completions")) {
    const json::object source = test::read_case("openai-completions", name);
    if (json::string_or(*json::find_object(source, "model"), "provider") == "localllm") {
      all[name] = {"FF-15: a server other than the vendor's own gets the role system", use_system_role};
    }
  }
  all["abort"] = {"AI-26: an abort does not wait for the end of the block", end_at_once};
  all["multi-turn-replay"] = {"FF-10: no empty text part beside an image", leave_out_blank_text};
  all["orphans-and-skips"] = {"FF-9: an empty user message is not sent", leave_out_blank_text};
  return all;
}

TAU_PROVIDER_FIXTURES(OpenAiCompletions, "openai-completions", differences());

Model local_model() {
  Model m;
  m.id = "m1";
  m.api = "openai-completions";
  m.provider = "local";
  m.base_url = "http://127.0.0.1:1/v1";
  m.reasoning = true;
  m.max_tokens = 1000;
  return m;
}

test::Decoded decode(std::string_view body, std::size_t piece = 1 << 20) {
  OpenAiCompletionsDecoder decoder(local_model());
  return test::decode(decoder, test::pieces_of(body, piece));
}

constexpr std::string_view kEnd =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

TEST(OpenAiCompletionsDecoder, ACallWithoutAnIdGetsOne) {  // FF-8
  const test::Decoded decoded = decode(
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"read\",\"arguments\":"
      "\"{\\\"path\\\":\\\"a.txt\\\"}\"}}]}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
  const auto calls = tool_calls_of(decoded.message);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_FALSE(calls[0]->id.empty());
  EXPECT_EQ(json::to_text(calls[0]->arguments), R"({"path":"a.txt"})");
}

TEST(OpenAiCompletionsDecoder, IdAndNameMayComeInLaterDeltas) {  // FF-96
  const test::Decoded decoded = decode(
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"read\"}}]}}]}\n\n"
      "data: "
      "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c7\",\"function\":{\"arguments\":\"{}\"}}]}}]}"
      "\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n");
  ASSERT_EQ(tool_calls_of(decoded.message).size(), 1u);
  EXPECT_EQ(tool_calls_of(decoded.message)[0]->id, "c7");
}

TEST(OpenAiCompletionsDecoder, NullAndEmptyFieldsAreAbsent) {  // FF-51
  const test::Decoded decoded = decode(
      std::string("data: "
                  "{\"id\":null,\"model\":null,\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":null}}],"
                  "\"usage\":null}\n\n"
                  "data: {\"choices\":[]}\n\ndata: {\"choices\":null}\n\ndata: {\"choices\":[{\"delta\":null}]}\n\n"
                  "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n") +
      std::string(kEnd));
  EXPECT_EQ(text_of(decoded.message), "hi");
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kStop);
}

TEST(OpenAiCompletionsDecoder, UsageCountsNothingTwice) {  // FF-43
  const test::Decoded decoded = decode(
      std::string(kEnd.substr(0, kEnd.find("data: [DONE]"))) +
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":50,\"total_tokens\":999,"
      "\"completion_tokens_details\":{\"reasoning_tokens\":30},\"prompt_tokens_details\":{\"cached_tokens\":60}}}\n\n");
  EXPECT_EQ(decoded.message.usage.input, 40);
  EXPECT_EQ(decoded.message.usage.cache_read, 60);
  EXPECT_EQ(decoded.message.usage.output, 50);
  EXPECT_EQ(decoded.message.usage.total_tokens, 150);
}

TEST(OpenAiCompletionsDecoder, MalformedArgumentsAreMarkedAndNotRun) {  // FF-19
  const test::Decoded decoded = decode(
      "data: "
      "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"write\","
      "\"arguments\":"
      "\"{\\\"path\\\":\\\"a\\\" \\\"mode\\\":1}\"}}]}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n");
  ASSERT_EQ(tool_calls_of(decoded.message).size(), 1u);
  EXPECT_EQ(tool_calls_of(decoded.message)[0]->malformed_arguments, R"({"path":"a" "mode":1})");
}

TEST(OpenAiCompletionsDecoder, AnySplitOfTheBytesGivesTheSameEvents) {  // FF-53
  for (const char* name : {"parallel-tool-calls", "reasoning-details", "thinking-signature", "usage-cache"}) {
    const std::string body = test::case_response("openai-completions", name);
    const test::Decoded whole = decode(body);
    EXPECT_EQ(decode(body, 1).events, whole.events) << name;
    for (std::size_t at = 0; at <= body.size(); ++at) {
      OpenAiCompletionsDecoder decoder(local_model());
      const std::string_view text = body;
      const test::Decoded split = test::decode(decoder, {text.substr(0, at), text.substr(at)});
      ASSERT_EQ(split.events, whole.events) << name << " cut at " << at;
    }
  }
}

TEST(OpenAiCompletionsDecoder, AnyBeginningOfAStreamEndsInOneTerminalEvent) {  // FF-46
  for (const std::string& name : test::provider_cases("openai-completions")) {
    std::string body;
    try {
      body = test::case_response("openai-completions", name);
    } catch (const std::exception&) {
      continue;  // a case without a stream
    }
    for (std::size_t at = 0; at < body.size(); at += 7) {
      const test::Decoded decoded = decode(std::string_view(body).substr(0, at));
      ASSERT_EQ(decoded.terminal_events, 1) << name << " cut at " << at;
      ASSERT_NE(decoded.message.stop_reason, StopReason::kPending);
    }
  }
}

TEST(OpenAiCompletionsEncoder, LoneSurrogatesDoNotReachTheServer) {  // FF-4
  Context context;
  context.system_prompt = "s\xED\xA0\xBC";
  context.messages.push_back(make_message(Message(UserMessage{std::string("tag \xED\xA0\xBC end"), 1, {}})));
  const auto body = encode_openai_completions(local_model(), context, {});
  ASSERT_TRUE(body);
  EXPECT_EQ(json::to_text(*body).find("\\ud83c"), std::string::npos);
}

TEST(OpenAiCompletionsEncoder, TheDeveloperRoleIsForTheVendorOrOnRequest) {  // FF-15
  Context context;
  context.system_prompt = "s";
  Model model = local_model();
  const auto role = [&] {
    return json::string_or(encode_openai_completions(model, context, {})->at("messages").at(0).get_object(), "role");
  };
  EXPECT_EQ(role(), "system");
  model.compat["supportsDeveloperRole"] = true;
  EXPECT_EQ(role(), "developer");
  model = local_model();
  model.base_url = "https://api.openai.com/v1";
  EXPECT_EQ(role(), "developer");
}

}  // namespace
}  // namespace tau::ai
