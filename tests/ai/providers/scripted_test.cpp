#include "ai/providers/scripted.h"

#include <chrono>

#include <gtest/gtest.h>

#include "support/fixture.h"
#include "support/run.h"

namespace tau::ai {
namespace {

class Scripted : public testing::Test {
 protected:
  AssistantMessage play(const std::string& script, const Context& context, std::stop_token stop = {}) {
    const StreamFunction stream = make_scripted_provider({{"s", script}});
    return play(stream, "s", context, std::move(stop));
  }

  AssistantMessage play(const StreamFunction& stream, const std::string& id, const Context& context,
                        std::stop_token stop = {}) {
    const EventSink sink = [this](const StreamEvent& event) -> std::optional<asio::awaitable<void>> {
      events.push_back(json::string_or(to_json(event), "type"));
      if (on_event) on_event(event);
      return std::nullopt;
    };
    return test::run(io, stream(scripted_model(id), context, {}, sink, std::move(stop)));
  }

  static Context prompt(const std::string& text) {
    Context context;
    context.messages.push_back(make_message(Message(UserMessage{text, 1, {}})));
    return context;
  }

  static void answer(Context& context, const AssistantMessage& reply, const std::string& result) {
    context.messages.push_back(make_message(Message(reply)));
    for (const ToolCall* call : tool_calls_of(reply)) {
      ToolResultMessage message;
      message.tool_call_id = call->id;
      message.tool_name = call->name;
      message.content.emplace_back(TextContent{result, {}, {}});
      context.messages.push_back(make_message(Message(std::move(message))));
    }
  }

  boost::asio::io_context io;
  std::vector<std::string> events;
  std::function<void(const StreamEvent&)> on_event;
};

TEST_F(Scripted, StreamsThinkingTextAndCallsLikeAnyProvider) {
  const AssistantMessage reply = play(
      R"({"pace":{"chunk":3},"turns":[{"thinking":"hm","text":"Hello","toolCalls":[{"label":"x","name":"bash","arguments":{"command":"ls"}}]}]})",
      prompt("hi"));
  EXPECT_EQ(text_of(reply), "Hello");
  EXPECT_EQ(reply.stop_reason, StopReason::kToolUse);
  ASSERT_EQ(tool_calls_of(reply).size(), 1u);
  EXPECT_TRUE(tool_calls_of(reply)[0]->id.starts_with("x_"));
  EXPECT_EQ(events.front(), "start");
  EXPECT_EQ(events.back(), "done");
  EXPECT_EQ(std::count(events.begin(), events.end(), "text_delta"), 2);
  EXPECT_EQ(std::count(events.begin(), events.end(), "done"), 1);
}

TEST_F(Scripted, TextQuotesEarlierResultsAndThePrompt) {
  const std::string script =
      R"({"turns":[{"toolCalls":[{"label":"list","name":"bash","arguments":{"command":"echo {{prompt}}"}}]},)"
      R"({"text":"{{list:count}} {{list:2}} [{{list:1-2}}] {{prompt}}"}]})";
  const StreamFunction stream = make_scripted_provider({{"s", script}});
  Context context = prompt("look");
  const AssistantMessage call = play(stream, "s", context);
  EXPECT_EQ(json::to_text(tool_calls_of(call)[0]->arguments), R"({"command":"echo look"})");
  answer(context, call, "a\nb\nc\n");
  EXPECT_EQ(text_of(play(stream, "s", context)), "3 b [a\nb] look");
}

TEST_F(Scripted, TurnsBeginAgainAtEachPromptOrGoOnThroughTheSession) {
  for (const auto& [count, second] : {std::pair{"prompt", "one"}, std::pair{"session", "two"}}) {
    const std::string script = std::string(R"({"count":")") + count + R"(","turns":[{"text":"one"},{"text":"two"}]})";
    const StreamFunction stream = make_scripted_provider({{"s", script}});
    Context context = prompt("a");
    answer(context, play(stream, "s", context), "");
    context.messages.push_back(make_message(Message(UserMessage{std::string("b"), 2, {}})));
    EXPECT_EQ(text_of(play(stream, "s", context)), second);
    // The same from the transcript alone, as after a restart.
    EXPECT_EQ(text_of(play(make_scripted_provider({{"s", script}}), "s", context)), second);
  }
}

TEST_F(Scripted, AFailedTurnIsNotPlayedAgain) {
  const StreamFunction stream =
      make_scripted_provider({{"s", R"({"turns":[{"text":"half","error":"overloaded"},{"text":"whole"}]})"}});
  const Context context = prompt("a");
  const AssistantMessage failed = play(stream, "s", context);
  EXPECT_EQ(failed.stop_reason, StopReason::kError);
  EXPECT_EQ(failed.error_message, "overloaded");
  EXPECT_EQ(text_of(play(stream, "s", context)), "whole");
}

TEST_F(Scripted, AnAbortEndsTheReplyAtOnce) {
  std::stop_source stop;
  on_event = [&](const StreamEvent& event) {
    if (std::holds_alternative<BlockDelta>(event.what)) stop.request_stop();
  };
  const auto start = std::chrono::steady_clock::now();
  const AssistantMessage reply =
      play(R"({"pace":{"chunk":1,"delayMs":50},"turns":[{"text":"a long answer"}]})", prompt("a"), stop.get_token());
  EXPECT_EQ(reply.stop_reason, StopReason::kAborted);
  EXPECT_EQ(text_of(reply), "a");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

TEST_F(Scripted, WhatIsWrongWithAScriptIsSaidWithItsName) {
  const auto error_of = [&](const std::string& script) { return *play(script, prompt("a")).error_message; };
  EXPECT_EQ(error_of(R"({"turns":[]})"), "The script \"s\" has no turn 1 (it has 0)");
  EXPECT_NE(error_of("{\"turns\":[\n,]}").find("line 2"), std::string::npos);
  EXPECT_NE(error_of(R"({"turns":[{"text":"{{nope}}"}]})").find("{{nope}}"), std::string::npos);
  EXPECT_NE(error_of(R"({})").find("\"turns\""), std::string::npos);
  EXPECT_NE(play(make_scripted_provider({}), "/no/file.json", prompt("a")).error_message->find("/no/file.json"),
            std::string::npos);
}

}  // namespace
}  // namespace tau::ai
