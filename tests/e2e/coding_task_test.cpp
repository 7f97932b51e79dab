// A whole coding task with the real executable: read a file, edit it, run its test, answer. Over every wire API.
#include <algorithm>

#include <gtest/gtest.h>

#include "e2e/workplace.h"

namespace tau::test {
namespace {

class CodingTask : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    place.use_provider(GetParam());
    place.file("sum.sh", "#!/bin/sh\necho $(($1 - $2))\n");
    place.file("test.sh", "test \"$(sh sum.sh 2 3)\" = 5 && echo passed\n");
  }

  void script_the_task() {
    place.reply({.text = "I read it first.", .calls = {{"c1", "read", {{"path", "sum.sh"}}}}, .thinking = "look"});
    place.reply({.calls = {{"c2",
                            "edit",
                            {{"path", "sum.sh"},
                             {"edits", json::array{json::object{{"oldText", "$1 - $2"}, {"newText", "$1 + $2"}}}}}}}});
    place.reply({.calls = {{"c3", "bash", {{"command", "sh test.sh"}}}}});
    place.reply({.text = "Fixed: the sign was wrong."});
  }

  Workplace place;
};

TEST_P(CodingTask, ReadsEditsTestsAndAnswers) {
  script_the_task();
  const ProgramResult result = place.run({"-p", "Fix sum.sh"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "Fixed: the sign was wrong.\n");
  EXPECT_EQ(read_file(place.project() / "sum.sh"), "#!/bin/sh\necho $(($1 + $2))\n");

  ASSERT_EQ(place.server.requests().size(), 4u);
  const std::vector<std::string> last = place.conversation(3);
  ASSERT_GE(last.size(), 8u);
  EXPECT_EQ(last[0], "user: Fix sum.sh");
  EXPECT_NE(std::find(last.begin(), last.end(), "tool c1: #!/bin/sh\necho $(($1 - $2))\n"), last.end());
  EXPECT_NE(std::find(last.begin(), last.end(), "tool c3: passed\n"), last.end());
}

TEST_P(CodingTask, TheSessionFileHoldsEachMessageOnceAndInOrder) {
  script_the_task();
  ASSERT_EQ(place.run({"-p", "Fix sum.sh"}).exit_code, 0);
  std::vector<std::string> roles;
  for (const json::object& message : place.session_messages())
    roles.push_back(json::string_or(message, "role"));
  EXPECT_EQ(roles, (std::vector<std::string>{"user", "assistant", "toolResult", "assistant", "toolResult", "assistant",
                                             "toolResult", "assistant"}));
  EXPECT_EQ(json::string_or(place.session_lines()[0].get_object(), "type"), "session");
}

TEST_P(CodingTask, ContinueSendsTheWholeConversationAgain) {
  script_the_task();
  ASSERT_EQ(place.run({"-p", "Fix sum.sh"}).exit_code, 0);
  place.reply({.text = "It adds now."});
  const ProgramResult result = place.run({"--continue", "-p", "What did you change?"});
  EXPECT_EQ(result.out, "It adds now.\n") << result.err;

  std::vector<std::string> before = place.conversation(3);
  const std::vector<std::string> after = place.conversation(4);
  before.push_back("assistant: Fixed: the sign was wrong.");
  before.push_back("user: What did you change?");
  EXPECT_EQ(after, before);
  EXPECT_EQ(place.session_files().size(), 1u);
}

TEST_P(CodingTask, AToolThatFailsIsReportedToTheModelAndTheRunGoesOn) {
  place.reply({.calls = {{"c1", "read", {{"path", "missing.txt"}}}}});
  place.reply({.text = "There is no such file."});
  const ProgramResult result = place.run({"-p", "read it"});
  EXPECT_EQ(result.out, "There is no such file.\n") << result.err;
  EXPECT_NE(place.conversation(1).back().find("ENOENT"), std::string::npos);
}

TEST_P(CodingTask, ARunWithoutSessionLeavesNoFile) {
  place.reply({.text = "ok"});
  EXPECT_EQ(place.run({"--no-session", "-p", "hi"}).out, "ok\n");
  EXPECT_TRUE(place.session_files().empty());
}

INSTANTIATE_TEST_SUITE_P(Apis, CodingTask,
                         testing::Values("anthropic-messages", "openai-completions", "openai-responses"),
                         [](const auto& api) {
                           return api.param == "anthropic-messages"   ? "Anthropic"
                                  : api.param == "openai-completions" ? "OpenAi"
                                                                      : "OpenAiResponses";
                         });

}  // namespace
}  // namespace tau::test
