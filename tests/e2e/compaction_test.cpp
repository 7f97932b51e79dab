// Compaction as a user meets it: the real executable against a server on the loopback interface.
#include <signal.h>

#include <gtest/gtest.h>

#include "e2e/workplace.h"

namespace tau::test {
namespace {

ScriptedAnswer too_long() {
  return json_answer(400, R"({"type":"error","error":{"type":"invalid_request_error",)"
                          R"("message":"prompt is too long: 210000 tokens > 200000 maximum"}})");
}

class Compaction : public testing::Test {
 protected:
  void use(const std::string& compaction) {
    place.use_provider("anthropic-messages");
    std::ofstream(place.agent() / "settings.json")
        << R"({"defaultProvider":"local","defaultModel":"m1","retry":{"baseDelayMs":20},"compaction":)" << compaction
        << "}";
  }

  std::vector<std::string> entry_types() const {
    std::vector<std::string> types;
    for (const json::value& line : place.session_lines())
      types.push_back(json::string_or(line.as_object(), "type"));
    return types;
  }

  int compactions() const {
    const std::vector<std::string> types = entry_types();
    return static_cast<int>(std::count(types.begin(), types.end(), "compaction"));
  }

  /// A session of two finished turns.
  void talk() {
    place.reply({.text = "One."});
    place.reply({.text = "Two."});
    ASSERT_EQ(place.run({"-p", "first"}).exit_code, 0);
    ASSERT_EQ(place.run({"-c", "-p", "second"}).exit_code, 0);
  }

  Workplace place;
};

TEST_F(Compaction, ARequestThatDoesNotFitIsMadeAgainWithASummary) {  // SES-125
  use(R"({"keepRecentTokens":1})");
  talk();
  place.server.add(too_long());
  place.reply({.text = "SUMMARY"});
  place.reply({.text = "It fits now."});
  const ProgramResult result = place.run({"-c", "-p", "third"});
  EXPECT_EQ(result.out, "It fits now.\n") << result.err;
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(compactions(), 1);
  const std::vector<std::string> sent = place.conversation(4);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_NE(sent[0].find("SUMMARY"), std::string::npos);
  EXPECT_EQ(sent[1], "user: third");
}

TEST_F(Compaction, AServerThatNeverTakesItIsNotAskedForEver) {  // FF-35
  use(R"({"keepRecentTokens":1})");
  talk();
  place.server.answer_with([](const RecordedRequest&) { return too_long(); });
  const ProgramResult result = place.run({"-c", "-p", "third"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("too long"), std::string::npos) << result.err;
  EXPECT_LE(place.server.requests().size(), 5u);  // two of before, the prompt, two for summaries at most
  EXPECT_EQ(compactions(), 0);
  // The session stays usable: what did not fit is compacted before the next prompt.
  place.reply({.text = "SUMMARY"});
  place.reply({.text = "Back."});
  EXPECT_EQ(place.run({"-c", "-p", "fourth"}).out, "Back.\n");
}

TEST_F(Compaction, ALargeResultIsCompactedInsideTheRun) {  // FF-40
  use(R"({"reserveTokens":195000,"keepRecentTokens":100})");
  place.file("big.txt", std::string(45000, 'x') + "\n");
  place.reply({.text = "Hello."});
  ASSERT_EQ(place.run({"-p", "first"}).exit_code, 0);
  place.reply({.calls = {{"c1", "bash", {{"command", "cat big.txt"}}}}});
  place.reply({.text = "SUMMARY OF THE FIRST TURN"});
  place.reply({.text = "SUMMARY OF THE BEGINNING"});
  place.reply({.text = "I have read it."});
  const ProgramResult result = place.run({"-c", "-p", "read it", "--mode", "json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(R"("type":"compaction_start","reason":"threshold")"), std::string::npos);
  EXPECT_NE(result.out.find("I have read it."), std::string::npos) << result.out;
  EXPECT_EQ(compactions(), 1);
  const std::vector<std::string> sent = place.conversation(4);
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_NE(sent[0].find("SUMMARY OF THE FIRST TURN"), std::string::npos);
  EXPECT_EQ(sent[1], "call c1 bash");
  EXPECT_TRUE(sent[2].starts_with("tool c1: xxx"));
}

TEST_F(Compaction, KilledDuringACompactionTheSessionIsWhole) {
  use(R"({"keepRecentTokens":1})");
  talk();
  place.server.add(too_long());
  place.hanging_reply({.text = "This summary never comes to its end"}, 600);
  {
    Program program(place.options({"-c", "-p", "third"}));
    ASSERT_TRUE(place.server.wait_for_requests(4));
    program.send_signal(SIGKILL);
    program.wait();
  }
  EXPECT_EQ(compactions(), 0);
  place.reply({.text = "SUMMARY"});
  place.reply({.text = "Nothing is lost."});
  EXPECT_EQ(place.run({"-c", "-p", "fourth"}).out, "Nothing is lost.\n");
  EXPECT_EQ(compactions(), 1);
  EXPECT_EQ(place.session_files().size(), 1u);
  EXPECT_EQ(json::string_or(place.session_messages().at(0), "role"), "user");
}

}  // namespace
}  // namespace tau::test
