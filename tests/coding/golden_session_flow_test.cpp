// Golden cases: the order in which pi 0.85.0's session reports, stores and sends (tests/fixtures/agent/session).
//
// Each test does what the "steps" of its case say. Probes ("mark") are expectations of their own here.
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "coding/roles/custom.h"
#include "coding/session_player.h"

#include "support/run.h"

namespace tau::coding {
namespace {

agent::AgentMessage note(const std::string& type, const std::string& text = "note") {
  CustomMessage message;
  message.custom_type = type;
  message.content = text;
  return agent::AgentMessage::of(std::move(message));
}

BashExecution ls() {
  BashExecution record;
  record.command = "ls";
  record.output = "a\n";
  record.exit_code = 0;
  return record;
}

json::object sorted(const json::object& o) {
  std::vector<std::string> keys;
  for (const auto& member : o)
    keys.emplace_back(member.key());
  std::sort(keys.begin(), keys.end());
  json::object out;
  for (const std::string& key : keys)
    out.emplace(key, o.at(key));
  return out;
}

class GoldenSessionFlow : public testing::Test, protected test::SessionPlayer {
 protected:
  /// Compares with the case; our own words for an error stand for the placeholder.
  void expect_as_in(const std::string& name) {
    const json::object golden = test::read_json(test::fixture_root() / "agent/session" / (name + ".json")).as_object();
    std::vector<std::string> expected;
    for (const json::value& line : golden.at("log").as_array()) {
      if (!line.as_object().contains("mark")) expected.push_back(json::to_text(sorted(line.as_object())));
    }
    std::vector<std::string> seen;
    for (const json::value& line : log) {
      json::object o = line.as_object();
      if (json::string_or(o, "event") == "compaction_end" && o.contains("errorMessage")) {
        o["errorMessage"] = "{{ERR_RECOVERY_FAILED}}";
      }
      seen.push_back(json::to_text(sorted(o)));
    }
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(json::to_text(entries()), json::to_text(golden.at("entries")));
    EXPECT_EQ(json::to_text(state()), json::to_text(golden.at("state")));
    EXPECT_EQ(static_cast<std::int64_t>(requests.size()), golden.at("calls").as_int64());
  }

  void later(std::function<void()> act) { boost::asio::post(io, std::move(act)); }

  void compact_beyond(double window, double reserve, double keep) {
    options.model.context_window = window;
    options.compaction = {true, reserve, keep};
    summarise_with("what happened before");
  }
};

TEST_F(GoldenSessionFlow, AbortDuringBackOff) {
  options.retry.base_delay = std::chrono::seconds(5);
  replies = {{.error = "503 one"}};
  start();
  bool running = false;
  on("auto_retry_start", [&] {
    later([&] {
      running = agent().running() && agent().retrying();
      agent().abort();
    });
  });
  prompt("go");
  EXPECT_TRUE(running);  // SE-7
  expect_as_in("abort-during-backoff");
}

TEST_F(GoldenSessionFlow, AbortDuringTheStreamOfARetry) {
  replies = {{.error = "503 one"}, {.until_abort = true}};
  start();
  on("message_start", [&] { later([&] { agent().abort(); }); }, 3);
  prompt("go");
  expect_as_in("abort-during-retry-stream");
}

TEST_F(GoldenSessionFlow, AnAbortLeavesTheQueueAlone) {
  replies = {{.until_abort = true}, {}};
  start();
  on(
      "message_start",
      [&] {
        later([&] {
          agent().record_bash(ls());
          agent().follow_up("F");
          agent().abort();
        });
      },
      2);
  prompt("go");
  expect_as_in("abort-with-queued-follow-up");
}

TEST_F(GoldenSessionFlow, WhatIsQueuedAtTheEndOfARunIsDelivered) {
  replies = {{}, {}};
  start();
  on("agent_end", [&] { agent().follow_up("x"); });
  prompt("go");
  expect_as_in("agent-end-handler-queues");
}

asio::awaitable<SessionHooks::RunStart> with_note(std::string) {
  SessionHooks::RunStart start;
  start.messages.push_back(note("bas"));
  co_return start;
}

TEST_F(GoldenSessionFlow, AsidesFollowThePrompt) {
  replies = {{}};
  options.hooks.before_run = [](std::string text, std::vector<ai::ImageContent>) { return with_note(std::move(text)); };
  start();
  agent().add_custom_message(note("aside"), {{}, CustomMessageOptions::Delivery::kNextPrompt});
  prompt("go");
  expect_as_in("asides-order");
}

TEST_F(GoldenSessionFlow, UserCommandsWhileIdle) {
  replies = {{}};
  start();
  agent().record_bash(ls());
  BashExecution pwd = ls();
  pwd.command = "pwd";
  pwd.exclude_from_context = true;
  agent().record_bash(pwd);
  prompt("go");
  expect_as_in("bash-idle");
}

TEST_F(GoldenSessionFlow, AUserCommandDuringAToolWaits) {
  replies = {{.calls = {"c1"}}, {}, {}};
  use_tool([&] {
    agent().record_bash(ls());
    EXPECT_EQ(json::to_text(state()), R"(["user","assistant/toolUse"])");
    agent().follow_up("F1");
  });
  start();
  prompt("go");
  expect_as_in("bash-mid-tool");
}

asio::awaitable<std::vector<agent::AgentMessage>> edited(std::vector<agent::AgentMessage> messages) {
  messages[0] = ai::UserMessage{std::string("EDITED"), 0, {}};
  messages.push_back(note("extra", "EXTRA"));
  co_return messages;
}

TEST_F(GoldenSessionFlow, ContextHooksChangeTheRequestOnly) {
  replies = {{}};
  options.hooks.transform_context = [](std::vector<agent::AgentMessage> messages, std::stop_token) {
    return edited(std::move(messages));
  };
  start();
  prompt("go");
  expect_as_in("context-hooks");
  EXPECT_EQ(ai::text_of(agent().messages()[0].user()->content), "go");
  EXPECT_EQ(ai::text_of(std::get<ai::UserMessage>(*requests[0].messages[0]).content), "EDITED");
}

TEST_F(GoldenSessionFlow, AnExtensionsMessageDuringAToolSteers) {
  replies = {{.calls = {"c1"}}, {}};
  use_tool([&] { agent().add_custom_message(note("note")); });
  start();
  prompt("go");
  expect_as_in("custom-message-default-mid-tool");
}

TEST_F(GoldenSessionFlow, AnExtensionsMessageThatTriggersNothingWaitsForTheEndOfTheTurn) {
  replies = {{.calls = {"c1"}}, {}};
  use_tool([&] { agent().add_custom_message(note("note"), {false, {}}); });
  start();
  prompt("go");
  expect_as_in("custom-message-mid-tool");
}

TEST_F(GoldenSessionFlow, AnErrorThatLasts) {
  replies = {{.error = "invalid request"}};
  start();
  prompt("go");
  expect_as_in("error-not-retryable");
}

TEST_F(GoldenSessionFlow, AReplyCutByTheLimitIsAskedForAgainAfterACompaction) {
  compact_beyond(100000, 16384, 2);
  replies = {{}, {.text = "cut", .stop = ai::StopReason::kLength}, {}};
  start();
  prompt("one");
  prompt("two");
  expect_as_in("length-recovery");
}

asio::awaitable<agent::AgentMessage> replaced(agent::AgentMessage message) {
  if (message.user() != nullptr) co_return ai::AssistantMessage{};
  ai::AssistantMessage reply = *message.assistant();
  reply.content.clear();
  reply.stop_reason = ai::StopReason::kStop;
  co_return reply;
}

TEST_F(GoldenSessionFlow, AHookReplacesAReplyButNotItsRole) {
  replies = {{.calls = {"c1"}}};
  options.hooks.settle_message = [](agent::AgentMessage message) { return replaced(std::move(message)); };
  start();
  prompt("go");
  expect_as_in("message-end-replacement");
}

TEST_F(GoldenSessionFlow, ALargeResultIsCompactedBeforeTheNextRequest) {  // SE-37, FF-40
  compact_beyond(100000, 60000, 45003);
  replies = {{}, {.text = "", .calls = {"c1"}}, {.tokens = 45020}};
  use_tool([&] { agent().record_bash(ls()); }, std::string(180000, 'x'));
  start();
  prompt("one");
  prompt("second");
  expect_as_in("mid-run-compaction");
}

TEST_F(GoldenSessionFlow, ARequestThatDoesNotFitIsCompactedAndMadeAgain) {
  compact_beyond(100000, 16384, 1);
  replies = {{}, {.text = "", .error = "prompt is too long"}, {}};
  start();
  prompt("one");
  prompt("two");
  expect_as_in("overflow-recovery");
}

TEST_F(GoldenSessionFlow, OverflowIsRecoveredFromOnce) {  // FF-35
  compact_beyond(100000, 16384, 1);
  replies = {{}, {.text = "", .error = "prompt is too long"}, {.text = "", .error = "prompt is too long"}};
  start();
  prompt("one");
  prompt("two");
  expect_as_in("overflow-twice");
  ASSERT_TRUE(compactions.back().error_message);
  EXPECT_NE(compactions.back().error_message->find("failed after one compact-and-retry attempt"), std::string::npos);
}

TEST_F(GoldenSessionFlow, WhatIsQueuedDuringACompactionIsDelivered) {  // SE-36
  compact_beyond(100000, 60000, 1);
  replies = {{}, {.text = "much", .tokens = 50000}, {}};
  start();
  bool queued = false;
  agent().subscribe([&](const SessionEvent& event) {
    if (std::holds_alternative<CompactionStart>(event) && !std::exchange(queued, true)) agent().follow_up("Q");
  });
  prompt("one");
  prompt("two");
  expect_as_in("post-run-compaction-with-queue");
}

TEST_F(GoldenSessionFlow, WithoutRetries) {
  options.retry.enabled = false;
  replies = {{.error = "503 one"}};
  start();
  prompt("go");
  expect_as_in("retry-disabled");
}

TEST_F(GoldenSessionFlow, RetriesEnd) {
  options.retry.max_retries = 1;
  replies = {{.error = "503 one"}, {.error = "503 two"}};
  start();
  prompt("go");
  expect_as_in("retry-exhausted");
}

TEST_F(GoldenSessionFlow, AUserCommandDuringARetryPauseWaits) {
  options.retry = {true, 2, std::chrono::milliseconds(20)};
  replies = {{.error = "503 overloaded"}, {.error = "503 overloaded"}, {}};
  start();
  bool done = false;
  agent().subscribe([&](const SessionEvent& event) {
    if (std::holds_alternative<AutoRetryStart>(event) && !std::exchange(done, true)) agent().record_bash(ls());
  });
  prompt("go");
  expect_as_in("retry-then-success");
}

asio::awaitable<agent::BeforeToolCall> guard(std::string id) {
  agent::BeforeToolCall decision;
  if (id == "c1") decision.arguments = json::object{{"v", 99}, {"extra", true}};
  if (id == "c2") decision.block = true;
  if (id == "c2") decision.reason = "nope";
  if (id == "c3") throw std::runtime_error("guard crashed");
  co_return decision;
}

asio::awaitable<agent::AfterToolCall> marked(std::vector<ai::UserBlock> content) {
  content.emplace_back(ai::TextContent{"H1", {}, {}});
  agent::AfterToolCall change;
  change.content = std::move(content);
  change.is_error = true;
  co_return change;
}

TEST_F(GoldenSessionFlow, HooksAroundToolCalls) {
  replies = {{.calls = {"c1", "c2", "c3"}}, {}};
  options.hooks.before_tool_call = [](agent::ToolCallInfo info, std::stop_token) { return guard(info.call.id); };
  options.hooks.after_tool_call = [](agent::ToolCallInfo, const agent::ToolResult& result, bool, std::stop_token) {
    return marked(result.content);
  };
  use_tool({});
  start();
  prompt("go");
  expect_as_in("tool-hooks");
  EXPECT_EQ(ai::text_of(agent().messages()[3].tool_result()->content), "nope");
}

TEST(GoldenSessionFlows, AreAllThere) {
  EXPECT_EQ(test::files_in(test::fixture_root() / "agent/session", ".json").size(), 21u);
}

}  // namespace
}  // namespace tau::coding
