#include "ai/stream_decoder.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tau::ai {
namespace {

AssistantMessage initial() {
  AssistantMessage message;
  message.api = "a";
  message.provider = "p";
  message.model = "m";
  return message;
}

std::string describe(const StreamEvent& event) {
  return json::to_text(to_json(event));
}

std::vector<std::string> drain(MessageAssembler& assembler) {
  std::vector<std::string> events;
  while (auto event = assembler.next())
    events.push_back(describe(*event));
  return events;
}

const ToolCall& call_at(const MessageAssembler& assembler, std::size_t index) {
  return std::get<ToolCall>(assembler.message().content.at(index));
}

ToolCall call(std::string id, std::string name) {
  ToolCall c;
  c.id = std::move(id);
  c.name = std::move(name);
  return c;
}

// AI-20, AI-23
TEST(MessageAssembler, ChangesTheMessageOnlyWithTheEventThatSaysSo) {
  MessageAssembler assembler(initial());
  EXPECT_EQ(assembler.message().stop_reason, StopReason::kPending);
  assembler.start();
  const std::size_t text = assembler.open(TextContent{});
  assembler.append(text, "Hel");
  assembler.append_owned(text, std::string("lo"));
  assembler.close(text);
  assembler.finish(StopReason::kStop);
  EXPECT_TRUE(assembler.message().content.empty());
  EXPECT_EQ(assembler.block_count(), 1U);
  EXPECT_EQ(assembler.applied_block(text), nullptr);

  EXPECT_EQ(describe(*assembler.next()), R"({"type":"start"})");
  EXPECT_EQ(describe(*assembler.next()), R"({"type":"text_start","contentIndex":0})");
  EXPECT_NE(assembler.applied_block(text), nullptr);
  EXPECT_EQ(describe(*assembler.next()), R"({"type":"text_delta","contentIndex":0,"delta":"Hel"})");
  EXPECT_EQ(text_of(assembler.message()), "Hel");
  EXPECT_EQ(describe(*assembler.next()), R"({"type":"text_delta","contentIndex":0,"delta":"lo"})");
  EXPECT_EQ(describe(*assembler.next()), R"({"type":"text_end","contentIndex":0,"content":"Hello"})");
  EXPECT_FALSE(assembler.settled());
  EXPECT_EQ(describe(*assembler.next()), R"({"type":"done","reason":"stop"})");
  EXPECT_TRUE(assembler.settled());
  EXPECT_EQ(assembler.message().stop_reason, StopReason::kStop);
  EXPECT_FALSE(assembler.next().has_value());
}

// AI-25
TEST(MessageAssembler, BlocksMayBeOpenAtTheSameTime) {
  MessageAssembler assembler(initial());
  const std::size_t thinking = assembler.open(ThinkingContent{});
  const std::size_t first = assembler.open(call("c1", "read"));
  const std::size_t second = assembler.open(call("c2", "read"));
  assembler.append(first, "{\"a\"");
  assembler.append(second, "{\"b\"");
  assembler.append(thinking, "hm");
  assembler.append(first, ":1}");
  assembler.append(second, ":2}");
  EXPECT_EQ(assembler.open_blocks(), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(assembler.argument_text(first), "{\"a\":1}") << "queued pieces count";
  assembler.close(first);
  assembler.close(second);
  EXPECT_EQ(assembler.open_blocks(), (std::vector<std::size_t>{0}));
  assembler.close(thinking);
  assembler.finish(StopReason::kToolUse);
  const auto events = drain(assembler);
  EXPECT_EQ(
      events.at(events.size() - 4),
      R"({"type":"toolcall_end","contentIndex":1,"toolCall":{"type":"toolCall","id":"c1","name":"read","arguments":{"a":1}}})");
  EXPECT_EQ(json::to_text(call_at(assembler, second).arguments), R"({"b":2})");
  EXPECT_EQ(assembler.kind_of(thinking), BlockKind::kThinking);
}

TEST(MessageAssembler, SurrogateHalvesJoinAcrossDeltas) {
  MessageAssembler assembler(initial());
  const std::size_t text = assembler.open(TextContent{});
  assembler.append(text, "\xED\xA0\xBD");
  assembler.append(text, "\xED\xB8\x80");
  const std::size_t args = assembler.open(call("c", "t"));
  assembler.append(args, "{\"a\":\"\xED\xA0\xBD");
  assembler.append(args, "\xED\xB8\x80\"}");
  assembler.close(args);
  drain(assembler);
  EXPECT_EQ(text_of(assembler.message()), "\xF0\x9F\x98\x80");
  EXPECT_EQ(json::to_text(call_at(assembler, args).arguments), "{\"a\":\"\xF0\x9F\x98\x80\"}");
}

// FF-19
TEST(MessageAssembler, ArgumentsThatAreNotJsonMarkTheCall) {
  MessageAssembler assembler(initial());
  const std::size_t broken = assembler.open(call("c1", "write"));
  assembler.append(broken, R"({"path":"a.txt","content":"x" "mode":1})");
  assembler.close(broken);
  const std::size_t repaired = assembler.open(call("c2", "write"));
  assembler.append(repaired, "{\"a\":\"line\nbreak\"}");
  assembler.close(repaired);
  drain(assembler);
  EXPECT_EQ(call_at(assembler, broken).malformed_arguments, R"({"path":"a.txt","content":"x" "mode":1})");
  EXPECT_EQ(call_at(assembler, repaired).malformed_arguments, std::nullopt);
  EXPECT_EQ(json::to_text(call_at(assembler, repaired).arguments), R"({"a":"line\nbreak"})");
}

// AI-117: an empty buffer gives {} even when the call was opened with arguments; other APIs keep them.
TEST(MessageAssembler, ACallWithoutArgumentTextIsEmptyOrKeepsWhatItCameWith) {
  MessageAssembler assembler(initial());
  ToolCall with_input = call("c1", "t");
  with_input.arguments = json::object{{"a", 1}};
  const std::size_t dropped = assembler.open(with_input);
  const std::size_t kept = assembler.open(with_input);
  assembler.close(dropped);
  assembler.close(kept, true);
  drain(assembler);
  EXPECT_EQ(json::to_text(call_at(assembler, dropped).arguments), "{}");
  EXPECT_EQ(json::to_text(call_at(assembler, kept).arguments), R"({"a":1})");
}

// FF-8
TEST(MessageAssembler, ACallWithoutAnIdGetsOneBeforeItsEnd) {
  MessageAssembler assembler(initial());
  const std::size_t first = assembler.open(call("", "t"));
  const std::size_t second = assembler.open(call("", "t"));
  assembler.close(first);
  assembler.close(second);
  drain(assembler);
  EXPECT_FALSE(call_at(assembler, first).id.empty());
  EXPECT_NE(call_at(assembler, first).id, call_at(assembler, second).id);
}

// AI-27, AI-31
TEST(MessageAssembler, AnUnfinishedCallShowsWhatCameAndCannotRun) {
  MessageAssembler assembler(initial());
  const std::size_t index = assembler.open(call("c", "t"));
  assembler.append(index, R"({"berth":"B)");
  assembler.finish(StopReason::kLength);
  const auto events = drain(assembler);
  EXPECT_EQ(events.back(), R"({"type":"done","reason":"length"})");
  EXPECT_EQ(json::to_text(to_json(call_at(assembler, index))),
            R"({"type":"toolCall","id":"c","name":"t","arguments":{"berth":"B"}})");
  EXPECT_TRUE(call_at(assembler, index).malformed_arguments.has_value());
}

// AI-28
TEST(MessageAssembler, AFailureKeepsWhatCame) {
  MessageAssembler assembler(initial());
  const std::size_t text = assembler.open(TextContent{});
  assembler.append(text, "Hel");
  assembler.fail(StopReason::kError, "the connection broke");
  assembler.append(text, "lost");
  assembler.finish(StopReason::kStop);
  const auto events = drain(assembler);
  EXPECT_EQ(events.back(), R"({"type":"error","reason":"error"})");
  EXPECT_EQ(text_of(assembler.message()), "Hel");
  EXPECT_EQ(assembler.message().error_message, "the connection broke");
}

// AI-29
TEST(MessageAssembler, AnAbortOvertakesQueuedStepsAndTheEnd) {
  MessageAssembler assembler(initial());
  const std::size_t text = assembler.open(TextContent{});
  assembler.append(text, "seen");
  assembler.next();
  assembler.next();
  assembler.append(text, " unseen");
  const std::size_t tool = assembler.open(call("c", "t"));
  assembler.close(tool);
  assembler.finish(StopReason::kStop);
  assembler.abort_now("Request was aborted");
  EXPECT_EQ(drain(assembler), (std::vector<std::string>{R"({"type":"error","reason":"aborted"})"}));
  EXPECT_EQ(text_of(assembler.message()), "seen");
  EXPECT_EQ(assembler.message().content.size(), 1U);
  assembler.abort_now("again");
  EXPECT_FALSE(assembler.has_step()) << "a settled message stays";
}

TEST(MessageAssembler, StepsMayBeQueuedWhileOthersWait) {
  MessageAssembler assembler(initial());
  const std::size_t text = assembler.open(TextContent{});
  assembler.next();
  std::string expected;
  assembler.append(text, "x");
  for (int i = 0; i < 5000; ++i) {
    assembler.append_owned(text, std::to_string(i));
    assembler.next();
  }
  drain(assembler);
  expected = "x";
  for (int i = 0; i < 5000; ++i)
    expected += std::to_string(i);
  EXPECT_EQ(text_of(assembler.message()), expected);
}

TEST(EmptyReply, NamesTheModelAndIsPending) {
  Model model;
  model.id = "m";
  model.api = "a";
  model.provider = "p";
  const AssistantMessage reply = empty_reply(model);
  EXPECT_EQ(reply.model, "m");
  EXPECT_EQ(reply.api, "a");
  EXPECT_EQ(reply.provider, "p");
  EXPECT_EQ(reply.stop_reason, StopReason::kPending);
  EXPECT_GT(reply.timestamp, 1'700'000'000'000);
  EXPECT_EQ(reply.usage.total_tokens, 0);
}

}  // namespace
}  // namespace tau::ai
