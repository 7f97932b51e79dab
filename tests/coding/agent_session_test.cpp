#include "coding/agent_session.h"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "ai/providers/scripted.h"

#include "support/fixture.h"
#include "support/run.h"

namespace tau::coding {
namespace {

asio::awaitable<std::expected<ai::RequestAuth, Error>> no_credentials_needed(ai::Model) {
  co_return ai::RequestAuth{};
}

agent::AgentTool echo_tool(std::function<void()> while_running = {}) {
  agent::AgentTool tool;
  tool.declaration.name = "echo";
  tool.declaration.parameters = {{"type", "object"}};
  tool.execute = [while_running](std::string, json::object, std::stop_token,
                                 agent::ToolUpdate) -> asio::awaitable<agent::ToolResult> {
    return [](std::function<void()> act) -> asio::awaitable<agent::ToolResult> {
      if (act) act();
      agent::ToolResult result;
      result.content.emplace_back(ai::TextContent{"echoed", {}, {}});
      co_return result;
    }(while_running);
  };
  return tool;
}

class AgentSessionTest : public testing::Test {
 protected:
  void start(const std::string& script, std::vector<agent::AgentTool> tools = {}) {
    AgentSessionOptions options;
    options.session = Session::create(folder.path(), "/p");
    session = options.session;
    options.stream = ai::make_scripted_provider({{"s", script}});
    options.credentials = no_credentials_needed;
    options.model = ai::scripted_model("s");
    options.tools = std::move(tools);
    options.retry = {true, 3, std::chrono::milliseconds(5)};
    agent = std::make_unique<AgentSession>(io.get_executor(), std::move(options));
    agent->subscribe([this](const SessionEvent& event) {
      if (const auto o = to_json(event)) {
        const std::string type = json::string_or(*o, "type");
        if (type != "message_update") log.push_back(type);
      }
    });
  }

  void prompt(const std::string& text) {
    const auto sent = test::run(io, agent->prompt(text));
    ASSERT_TRUE(sent) << sent.error().message;
  }

  std::vector<std::string> roles_on_disk() const {
    std::vector<std::string> roles;
    for (const json::value& line : test::read_json_lines(*session->file())) {
      if (const json::object* message = json::find_object(line.get_object(), "message")) {
        roles.push_back(json::string_or(*message, "role"));
      }
    }
    return roles;
  }

  int count(const std::string& type) const { return static_cast<int>(std::count(log.begin(), log.end(), type)); }

  test::TemporaryFolder folder;
  boost::asio::io_context io;
  std::shared_ptr<Session> session;
  std::unique_ptr<AgentSession> agent;
  std::vector<std::string> log;
};

TEST_F(AgentSessionTest, AnUntouchedStartMakesNoFile) {  // FF-27
  start(R"({"turns":[]})");
  EXPECT_FALSE(std::filesystem::exists(*session->file()));
}

TEST_F(AgentSessionTest, ThePromptIsOnDiskBeforeTheFirstRequestLeaves) {  // FF-27
  start(R"({"turns":[{"text":"hi"}]})");
  std::vector<std::string> at_reply;
  agent->subscribe([&](const SessionEvent& event) {
    const auto* activity = std::get_if<AgentActivity>(&event);
    const auto* begin = activity != nullptr ? std::get_if<agent::MessageStart>(&activity->event) : nullptr;
    if (begin != nullptr && begin->message.assistant() != nullptr) at_reply = roles_on_disk();
  });
  prompt("hello");
  EXPECT_EQ(at_reply, std::vector<std::string>{"user"});
  EXPECT_EQ(roles_on_disk(), (std::vector<std::string>{"user", "assistant"}));
}

TEST_F(AgentSessionTest, APassingFailureIsRetriedAndOnlyTheGoodReplyStaysLive) {  // SE-28, SE-31
  start(R"({"turns":[{"text":"x","error":"503 overloaded"},{"text":"fine"}]})");
  prompt("go");
  EXPECT_EQ(count("auto_retry_start"), 1);
  EXPECT_EQ(count("auto_retry_end"), 1);
  EXPECT_EQ(count("agent_settled"), 1);
  EXPECT_EQ(log.back(), "agent_settled");
  ASSERT_EQ(agent->messages().size(), 2u);
  EXPECT_EQ(ai::text_of(*agent->last_reply()), "fine");
  EXPECT_EQ(roles_on_disk(), (std::vector<std::string>{"user", "assistant", "assistant"}));
}

TEST_F(AgentSessionTest, AfterTheLastRetryTheFailureStands) {
  start(R"({"turns":[{"error":"503 a"},{"error":"503 b"},{"error":"503 c"},{"error":"503 d"},{"text":"too late"}]})");
  prompt("go");
  EXPECT_EQ(count("auto_retry_start"), 3);
  EXPECT_EQ(agent->last_reply()->error_message, "503 d");
}

TEST_F(AgentSessionTest, ALastingFailureIsNotRetried) {  // FF-44
  start(R"({"turns":[{"error":"429 insufficient_quota"},{"text":"no"}]})");
  prompt("go");
  EXPECT_EQ(count("auto_retry_start"), 0);
}

TEST_F(AgentSessionTest, AnAbortEndsTheWaitForARetry) {  // FF-50
  start(R"({"turns":[{"error":"503 a"},{"text":"no"}]})");
  agent->subscribe([&](const SessionEvent& event) {
    if (std::holds_alternative<AutoRetryStart>(event)) agent->abort();
  });
  prompt("go");
  EXPECT_EQ(count("auto_retry_end"), 1);
  EXPECT_FALSE(agent->running());
}

TEST_F(AgentSessionTest, ACommandThatEndsDuringARunIsRecordedAfterIt) {  // SE-6 to SE-10
  BashExecution record;
  record.command = "ls";
  record.output = "a\n";
  record.exit_code = 0;
  start(R"({"turns":[{"toolCalls":[{"name":"echo","arguments":{}}]},{"text":"done"}]})",
        {echo_tool([this, record] { agent->record_bash(record); })});
  prompt("go");
  EXPECT_EQ(roles_on_disk(),
            (std::vector<std::string>{"user", "assistant", "toolResult", "assistant", "bashExecution"}));
  EXPECT_EQ(agent->messages().back().role(), "bashExecution");

  agent->record_bash(record);  // idle: at once
  EXPECT_EQ(roles_on_disk().size(), 6u);
}

TEST_F(AgentSessionTest, SteeringAndFollowUpsAreShownUntilTheyAreDelivered) {
  start(R"({"count":"session","turns":[{"toolCalls":[{"name":"echo","arguments":{}}]},{"text":"one"},{"text":"two"}]})",
        {echo_tool([this] {
          agent->steer("left");
          agent->follow_up("then right");
          EXPECT_EQ(agent->queues().steering.size(), 1u);
        })});
  prompt("go");
  EXPECT_TRUE(agent->queues().steering.empty());
  EXPECT_TRUE(agent->queues().follow_up.empty());
  EXPECT_EQ(count("queue_update"), 4);
  EXPECT_EQ(roles_on_disk(),
            (std::vector<std::string>{"user", "assistant", "toolResult", "user", "assistant", "user", "assistant"}));
}

TEST_F(AgentSessionTest, ASecondPromptIsRefusedWhileOneRuns) {
  std::string refusal;
  start(R"({"turns":[{"toolCalls":[{"name":"echo","arguments":{}}]},{"text":"done"}]})", {echo_tool([&] {
          boost::asio::co_spawn(io, agent->prompt("again"), [&](const std::exception_ptr&, auto sent) {
            if (!sent) refusal = sent.error().message;
          });
        })});
  prompt("go");
  io.poll();
  EXPECT_NE(refusal.find("at work"), std::string::npos);
}

TEST_F(AgentSessionTest, ChangesOfModelAndLevelAreRecordedAndClamped) {
  start(R"({"turns":[{"text":"hi"}]})");
  prompt("go");
  ai::Model thinker = ai::scripted_model("s");
  thinker.reasoning = true;
  agent->set_model(thinker);
  agent->set_thinking_level(ai::ThinkingLevel::kMax);
  EXPECT_EQ(agent->thinking_level(), ai::ThinkingLevel::kHigh);  // no mapping for more
  std::vector<std::string> types;
  for (const json::value& line : test::read_json_lines(*session->file())) {
    types.push_back(json::string_or(line.get_object(), "type"));
  }
  EXPECT_EQ(types[types.size() - 2], "model_change");
  EXPECT_EQ(types.back(), "thinking_level_change");
  EXPECT_EQ(count("thinking_level_changed"), 1);
}

TEST_F(AgentSessionTest, CredentialsThatCannotBeHadAreAFailedReply) {
  start(R"({"turns":[{"text":"hi"}]})");
  AgentSessionOptions options;
  options.session = Session::in_memory("/p");
  options.stream = ai::make_scripted_provider({});
  options.credentials = [](ai::Model) -> asio::awaitable<std::expected<ai::RequestAuth, Error>> {
    co_return std::unexpected(error("no key for it"));
  };
  options.model = ai::scripted_model("s");
  AgentSession other(io.get_executor(), std::move(options));
  ASSERT_TRUE(test::run(io, other.prompt("go")));
  EXPECT_EQ(other.last_reply()->error_message, "no key for it");
}

}  // namespace
}  // namespace tau::coding
