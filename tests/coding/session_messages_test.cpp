// What enters a session beside prompts: user commands, messages of extensions, roles of the embedding program.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "coding/roles/convert_to_llm.h"
#include "coding/roles/custom.h"
#include "coding/session_player.h"

#include "support/run.h"

namespace tau::coding {
namespace {

class SessionMessages : public testing::Test, protected test::SessionPlayer {
 protected:
  std::expected<BashExecution, Error> bash(std::string command, bool exclude = false) {
    options.shell.cwd = folder.path();
    return test::run(io, agent().run_bash(std::move(command), exclude, "b1"));
  }
  static agent::AgentMessage custom(const std::string& text) {
    CustomMessage message;
    message.custom_type = "x";
    message.content = text;
    message.display = false;
    return agent::AgentMessage::of(std::move(message));
  }
  std::string requested(std::size_t request, std::size_t message) const {
    return ai::text_of(std::get<ai::UserMessage>(*requests.at(request).messages.at(message)).content);
  }
};

TEST_F(SessionMessages, AUserCommandIsStreamedStoredAndSent) {  // CA-89, CA-90
  options.shell.cwd = folder.path();
  replies = {{}};
  start();
  std::string streamed;
  agent().subscribe([&](const SessionEvent& event) {
    if (const auto* output = std::get_if<BashOutput>(&event)) {
      EXPECT_EQ(output->id, "b1");
      streamed += output->delta;
    }
  });
  const auto record = bash("printf 'one\\ntwo\\n'");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->exit_code, 0);
  EXPECT_EQ(streamed, "one\ntwo\n");
  EXPECT_EQ(json::to_text(state()), R"(["bashExecution"])");
  prompt("go");
  EXPECT_NE(requested(0, 0).find("one\ntwo"), std::string::npos);
}

TEST_F(SessionMessages, ADoubleBangIsStoredInFullAndNeverSent) {  // CA-91
  options.shell.cwd = folder.path();
  replies = {{}};
  start();
  ASSERT_TRUE(bash("echo secret", true));
  prompt("go");
  ASSERT_EQ(requests.at(0).messages.size(), 1u);
  EXPECT_EQ(requested(0, 0), "go");
  const std::string file = test::read_file(*agent().session().file());
  EXPECT_NE(file.find(R"("output":"secret\n")"), std::string::npos);
  EXPECT_NE(file.find(R"("excludeFromContext":true)"), std::string::npos);
}

TEST_F(SessionMessages, AnAbortOfCommandsLeavesTheRunAlone) {  // SE-11
  options.shell.cwd = folder.path();
  start();
  boost::asio::post(io, [&] {
    boost::asio::post(io, [&] {
      EXPECT_TRUE(agent().bash_running());
      agent().abort();  // ends nothing of it
      EXPECT_TRUE(agent().bash_running());
      agent().abort_bash();
    });
  });
  const auto record = bash("sleep 20");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_TRUE(record->cancelled);
  EXPECT_FALSE(record->exit_code);
  EXPECT_FALSE(agent().bash_running());
}

TEST_F(SessionMessages, AHiddenMessageIsSentAndStateOfAnExtensionIsNot) {  // PR-4
  replies = {{}};
  start();
  agent().append_custom_entry("mine", json::value{{"n", 1}});
  EXPECT_EQ(count("entry_appended"), 1);
  agent().add_custom_message(custom("hidden"));
  prompt("go");
  ASSERT_EQ(requests.at(0).messages.size(), 2u);
  EXPECT_EQ(requested(0, 0), "hidden");
}

TEST_F(SessionMessages, AMessageMayRunTheModel) {  // agent.md 10.3: idle, triggerTurn
  replies = {{.text = "I see"}};
  start();
  const auto sent = test::run(io, agent().send_custom_message(custom("look"), {true, {}}));
  ASSERT_TRUE(sent);
  EXPECT_EQ(json::to_text(state()), R"(["custom","assistant/stop"])");
  EXPECT_EQ(count("agent_settled"), 1);
  EXPECT_EQ(agent().last_reply_text(), "I see");
}

TEST_F(SessionMessages, APromptInARunIsRefusedOrQueued) {  // SE-33
  replies = {{.calls = {"c1"}}, {}, {}};
  int accepted = 0;
  int refused = 0;
  int queued = 0;
  use_tool([&] {
    const auto send = [&](std::string text, PromptOptions how) {
      boost::asio::co_spawn(io, agent().prompt(std::move(text), {}, std::move(how)),
                            [&](std::exception_ptr, const auto& sent) { ++(sent ? queued : refused); });
    };
    send("no", {});
    send("later", {QueueAs::kFollowUp, [&] { ++accepted; }});
  });
  start();
  prompt("go");
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(queued, 1);
  EXPECT_EQ(requested(2, 4), "later");
}

TEST_F(SessionMessages, ChangesOfToolsHoldFromTheNextTurnOn) {  // SE-26
  replies = {{.calls = {"c1"}}, {}};
  use_tool([&] {
    agent().set_tools({});
    agent().set_system_prompt("new");
  });
  start();
  prompt("go");
  EXPECT_EQ(requests[0].tools.size(), 1u);
  EXPECT_TRUE(requests[1].tools.empty());
  EXPECT_EQ(requests[1].system_prompt, "new");
}

TEST_F(SessionMessages, TheLevelIsClampedAndRecorded) {
  options.model.reasoning = true;
  start();
  agent().set_thinking_level(ai::ThinkingLevel::kMax);
  EXPECT_EQ(agent().thinking_level(), ai::clamp_thinking_level(options.model, ai::ThinkingLevel::kMax));
  ai::Model plain = options.model;
  plain.reasoning = false;
  agent().set_model(plain);
  EXPECT_EQ(agent().thinking_level(), ai::ThinkingLevel::kOff);
  EXPECT_FALSE(agent().cycle_thinking_level());
  EXPECT_EQ(agent().session().settings().thinking_level, "off");
}

TEST_F(SessionMessages, ARecordThatCannotBeWrittenIsToldAndWrittenLater) {  // FF-26
  replies = {{.text = "one"}, {.text = "two"}};
  start();
  prompt("first");
  const std::filesystem::path file = *agent().session().file();
  int told = 0;
  agent().subscribe(
      [&](const SessionEvent& event) { told += std::holds_alternative<PersistenceFailed>(event) ? 1 : 0; });
  const std::filesystem::path away = folder / "elsewhere";
  std::filesystem::rename(file, away);
  std::filesystem::create_directory(file);  // nothing can be written there
  prompt("second");
  EXPECT_GE(told, 1);
  std::filesystem::remove(file);
  std::filesystem::rename(away, file);
  agent().set_name("n");
  EXPECT_NE(test::read_file(file).find("\"two\""), std::string::npos);
}

}  // namespace
}  // namespace tau::coding
