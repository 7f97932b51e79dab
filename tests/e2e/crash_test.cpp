// What survives when the program is killed or stopped in the middle of its work.
#include <signal.h>

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "e2e/workplace.h"

namespace tau::test {
namespace {

using namespace std::chrono_literals;

bool process_exists(const std::string& marker) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::error_code ignored;
    const auto cmdline = entry.path() / "cmdline";
    if (!std::filesystem::exists(cmdline, ignored)) continue;
    try {
      if (read_file(cmdline).find(marker) != std::string::npos) return true;
    } catch (const std::exception&) {
    }
  }
  return false;
}

bool gone_within(const std::string& marker, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (process_exists(marker)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

class Killed : public testing::Test {
 protected:
  void SetUp() override { place.use_provider("anthropic-messages"); }
  Workplace place;
};

TEST_F(Killed, TheFirstPromptIsOnDiskBeforeTheFirstRequestLeaves) {  // FF-27
  ScriptedAnswer never;
  never.silent = true;
  never.ending = ScriptedAnswer::Ending::kHang;
  place.server.add(never);
  Program program(place.options({"-p", "remember me"}));
  ASSERT_TRUE(place.server.wait_for_requests(1));
  program.send_signal(SIGKILL);
  program.wait();

  ASSERT_EQ(place.session_files().size(), 1u);
  ASSERT_EQ(place.session_messages().size(), 1u);
  place.reply({.text = "I do."});
  EXPECT_EQ(place.run({"--continue", "-p", "still there?"}).out, "I do.\n");
  EXPECT_EQ(place.conversation(1), (std::vector<std::string>{"user: remember me", "user: still there?"}));
}

TEST_F(Killed, InMidStreamTheSessionContinuesWithoutThePartialReply) {
  place.hanging_reply({.text = "This is only the beginning of a long answer"}, 700);
  Program program(place.options({"-p", "tell me"}));
  ASSERT_TRUE(place.server.wait_for_requests(1));
  std::this_thread::sleep_for(100ms);
  program.send_signal(SIGKILL);
  program.wait();

  EXPECT_EQ(place.session_messages().size(), 1u);
  place.reply({.text = "done"});
  EXPECT_EQ(place.run({"-c", "-p", "again"}).out, "done\n");
}

TEST_F(Killed, InMidToolTheNextRequestHoldsAResultForTheCall) {  // FF-6
  place.reply({.calls = {{"c1", "bash", {{"command", "sleep 31.7173"}}}}});
  Program program(place.options({"-p", "go"}));
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!process_exists("31.7173") && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(process_exists("31.7173"));
  program.send_signal(SIGKILL);
  program.wait();

  place.reply({.text = "done"});
  EXPECT_EQ(place.run({"-c", "-p", "again"}).out, "done\n");
  const std::vector<std::string> sent = place.conversation(1);
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[1], "call c1 bash");
  EXPECT_TRUE(sent[2].starts_with("tool c1: ")) << sent[2];
  EXPECT_EQ(sent[3], "user: again");
  // A killed program cannot end its children; the one it left behind is ended here.
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    try {
      if (read_file(entry.path() / "cmdline").find("31.7173") != std::string::npos) {
        kill(std::stoi(entry.path().filename()), SIGKILL);
      }
    } catch (const std::exception&) {
    }
  }
}

TEST_F(Killed, CtrlCAbortsTheRunEndsTheToolAndKeepsAValidSession) {
  place.reply({.calls = {{"c1", "bash", {{"command", "sleep 32.7173"}}}, {"c2", "bash", {{"command", "echo two"}}}}});
  Program program(place.options({"-p", "go"}));
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!process_exists("32.7173") && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(process_exists("32.7173"));
  program.send_signal(SIGINT);
  const ProgramResult result = program.wait(10s);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(result.signal, 0);
  EXPECT_TRUE(gone_within("32.7173", 1s));

  // Every call of the batch has its result (FF-17), so the session goes on.
  std::vector<std::string> roles;
  for (const json::object& message : place.session_messages())
    roles.push_back(json::string_or(message, "role"));
  EXPECT_EQ(std::count(roles.begin(), roles.end(), "toolResult"), 2);
  place.reply({.text = "fine"});
  EXPECT_EQ(place.run({"-c", "-p", "next"}).out, "fine\n");
}

TEST_F(Killed, CtrlCInMidStreamKeepsWhatWasReceived) {
  place.hanging_reply({.text = "Half of the answer is here and the rest never comes"}, 900);
  Program program(place.options({"-p", "go"}));
  ASSERT_TRUE(place.server.wait_for_requests(1));
  std::this_thread::sleep_for(100ms);
  program.send_signal(SIGINT);
  const ProgramResult result = program.wait(5s);
  EXPECT_EQ(result.exit_code, 1);
  const std::vector<json::object> messages = place.session_messages();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(json::string_or(messages[1], "stopReason"), "aborted");
}

TEST_F(Killed, OnTermAndHangupToolsEndAndTheExitCodeSaysWhichSignal) {  // FF-63, MO-50
  for (const auto& [signal, code] : {std::pair{SIGTERM, 143}, std::pair{SIGHUP, 129}}) {
    place.reply({.calls = {{"c1", "bash", {{"command", "setsid sleep 33.7173 & sleep 33.7173"}}}}});
    Program program(place.options({"-p", "go"}));
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!process_exists("33.7173") && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(10ms);
    program.send_signal(signal);
    EXPECT_EQ(program.wait(3s).exit_code, code);
    EXPECT_TRUE(gone_within("33.7173", 1s));
  }
}

}  // namespace
}  // namespace tau::test
