#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ai/error_classification.h"
#include "ai/provider_call.h"
#include "ai/providers/anthropic_messages.h"
#include "ai/providers/provider_fixtures.h"

namespace tau::ai {
namespace {

using test::Decoded;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Model relay_model() {
  Model model;
  model.id = "m1";
  model.api = kAnthropicMessagesApi;
  model.provider = "relay";
  return model;
}

std::string frame(std::string_view event, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", event, data);
}

std::string start_frame(std::string_view model = "m1") {
  return frame("message_start", fmt::format(R"({{"type":"message_start","message":{{"id":"msg_1","model":"{}",)"
                                            R"("usage":{{"input_tokens":3,"output_tokens":1}}}}}})",
                                            model));
}

std::string block_start(int index, std::string_view block) {
  return frame("content_block_start",
               fmt::format(R"({{"type":"content_block_start","index":{},"content_block":{}}})", index, block));
}

std::string block_delta(int index, std::string_view delta) {
  return frame("content_block_delta",
               fmt::format(R"({{"type":"content_block_delta","index":{},"delta":{}}})", index, delta));
}

std::string block_stop(int index) {
  return frame("content_block_stop", fmt::format(R"({{"type":"content_block_stop","index":{}}})", index));
}

std::string end_frames(std::string_view stop_reason = "end_turn") {
  return frame("message_delta", fmt::format(R"({{"type":"message_delta","delta":{{"stop_reason":"{}"}},)"
                                            R"("usage":{{"output_tokens":7}}}})",
                                            stop_reason)) +
         frame("message_stop", R"({"type":"message_stop"})");
}

Decoded decode(std::string_view body, const Model& model = relay_model(), ReplyLimits limits = {}) {
  AnthropicMessagesDecoder decoder(empty_reply(model), model, {}, limits);
  return test::decode(decoder, {body});
}

Decoded decode_pieces(const std::vector<std::string_view>& pieces) {
  AnthropicMessagesDecoder decoder(empty_reply(relay_model()), relay_model());
  return test::decode(decoder, pieces);
}

std::string delta_event(std::string_view kind, int index, std::string_view delta) {
  return json::to_text(
      json::object{{"type", fmt::format("{}_delta", kind)}, {"contentIndex", index}, {"delta", delta}});
}

const ToolCall& call_of(const Decoded& decoded, std::size_t index = 0) {
  return std::get<ToolCall>(decoded.message.content.at(index));
}

/// Everything that a reply can hold, with characters of all lengths.
std::string full_stream() {
  return start_frame() + frame("ping", R"({"type":"ping"})") +
         block_start(0, R"({"type":"thinking","thinking":"","signature":""})") +
         block_delta(0, R"({"type":"thinking_delta","thinking":"Zähle 𝄞 "})") +
         block_delta(0, R"({"type":"signature_delta","signature":"c2ln"})") + block_stop(0) +
         block_start(1, R"({"type":"text","text":"Hi "})") +
         block_delta(1, R"({"type":"text_delta","text":"😀 \ud83d\ude80 \"q\" \\ \n"})") +
         block_delta(1, R"({"type":"text_delta","text":"naïve – ok"})") + block_stop(1) +
         block_start(2, R"({"type":"tool_use","id":"toolu_1","name":"read","input":{}})") +
         block_delta(2, R"({"type":"input_json_delta","partial_json":"{\"path\":\"a\\u00e9"})") +
         block_delta(2, R"({"type":"input_json_delta","partial_json":"😀.txt\"}"})") + block_stop(2) +
         end_frames("tool_use");
}

// ---- any split of the bytes --------------------------------------------------------------------------------------

// FF-53, AI-115
TEST(AnthropicMessagesDecoder, GivesTheSameEventsForEverySplitIntoTwoPieces) {
  const std::string body = full_stream();
  const Decoded whole = decode(body);
  ASSERT_EQ(whole.message.stop_reason, StopReason::kToolUse);
  EXPECT_EQ(json::to_text(call_of(whole, 2).arguments), R"({"path":"aé😀.txt"})");
  EXPECT_EQ(std::get<TextContent>(whole.message.content[1]).text, "Hi 😀 🚀 \"q\" \\ \nnaïve – ok");
  for (std::size_t cut = 0; cut <= body.size(); ++cut) {
    const std::string_view text = body;
    const Decoded split = decode_pieces({text.substr(0, cut), text.substr(cut)});
    ASSERT_EQ(split.events, whole.events) << "cut at " << cut;
    ASSERT_EQ(test::timeless(split.message), test::timeless(whole.message)) << "cut at " << cut;
  }
}

// FF-53
TEST(AnthropicMessagesDecoder, GivesTheSameEventsForEveryLineEndAndForRandomCuts) {
  const std::string body = full_stream();
  const Decoded whole = decode(body);
  std::mt19937 random(20260101);
  for (const std::string_view line_end : {"\n", "\r\n", "\r"}) {
    std::string changed;
    for (const char c : body) {
      if (c == '\n') {
        changed += line_end;
      } else {
        changed += c;
      }
    }
    EXPECT_EQ(decode_pieces(test::pieces_of(changed, 1)).events, whole.events);
    for (int seed = 0; seed < 350; ++seed) {
      std::vector<std::string_view> pieces;
      for (std::size_t at = 0; at < changed.size();) {
        const std::size_t length = 1 + random() % 90;
        pieces.push_back(std::string_view(changed).substr(at, length));
        at += length;
      }
      ASSERT_EQ(decode_pieces(pieces).events, whole.events) << "line end of " << line_end.size() << ", seed " << seed;
    }
  }
}

// AI-21, FF-46
TEST(AnthropicMessagesDecoder, EndsAnyPrefixOfAnyRecordedStreamInExactlyOneTerminalEvent) {
  std::mt19937 random(7);
  std::size_t prefixes = 0;
  for (const std::string& name : test::provider_cases("anthropic-messages")) {
    const std::string body = test::case_response("anthropic-messages", name);
    for (int i = 0; i < 60; ++i, ++prefixes) {
      const std::size_t length = random() % (body.size() + 1);
      const Decoded decoded = decode(std::string_view(body).substr(0, length));
      ASSERT_EQ(decoded.terminal_events, 1) << name << ", " << length << " bytes";
      const std::string& last = decoded.events.back();
      ASSERT_TRUE(last.starts_with(R"({"type":"done")") || last.starts_with(R"({"type":"error")")) << last;
      ASSERT_NE(decoded.message.stop_reason, StopReason::kPending);
      // Only a stream that reached its end may count as a reply.
      if (length <= body.find_last_not_of("\r\n") + 1) {
        ASSERT_EQ(decoded.message.stop_reason, StopReason::kError) << name << ", " << length << " bytes";
      }
    }
  }
  EXPECT_GT(prefixes, 1500U);
}

TEST(AnthropicMessagesDecoder, SurvivesRandomDamage) {
  const std::string body = full_stream();
  std::mt19937 random(99);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = body;
    for (int i = 0; i < 4; ++i)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    ASSERT_EQ(decode(damaged).terminal_events, 1);
  }
}

// ---- the two readers of a delta ----------------------------------------------------------------------------------

// The scanner and json::parse must agree; a member that no server sends first sends the frame to json::parse.
TEST(AnthropicMessagesDecoder, ReadsADeltaTheSameWithTheScannerAndWithTheParser) {
  constexpr std::string_view kLiterals[] = {R"("")",
                                            R"("plain")",
                                            R"("Zähle 𝄞 😀")",
                                            R"("\"\\\/\b\f\n\r\t")",
                                            R"("\u0041\u00e9\u20AC")",
                                            R"("\ud83d\ude80")",
                                            R"("\ud83d")",
                                            R"("a\ude80b")",
                                            R"("\ud83dx\ud83d\ude80")",
                                            R"("\u0000")",
                                            "\"\xFF bad \xC3\"",
                                            "\"\xED\xA0\xBD\"",
                                            "\"raw\ttab\"",
                                            R"("wrong \q escape")"};
  for (const std::string_view literal : kLiterals) {
    const std::string open = start_frame() + block_start(0, R"({"type":"text","text":""})");
    const std::string scanned =
        open +
        frame("content_block_delta",
              fmt::format(R"({{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{}}}}})",
                          literal));
    const std::string parsed =
        open +
        frame("content_block_delta",
              fmt::format(R"({{"index":0,"type":"content_block_delta","delta":{{"text":{},"type":"text_delta"}}}})",
                          literal));
    const std::string spaced =
        open +
        frame(
            "content_block_delta",
            fmt::format(
                R"({{"type": "content_block_delta", "index": 0, "delta": {{"type": "text_delta", "text": {}}}   }}  )",
                literal));
    const Decoded one = decode(scanned + end_frames());
    EXPECT_EQ(one.message.stop_reason, StopReason::kStop) << literal;
    EXPECT_EQ(one.events.size(), 4U) << literal;
    EXPECT_EQ(one.events, decode(parsed + end_frames()).events) << literal;
    EXPECT_EQ(one.events, decode(spaced + end_frames()).events) << literal;
  }
}

// AI-9: halves of a character in two deltas are one character in the message.
TEST(AnthropicMessagesDecoder, JoinsASurrogatePairThatTwoDeltasShare) {
  const Decoded decoded = decode(start_frame() + block_start(0, R"({"type":"text","text":""})") +
                                 block_delta(0, R"({"type":"text_delta","text":"\ud83d"})") +
                                 block_delta(0, R"({"type":"text_delta","text":"\ude80"})") + end_frames());
  EXPECT_EQ(text_of(decoded.message), "🚀");
}

TEST(AnthropicMessagesDecoder, NeedsNoEventLines) {
  std::string body;
  for (const std::string& data :
       {std::string(R"({"type":"message_start","message":{"id":"x","model":"m1"}})"),
        std::string(R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"),
        std::string(R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}})"),
        std::string(R"({"type":"message_delta","delta":{"stop_reason":"end_turn"}})"),
        std::string(R"({"type":"message_stop"})")})
    body += "data: " + data + "\n\n";
  const Decoded decoded = decode(body);
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kStop);
  EXPECT_EQ(text_of(decoded.message), "ok");
}

// AI-115
TEST(AnthropicMessagesDecoder, SaysWhichEventCouldNotBeParsed) {
  const Decoded decoded = decode(start_frame() + frame("content_block_start", R"({"type":)"));
  EXPECT_THAT(*decoded.message.error_message, StartsWith("Could not parse Anthropic SSE event content_block_start: "));
  EXPECT_THAT(*decoded.message.error_message, HasSubstr(R"(data={"type":)"));
}

// ---- what compatible servers send --------------------------------------------------------------------------------

// FF-48
TEST(AnthropicMessagesDecoder, KeepsTextThinkingAndSignatureOfTheBlockStart) {
  const Decoded decoded =
      decode(start_frame() + block_start(0, R"({"type":"thinking","thinking":"So ","signature":"c2"})") +
             block_delta(0, R"({"type":"thinking_delta","thinking":"be it"})") +
             block_delta(0, R"({"type":"signature_delta","signature":"ln"})") + block_stop(0) +
             block_start(1, R"({"type":"text","text":"Hi "})") +
             block_delta(1, R"({"type":"text_delta","text":"you"})") + block_stop(1) + end_frames());
  EXPECT_THAT(decoded.events,
              ElementsAre(R"({"type":"start"})", R"({"type":"thinking_start","contentIndex":0})",
                          delta_event("thinking", 0, "So "), delta_event("thinking", 0, "be it"),
                          R"({"type":"thinking_end","contentIndex":0,"content":"So be it"})",
                          R"({"type":"text_start","contentIndex":1})", delta_event("text", 1, "Hi "),
                          delta_event("text", 1, "you"), R"({"type":"text_end","contentIndex":1,"content":"Hi you"})",
                          R"({"type":"done","reason":"stop"})"));
  EXPECT_EQ(std::get<ThinkingContent>(decoded.message.content[0]).thinking_signature, "c2ln");
}

// FF-48 over AI-117
TEST(AnthropicMessagesDecoder, KeepsInputOfTheBlockStartUnlessDeltasFollow) {
  const std::string begin =
      start_frame() + block_start(0, R"({"type":"tool_use","id":"t","name":"read","input":{"path":"a"}})");
  const Decoded alone = decode(begin + block_stop(0) + end_frames("tool_use"));
  EXPECT_EQ(json::to_text(call_of(alone).arguments), R"({"path":"a"})");
  EXPECT_THAT(alone.events, testing::Contains(delta_event("toolcall", 0, R"({"path":"a"})")));

  const Decoded both =
      decode(begin + block_delta(0, R"({"type":"input_json_delta","partial_json":"{\"path\":\"a\"}"})") +
             block_stop(0) + end_frames("tool_use"));
  EXPECT_EQ(json::to_text(call_of(both).arguments), R"({"path":"a"})");
  EXPECT_FALSE(call_of(both).malformed_arguments.has_value());
}

// FF-51
TEST(AnthropicMessagesDecoder, TakesNullForAbsentEverywhere) {
  const Decoded decoded = decode(
      frame("message_start",
            R"({"type":"message_start","message":{"id":null,"model":null,"content":null,"usage":null}})") +
      frame("message_start", R"({"type":"message_start","message":null})") +
      block_start(0, R"({"type":"thinking","thinking":null,"signature":null})") + block_delta(0, "null") +
      block_delta(0, "{}") + block_delta(0, R"({"type":"signature_delta","signature":null})") +
      block_delta(0, R"({"type":"thinking_delta","thinking":null})") + block_stop(0) +
      block_start(1, R"({"type":"text","text":null})") + block_delta(1, R"({"type":"text_delta","text":"ok"})") +
      block_stop(1) + block_start(2, R"({"type":"tool_use","id":"t","name":"n","input":null})") +
      block_delta(2, R"({"type":"input_json_delta","partial_json":null})") + block_stop(2) + block_start(3, "null") +
      frame("message_delta", R"({"type":"message_delta","delta":null,"usage":null})") +
      frame("message_delta",
            R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_details":null},"usage":)"
            R"({"input_tokens":5,"output_tokens":2,"cache_read_input_tokens":null,"output_tokens_details":null}})") +
      frame("message_delta", R"({"type":"message_delta","delta":{"stop_reason":null},"input_transformations":null})") +
      frame("message_stop", R"({"type":"message_stop"})"));
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kToolUse) << decoded.message.error_message.value_or("");
  EXPECT_EQ(text_of(decoded.message), "ok");
  EXPECT_EQ(json::to_text(call_of(decoded, 2).arguments), "{}");
  EXPECT_EQ(decoded.message.usage.total_tokens, 7);
  EXPECT_FALSE(decoded.message.response_id.has_value());
  EXPECT_FALSE(decoded.message.response_model.has_value());
}

TEST(AnthropicMessagesDecoder, WorksWithoutIndexes) {
  const Decoded decoded = decode(
      start_frame() +
      frame("content_block_start", R"({"type":"content_block_start","content_block":{"type":"text","text":"a"}})") +
      frame("content_block_delta", R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"b"}})") +
      frame("content_block_stop", R"({"type":"content_block_stop"})") +
      frame("content_block_start", R"({"type":"content_block_start","content_block":{"type":"text","text":"c"}})") +
      end_frames());
  ASSERT_EQ(decoded.message.content.size(), 2U);
  EXPECT_EQ(text_of(decoded.message), "abc");
}

// AI-117
TEST(AnthropicMessagesDecoder, IgnoresUnknownEventsBlocksAndDeltas) {
  const Decoded decoded = decode(
      start_frame() + frame("weather", "not json") + frame("content_block_glow", "{}") +
      block_start(0, R"({"type":"server_tool_use","id":"s","name":"web_search","input":{}})") +
      block_delta(0, R"({"type":"input_json_delta","partial_json":"{}"})") + block_stop(0) +
      block_start(4, R"({"type":"text","text":""})") + block_delta(4, R"({"type":"citations_delta","citation":{}})") +
      block_delta(9, R"({"type":"text_delta","text":"nowhere"})") +
      block_delta(4, R"({"type":"thinking_delta","thinking":"wrong kind"})") +
      block_delta(4, R"({"type":"text_delta","text":"here"})") + block_stop(4) +
      block_delta(4, R"({"type":"text_delta","text":"too late"})") + block_stop(4) + end_frames());
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kStop);
  ASSERT_EQ(decoded.message.content.size(), 1U);
  EXPECT_EQ(text_of(decoded.message), "here");
}

TEST(AnthropicMessagesDecoder, TakesAnIndexThatIsUsedAgainForANewBlock) {
  const Decoded decoded =
      decode(start_frame() + block_start(0, R"({"type":"text","text":"first"})") +
             block_start(0, R"({"type":"text","text":"second"})") +
             block_delta(0, R"({"type":"text_delta","text":"!"})") + block_start(0, R"({"type":"mystery"})") +
             block_delta(0, R"({"type":"text_delta","text":"of the mystery"})") + end_frames());
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kStop);
  EXPECT_EQ(text_of(decoded.message), "firstsecond!");
}

// AI-117
TEST(AnthropicMessagesDecoder, FailsWhenTheModelIsChangedInTheMiddle) {
  const Decoded decoded = decode(start_frame() + block_start(0, R"({"type":"text","text":"half"})") + block_stop(0) +
                                 block_start(1, R"({"type":"fallback"})") + end_frames());
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kError);
  EXPECT_EQ(text_of(decoded.message), "half");
}

// ---- ends --------------------------------------------------------------------------------------------------------

// FF-45
TEST(AnthropicMessagesDecoder, AcceptsALastEventWithoutABlankLine) {
  std::string body = full_stream();
  body.pop_back();
  const Decoded decoded = decode(body);
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kToolUse);
  EXPECT_EQ(decoded.message.usage.output, 7);
}

// FF-46, AI-116
TEST(AnthropicMessagesDecoder, EndsInARetryableErrorWhenTheBodyEndsEarly) {
  const Decoded partial = decode(start_frame() + block_start(0, R"({"type":"text","text":"Hel"})") + block_stop(0) +
                                 block_start(1, R"({"type":"tool_use","id":"t","name":"write","input":{}})") +
                                 block_delta(1, R"({"type":"input_json_delta","partial_json":"{\"path\":\"a"})"));
  EXPECT_EQ(partial.message.stop_reason, StopReason::kError);
  EXPECT_EQ(partial.message.error_message, "Anthropic stream ended before message_stop");
  EXPECT_EQ(text_of(partial.message), "Hel");
  EXPECT_EQ(partial.message.usage.input, 3);
  EXPECT_TRUE(is_retryable(partial.message));

  const Decoded nothing = decode("");
  EXPECT_THAT(nothing.events, ElementsAre(R"({"type":"start"})", R"({"type":"error","reason":"error"})"));
  EXPECT_EQ(nothing.message.error_message, "Anthropic stream ended without a stop reason");
}

// AI-30
TEST(AnthropicMessagesDecoder, FailsWithoutAStopReason) {
  const Decoded decoded = decode(start_frame() + frame("message_stop", R"({"type":"message_stop"})"));
  EXPECT_EQ(decoded.message.error_message, "Anthropic stream ended without a stop reason");
}

// AI-120
TEST(AnthropicMessagesDecoder, MapsStopReasons) {
  const std::vector<std::pair<std::string, StopReason>> reasons{
      {"end_turn", StopReason::kStop},     {"pause_turn", StopReason::kStop},  {"stop_sequence", StopReason::kStop},
      {"max_tokens", StopReason::kLength}, {"tool_use", StopReason::kToolUse}, {"refusal", StopReason::kError},
      {"sensitive", StopReason::kError},   {"sideways", StopReason::kError}};
  for (const auto& [word, reason] : reasons) {
    const Decoded decoded = decode(start_frame() + end_frames(word));
    EXPECT_EQ(decoded.message.stop_reason, reason) << word;
    EXPECT_EQ(decoded.message.raw_stop_reason, word);
    EXPECT_EQ(decoded.message.error_message.has_value(), reason == StopReason::kError) << word;
  }
  EXPECT_EQ(decode(start_frame() + end_frames("sensitive")).message.error_message, "Provider stopped with: sensitive");
  EXPECT_EQ(decode(start_frame() + end_frames("sideways")).message.error_message, "Unhandled stop reason: sideways");
}

TEST(AnthropicMessagesDecoder, IgnoresWhatComesAfterTheEnd) {
  const Decoded decoded = decode(full_stream() + frame("error", R"({"type":"error"})") + start_frame("m2"));
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kToolUse);
  EXPECT_FALSE(decoded.message.response_model.has_value());
}

TEST(AnthropicMessagesDecoder, ReportsAnErrorEventWithItsWords) {
  const std::string error = R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})";
  const Decoded decoded = decode(start_frame() + frame("error", error));
  EXPECT_EQ(decoded.message.error_message, error);
  EXPECT_TRUE(is_retryable(decoded.message));
  EXPECT_EQ(decode(start_frame() + "data: " + error + "\n\n").message.error_message, error);
}

// FF-107
TEST(AnthropicMessagesDecoder, LetsNoControlCharactersIntoAnErrorText) {
  const Decoded decoded =
      decode(start_frame() +
             frame("message_delta",
                   R"({"delta":{"stop_reason":"refusal","stop_details":{"explanation":"a\u001b[31mb\u0007c"}}})") +
             frame("message_stop", "{}"));
  EXPECT_EQ(decoded.message.error_message, "abc");
}

// ---- calls -------------------------------------------------------------------------------------------------------

// FF-8
TEST(AnthropicMessagesDecoder, GivesACallWithoutAnIdOne) {
  const Decoded decoded =
      decode(start_frame() + block_start(0, R"({"type":"tool_use","name":"read","input":{}})") +
             block_delta(0, R"({"type":"input_json_delta","partial_json":"{\"path\":\"a.txt\"}"})") + block_stop(0) +
             end_frames("tool_use"));
  const std::string& id = call_of(decoded).id;
  EXPECT_FALSE(id.empty());
  EXPECT_THAT(decoded.events, testing::Contains(HasSubstr("\"id\":\"" + id + "\"")));
}

// FF-18, FF-19: what could be read is a preview, and says so.
TEST(AnthropicMessagesDecoder, MarksArgumentsThatAreNoJson) {
  const std::string begin = start_frame() + block_start(0, R"({"type":"tool_use","id":"t","name":"write","input":{}})");
  const Decoded broken =
      decode(begin + block_delta(0, R"({"type":"input_json_delta","partial_json":"{\"path\":\"a.txt\" \"mode\":1}"})") +
             block_stop(0) + end_frames("tool_use"));
  EXPECT_EQ(call_of(broken).malformed_arguments, R"({"path":"a.txt" "mode":1})");

  const Decoded cut = decode(
      begin + block_delta(0, R"({"type":"input_json_delta","partial_json":"{\"path\":\"a.txt\",\"content\":\"abc"})") +
      end_frames("max_tokens"));
  EXPECT_EQ(cut.message.stop_reason, StopReason::kLength);
  EXPECT_TRUE(call_of(cut).malformed_arguments.has_value());
  EXPECT_EQ(json::to_text(call_of(cut).arguments), R"({"path":"a.txt","content":"abc"})");
}

// AI-108
TEST(AnthropicMessagesDecoder, GivesToolsTheirOwnNamesBack) {
  const Model model = relay_model();
  AnthropicMessagesDecoder decoder(empty_reply(model), model, {"todowrite", "Other"});
  const Decoded decoded = test::decode(
      decoder, {start_frame() + block_start(0, R"({"type":"tool_use","id":"a","name":"TodoWrite","input":{}})") +
                block_stop(0) + block_start(1, R"({"type":"tool_use","id":"b","name":"Strange","input":{}})") +
                block_stop(1) + end_frames("tool_use")});
  EXPECT_EQ(call_of(decoded, 0).name, "todowrite");
  EXPECT_EQ(call_of(decoded, 1).name, "Strange");
}

// ---- usage -------------------------------------------------------------------------------------------------------

// FF-43, AI-119
TEST(AnthropicMessagesDecoder, CountsNoTokenTwice) {
  const Decoded decoded = decode(
      frame("message_start",
            R"({"type":"message_start","message":{"usage":{"input_tokens":40,"output_tokens":1,"total_tokens":999,)"
            R"("cache_read_input_tokens":60,"cache_creation_input_tokens":8,)"
            R"("cache_creation":{"ephemeral_1h_input_tokens":5,"ephemeral_5m_input_tokens":3}}}})") +
      frame("message_delta", R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},)"
                             R"("usage":{"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}})") +
      frame("message_stop", "{}"));
  const Usage& usage = decoded.message.usage;
  EXPECT_EQ(usage.input, 40);
  EXPECT_EQ(usage.output, 50);
  EXPECT_EQ(usage.cache_read, 60);
  EXPECT_EQ(usage.cache_write, 8);
  EXPECT_EQ(usage.cache_write_1h, 5);
  EXPECT_EQ(usage.reasoning, 30);
  EXPECT_EQ(usage.total_tokens, 158);
}

// FF-3
TEST(AnthropicMessagesDecoder, KeepsTheConfiguredModelAndReplaysItsSignature) {
  const Decoded decoded =
      decode(start_frame("m1-20260101") + block_start(0, R"({"type":"thinking","thinking":"plan","signature":"SIG"})") +
             block_stop(0) + block_start(1, R"({"type":"tool_use","id":"t","name":"read","input":{}})") +
             block_stop(1) + end_frames("tool_use"));
  EXPECT_EQ(decoded.message.model, "m1");
  EXPECT_EQ(decoded.message.response_model, "m1-20260101");

  Context context;
  context.messages = {make_message(UserMessage{"go", 0, {}}), make_message(decoded.message)};
  const auto body = encode_anthropic_messages(relay_model(), context, {});
  EXPECT_THAT(json::to_text(*body), HasSubstr(R"({"type":"thinking","thinking":"plan","signature":"SIG"})"));
}

// ---- size --------------------------------------------------------------------------------------------------------

TEST(AnthropicMessagesDecoder, RefusesEventsAndMessagesBeyondTheLimits) {
  const std::string begin = start_frame() + block_start(0, R"({"type":"text","text":""})");
  const std::string big = block_delta(0, fmt::format(R"({{"type":"text_delta","text":"{}"}})", std::string(900, 'x')));
  const ReplyLimits limits{.event_bytes = 1200, .message_bytes = 2000};
  EXPECT_EQ(decode(begin + big + big + end_frames(), relay_model(), limits).message.stop_reason, StopReason::kStop);

  const Decoded many = decode(begin + big + big + big + end_frames(), relay_model(), limits);
  EXPECT_THAT(*many.message.error_message, HasSubstr("message larger than 2000 bytes"));
  EXPECT_EQ(text_of(many.message).size(), 1800U);
  EXPECT_EQ(many.terminal_events, 1);

  const std::string endless = begin + "event: content_block_delta\ndata: " + std::string(5000, 'x');
  EXPECT_THAT(*decode(endless, relay_model(), limits).message.error_message, HasSubstr("event larger than 1200 bytes"));

  std::string signature = start_frame() + block_start(0, R"({"type":"thinking","thinking":"","signature":""})");
  for (int i = 0; i < 5; ++i)
    signature += block_delta(0, fmt::format(R"({{"type":"signature_delta","signature":"{}"}})", std::string(800, 's')));
  EXPECT_THAT(*decode(signature, relay_model(), limits).message.error_message, HasSubstr("message larger"));
}

// FF-101: four times the text, four times the work.
TEST(AnthropicMessagesDecoder, TakesTimeInProportionToTheArguments) {
  const auto seconds = [](int deltas) {
    std::string body = start_frame() + block_start(0, R"({"type":"tool_use","id":"t","name":"write","input":{}})") +
                       block_delta(0, R"({"type":"input_json_delta","partial_json":"{\"content\":\""})");
    const std::string piece =
        block_delta(0, fmt::format(R"({{"type":"input_json_delta","partial_json":"{}\\n"}})", std::string(98, 'x')));
    for (int i = 0; i < deltas; ++i)
      body += piece;
    body +=
        block_delta(0, R"({"type":"input_json_delta","partial_json":"\"}"})") + block_stop(0) + end_frames("tool_use");

    AnthropicMessagesDecoder decoder(empty_reply(relay_model()), relay_model());
    const auto begin = std::chrono::steady_clock::now();
    int events = 0;
    for (const std::string_view bytes : test::pieces_of(body, 16384)) {
      decoder.push(bytes);
      while (decoder.next())
        ++events;
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(events, deltas + 6);  // start, toolcall_start, two more deltas, toolcall_end, done
    return taken.count();
  };
  const double small = seconds(10'000);
  const double large = seconds(40'000);  // 4 MB
  EXPECT_LT(large, 2.0);
  EXPECT_LT(large, 10 * small + 0.1);
}

}  // namespace
}  // namespace tau::ai
