#include "ai/providers/openai_responses.h"

#include <gtest/gtest.h>

#include "ai/providers/provider_fixtures.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

void use_system_role(test::Expectation& expected) {
  for (json::object& request : expected.requests) {
    for (json::value& item : request.at("body").at("input").as_array()) {
      if (json::string_or(item.get_object(), "role") == "developer" && item.get_object().contains("content"))
        item.get_object()["role"] = "system";
    }
  }
}

/// FF-9, FF-10: no empty text reaches the server, neither as a message nor beside an image.
void leave_out_blank_text(test::Expectation& expected) {
  json::array kept;
  json::array& input = expected.requests.at(0).at("body").at("input").as_array();
  for (json::value& item : input) {
    json::value* content = item.get_object().if_contains("content");
    if (content != nullptr && content->is_array() && content->get_array().size() == 1 &&
        json::find_string(content->get_array()[0].get_object(), "text") == "") {
      continue;
    }
    kept.push_back(std::move(item));
  }
  input = std::move(kept);
}

/// AI-31: the reference leaves scratch text in the message.
void without_scratch_text(test::Expectation& expected) {
  for (json::value& block : expected.message.at("content").as_array())
    block.as_object().erase("partialJson");
}

const test::Differences& differences() {
  static const test::Differences all{
      {"no-compat-custom", {"FF-15: an unknown server gets the role system", use_system_role}},
      {"orphans-and-skips", {"FF-9: an empty user message is not sent", leave_out_blank_text}},
      {"length-unfinished-tool", {"AI-31: no scratch text in the message", without_scratch_text}},
  };
  return all;
}

TAU_PROVIDER_FIXTURES(OpenAiResponses, "openai-responses", differences());

Model some_model() {
  Model m;
  m.id = "gpt-5.5";
  m.api = "openai-responses";
  m.provider = "openai";
  m.base_url = "http://127.0.0.1:1/v1";
  m.reasoning = true;
  m.max_tokens = 1000;
  return m;
}

test::Decoded decode(std::string_view body, std::size_t piece = 1 << 20, std::vector<Tool> tools = {}) {
  OpenAiResponsesDecoder decoder(some_model(), std::move(tools));
  return test::decode(decoder, test::pieces_of(body, piece));
}

constexpr std::string_view kCompleted =
    "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\"}}\n\n";

TEST(OpenAiResponsesDecoder, AnItemThatWasNotAnnouncedIsWhole) {  // AI-170
  const test::Decoded decoded = decode(
      "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\","
      "\"content\":[{\"type\":\"output_text\",\"text\":\"hello\"}]}}\n\n"
      "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":"
      "\"fc_1\",\"call_id\":\"c\",\"name\":\"read\",\"arguments\":\"{\\\"path\\\":\\\"a\\\"}\"}}\n\n" +
      std::string(kCompleted));
  EXPECT_EQ(text_of(decoded.message), "hello");
  ASSERT_EQ(tool_calls_of(decoded.message).size(), 1U);
  EXPECT_EQ(json::to_text(tool_calls_of(decoded.message)[0]->arguments), R"({"path":"a"})");
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kToolUse);
  EXPECT_EQ(decoded.events.at(2), R"({"type":"text_delta","contentIndex":0,"delta":"hello"})");
}

TEST(OpenAiResponsesDecoder, TheWholeArgumentsAddWhatIsMissing) {  // AI-170
  const test::Decoded decoded = decode(
      "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":"
      "\"fc_1\",\"call_id\":\"c\",\"name\":\"read\"}}\n\n"
      "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{\\\"a\\\"\"}\n\n"
      "data: {\"type\":\"response.function_call_arguments.done\",\"output_index\":0,\"arguments\":\"{\\\"a\\\":1}\"}"
      "\n\n"
      "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":"
      "\"fc_1\",\"call_id\":\"c\",\"name\":\"read\"}}\n\n" +
      std::string(kCompleted));
  EXPECT_EQ(decoded.events.at(3), R"({"type":"toolcall_delta","contentIndex":0,"delta":":1}"})");
  EXPECT_EQ(json::to_text(tool_calls_of(decoded.message).at(0)->arguments), R"({"a":1})");
}

TEST(OpenAiResponsesDecoder, GrammarTextThatIsTakenBackFails) {  // AI-85
  const test::Decoded decoded = decode(
      "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"custom_tool_call\","
      "\"id\":\"ctc_1\",\"call_id\":\"c\",\"name\":\"patch\"}}\n\n"
      "data: {\"type\":\"response.custom_tool_call_input.delta\",\"output_index\":0,\"delta\":\"abc\"}\n\n"
      "data: {\"type\":\"response.custom_tool_call_input.done\",\"output_index\":0,\"input\":\"xyz\"}\n\n" +
      std::string(kCompleted));
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kError);
  EXPECT_EQ(decoded.terminal_events, 1);
}

TEST(OpenAiResponsesDecoder, UnknownEventsAndItemsAreIgnored) {
  const test::Decoded decoded = decode(
      "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"web_search_call\"}}\n\n"
      "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"web_search_call\"}}\n\n"
      "data: {\"type\":\"response.output_text.delta\",\"output_index\":7,\"delta\":\"nobody's\"}\n\n"
      "data: {\"type\":\"response.invented\"}\n\ndata: [1]\n\ndata: null\n\n" +
      std::string(kCompleted));
  EXPECT_TRUE(decoded.message.content.empty());
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kStop);
}

TEST(OpenAiResponsesDecoder, TiersAndServicesChangeThePrice) {  // AI-174
  Model model = some_model();
  model.id = "gpt-5";
  model.cost = {.input = 1000000, .output = 0, .cache_read = 0, .cache_write = 0};
  const auto price_of = [&](const std::string& tier, const std::string& asked, ResponsesService service) {
    OpenAiResponsesDecoder decoder(model, {}, service, asked);
    const std::string body = "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"," + tier +
                             "\"usage\":{\"input_tokens\":1}}}\n\n";
    return test::decode(decoder, {body}).message.usage.cost.total;
  };
  const auto tier = [](std::string_view name) { return "\"service_tier\":\"" + std::string(name) + "\","; };
  EXPECT_EQ(price_of(tier("flex"), "", ResponsesService::kOpenAi), 0.5);
  EXPECT_EQ(price_of(tier("priority"), "", ResponsesService::kOpenAi), 2);
  EXPECT_EQ(price_of("", "flex", ResponsesService::kOpenAi), 0.5);
  EXPECT_EQ(price_of(tier("default"), "flex", ResponsesService::kOpenAi), 1);
  EXPECT_EQ(price_of(tier("default"), "flex", ResponsesService::kCodex), 0.5);  // AI-194
}

TEST(OpenAiResponsesDecoder, AnySplitOfTheBytesGivesTheSameEvents) {  // FF-53
  for (const char* name : {"parallel-tool-calls", "thinking-signature", "single-tool-call", "encrypted-backfill"}) {
    const std::string body = test::case_response("openai-responses", name);
    const test::Decoded whole = decode(body);
    EXPECT_EQ(decode(body, 1).events, whole.events) << name;
    for (std::size_t at = 0; at <= body.size(); ++at) {
      OpenAiResponsesDecoder decoder(some_model());
      const std::string_view text = body;
      ASSERT_EQ(test::decode(decoder, {text.substr(0, at), text.substr(at)}).events, whole.events)
          << name << " cut at " << at;
    }
  }
}

TEST(OpenAiResponsesDecoder, AnyBeginningOfAStreamEndsInOneTerminalEvent) {  // FF-46
  for (const std::string& name : test::provider_cases("openai-responses")) {
    const std::string body = test::case_response("openai-responses", name);
    for (std::size_t at = 0; at < body.size(); at += 7) {
      const test::Decoded decoded = decode(std::string_view(body).substr(0, at));
      ASSERT_EQ(decoded.terminal_events, 1) << name << " cut at " << at;
      ASSERT_NE(decoded.message.stop_reason, StopReason::kPending);
    }
  }
}

TEST(OpenAiResponsesEncoder, LoneSurrogatesDoNotReachTheServer) {  // FF-4
  Context context;
  context.system_prompt = "s\xED\xA0\xBC";
  context.messages.push_back(make_message(Message(UserMessage{std::string("tag \xED\xA0\xBC end"), 1, {}})));
  const auto body = encode_openai_responses(some_model(), context, {});
  ASSERT_TRUE(body);
  EXPECT_EQ(json::to_text(*body).find("\\ud83c"), std::string::npos);
}

TEST(OpenAiResponsesEncoder, TheSmallestOutputLimitIsSixteen) {  // AI-161
  StreamOptions options;
  options.max_tokens = 3;
  Context context;
  context.messages.push_back(make_message(Message(UserMessage{std::string("hi"), 1, {}})));
  EXPECT_EQ(json::number_or(*encode_openai_responses(some_model(), context, options), "max_output_tokens"), 16);
}

TEST(OpenAiResponsesErrors, TextsOfBodiesOfAnyKind) {  // AI-92
  EXPECT_EQ(openai_responses_error_text("OpenAI", 400, R"({"error":{"message":"no"}})"),
            R"(OpenAI API error (400): {"message":"no"})");
  EXPECT_EQ(openai_responses_error_text("OpenAI", 502, "<h1>Bad</h1>"), "OpenAI API error (502): 502 <h1>Bad</h1>");
  EXPECT_EQ(openai_responses_error_text("Azure OpenAI", 500, ""),
            "Azure OpenAI API error (500): 500 status code (no body)");
}

}  // namespace
}  // namespace tau::ai
