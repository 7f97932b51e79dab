#include "ai/providers/openai_responses.h"

#include <random>

#include <gtest/gtest.h>

#include "ai/error_classification.h"
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

TEST(OpenAiResponsesDecoder, AzuresPricesKnowNoTiers) {  // AI-185
  Model model = some_model();
  model.cost = {.input = 1000000, .output = 0, .cache_read = 0, .cache_write = 0};
  OpenAiResponsesDecoder decoder(model, {}, ResponsesService::kAzure);
  const test::Decoded decoded = test::decode(
      decoder, {"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"service_tier\":"
                "\"priority\",\"usage\":{\"input_tokens\":1}}}\n\n"});
  EXPECT_EQ(decoded.message.usage.cost.total, 1);
}

TEST(OpenAiResponsesDecoder, CachedTokensAndTiersArePricedExactly) {  // AI-60, AI-174
  Model model = some_model();                                         // gpt-5.5: priority costs 2.5 times as much
  model.cost = {.input = 1.25, .output = 10, .cache_read = 0.125, .cache_write = 2};
  OpenAiResponsesDecoder decoder(model);
  const AssistantMessage message =
      test::decode(decoder, {"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\","
                             "\"service_tier\":\"priority\",\"usage\":{\"input_tokens\":1000,\"input_tokens_details\":"
                             "{\"cached_tokens\":600,\"cache_write_tokens\":100},\"output_tokens\":50,"
                             "\"output_tokens_details\":{\"reasoning_tokens\":20},\"total_tokens\":1050}}}\n\n"})
          .message;
  EXPECT_EQ(message.usage.input, 300);
  EXPECT_EQ(message.usage.cache_read, 600);
  EXPECT_EQ(message.usage.cache_write, 100);
  EXPECT_EQ(message.usage.output, 50);
  EXPECT_EQ(message.usage.reasoning, 20);
  EXPECT_EQ(message.usage.total_tokens, 1050);
  EXPECT_EQ(message.usage.cost.input, 1.25 / 1000000 * 300 * 2.5);
  EXPECT_EQ(message.usage.cost.cache_read, 0.125 / 1000000 * 600 * 2.5);
  EXPECT_EQ(message.usage.cost.output, 10.0 / 1000000 * 50 * 2.5);
  EXPECT_DOUBLE_EQ(message.usage.cost.cache_write, 2.0 * 100 / 1000000 * 2.5);
}

TEST(OpenAiResponsesDecoder, AnItemThatEndsWithoutItsTextKeepsWhatWasStreamed) {  // AI-170, FF-51
  for (const char* absent : {"", ",\"content\":[]", ",\"content\":null,\"summary\":null"}) {
    const test::Decoded decoded = decode(
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"reasoning\"}}\n\n"
        "data: {\"type\":\"response.reasoning_text.delta\",\"output_index\":0,\"delta\":\"think\"}\n\n"
        "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\"" +
        std::string(absent) +
        "}}\n\n"
        "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"message\"}}\n\n"
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"delta\":\"Hello\"}\n\n"
        "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"message\"" +
        std::string(absent) + "}}\n\n" + std::string(kCompleted));
    ASSERT_EQ(decoded.message.content.size(), 2U);
    EXPECT_EQ(std::get<ThinkingContent>(decoded.message.content[0]).thinking, "think") << absent;
    EXPECT_EQ(text_of(decoded.message), "Hello") << absent;
  }
}

TEST(OpenAiResponsesDecoder, ItemsWithoutNumbersFollowOneAnother) {  // FF-51
  const auto item = [](std::string_view text) {
    return R"(data: {"type":"response.output_item.added","item":{"type":"message"}})"
           "\n\n"
           R"(data: {"type":"response.output_text.delta","delta":")" +
           std::string(text) +
           "\"}\n\n"
           R"(data: {"type":"response.output_item.done","item":{"type":"message"}})"
           "\n\n";
  };
  const std::string unannounced =
      R"(data: {"type":"response.output_item.done","item":{"type":"function_call","call_id":"c","name":"read"}})"
      "\n\n";
  const test::Decoded decoded = decode(item("one") + item("two") + unannounced + std::string(kCompleted));
  ASSERT_EQ(decoded.message.content.size(), 3U);
  EXPECT_EQ(std::get<TextContent>(decoded.message.content[0]).text, "one");
  EXPECT_EQ(std::get<TextContent>(decoded.message.content[1]).text, "two");
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kToolUse);
}

TEST(OpenAiResponsesDecoder, AnErrorIsToldInEveryFormItComesIn) {  // AI-90, AI-170, AI-193
  const auto error_of = [](const std::string& event, ResponsesService service = ResponsesService::kOpenAi) {
    OpenAiResponsesDecoder decoder(some_model(), {}, service);
    const std::string body = "data: " + event + "\n\n";
    const test::Decoded decoded = test::decode(decoder, {body});
    EXPECT_EQ(decoded.message.stop_reason, StopReason::kError) << event;
    EXPECT_EQ(decoded.terminal_events, 1) << event;
    return decoded.message.error_message.value_or("");
  };
  const std::string inner = R"({"type":"error","error":{"type":"server_error","code":null,"message":"Sorry."}})";
  EXPECT_EQ(error_of(R"({"type":"error","code":"c","message":"m"})"), "Error Code c: m");
  EXPECT_EQ(error_of(inner), "Error Code server_error: Sorry.");
  EXPECT_EQ(error_of(R"({"error":{"message":"gateway"}})"), "gateway");
  EXPECT_EQ(error_of(R"({"type":"error","error":"busy"})"), "busy");
  EXPECT_EQ(error_of(R"({"type":"error"})"), "Error Code unknown: no message");
  EXPECT_EQ(error_of(inner, ResponsesService::kCodex), "Codex error: Sorry.");
  EXPECT_EQ(error_of(R"({"type":"error","code":"c"})", ResponsesService::kCodex), "Codex error: c");

  AssistantMessage failed;  // FF-49: the code says that trying again may help
  failed.stop_reason = StopReason::kError;
  failed.error_message = error_of(inner);
  EXPECT_TRUE(is_retryable(failed));
}

TEST(OpenAiResponsesDecoder, GarbageEndsInOneTerminalEvent) {  // AI-21
  std::mt19937 random(11);
  for (const std::string& name : test::provider_cases("openai-responses")) {
    const std::string body = test::case_response("openai-responses", name);
    for (int round = 0; round < 60 && !body.empty(); ++round) {
      std::string broken = body;
      for (int flips = 0; flips < 1 + round / 10; ++flips)
        broken[random() % broken.size()] = static_cast<char>(random() % 256);
      const test::Decoded decoded = decode(broken, 1 + random() % 64);
      ASSERT_EQ(decoded.terminal_events, 1) << name << " round " << round;
      ASSERT_NE(decoded.message.stop_reason, StopReason::kPending);
    }
  }
}

TEST(OpenAiResponsesDecoder, AllLineEndsGiveTheSameEvents) {  // FF-53
  const std::string body = test::case_response("openai-responses", "parallel-tool-calls");
  const auto with_ends = [&](std::string_view end) {
    std::string text;
    for (const char c : body) {
      if (c == '\n') {
        text += end;
      } else {
        text += c;
      }
    }
    return text;
  };
  const test::Decoded whole = decode(body);
  for (const char* end : {"\r\n", "\r"}) {
    const std::string text = with_ends(end);
    EXPECT_EQ(decode(text).events, whole.events);
    EXPECT_EQ(decode(text, 1).events, whole.events);
  }
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
