// Print and plain mode of the real executable.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "e2e/workplace.h"

namespace tau::test {
namespace {

class PrintMode : public testing::Test {
 protected:
  void SetUp() override { place.use_provider("openai-completions"); }
  Workplace place;
};

TEST_F(PrintMode, PipedTextFilesAndMessageBecomeOnePrompt) {  // MO-30, MO-32
  place.file("a.txt", "alpha\n");
  place.reply({.text = "ok"});
  const ProgramResult result = place.run({"-p", "@a.txt", "and args"}, "piped\n");
  EXPECT_EQ(result.out, "ok\n") << result.err;
  const std::string file = (place.project() / "a.txt").string();
  EXPECT_EQ(place.conversation(0).at(0), "user: piped<file name=\"" + file + "\">\nalpha\n\n</file>\nand args");
}

TEST_F(PrintMode, SeveralMessagesAreSentOneAfterTheOther) {
  place.reply({.text = "one"});
  place.reply({.text = "two"});
  EXPECT_EQ(place.run({"-p", "first", "second"}).out, "two\n");
  EXPECT_EQ(place.conversation(1), (std::vector<std::string>{"user: first", "assistant: one", "user: second"}));
}

TEST_F(PrintMode, TemplatesAreFilledIn) {
  std::filesystem::create_directories(place.agent() / "prompts");
  std::ofstream(place.agent() / "prompts/twice.md") << "Say $1 twice";
  place.reply({.text = "ok"});
  EXPECT_EQ(place.run({"-p", "/twice hello"}).out, "ok\n");
  EXPECT_EQ(place.conversation(0).at(0), "user: Say hello twice");
}

TEST_F(PrintMode, WithoutAnyPromptNothingIsSent) {
  const ProgramResult result = place.run({"-p"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_TRUE(place.server.requests().empty());
  EXPECT_TRUE(place.session_files().empty());  // an untouched start makes no file (FF-27)
}

TEST_F(PrintMode, ProjectInstructionsAreInTheSystemPrompt) {
  place.file("AGENTS.md", "Always answer in French.\n");
  place.reply({.text = "oui"});
  ASSERT_EQ(place.run({"-p", "hi"}).exit_code, 0);
  EXPECT_NE(place.server.requests().at(0).body.find("Always answer in French."), std::string::npos);
}

TEST_F(PrintMode, VersionAndHelpGoToStdout) {
  EXPECT_NE(place.run({"--version"}).out.find('.'), std::string::npos);
  EXPECT_NE(place.run({"--help"}).out.find("--continue"), std::string::npos);
}

TEST_F(PrintMode, AClosedReaderIsNoCrash) {
  ProgramOptions options{
      {"/bin/sh", "-c", "\"$TAU\" -p hi | true; echo done >&2"}, place.project(), place.environment, ""};
  options.environment["TAU"] = TAU_EXECUTABLE;
  place.reply({.text = std::string(300000, 'x')});
  const ProgramResult result = run_program(options);
  EXPECT_EQ(result.err, "done\n");
}

TEST_F(PrintMode, TheTourWorksWithoutAnyKey) {
  place.file("README.md", "# Harbour\n\nA ledger of berths.\n");
  place.file("src/main.c", "int main(void) { return 0; }\n");
  const ProgramResult result = place.run({"-p", "--provider", "scripted", "--model", "tour", "look around"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("A ledger of berths."), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(".c"), std::string::npos) << result.out;
  EXPECT_TRUE(place.server.requests().empty());
}

TEST_F(PrintMode, PlainModeStreamsTextAndEachToolRun) {
  place.file("README.md", "# Harbour\n");
  const ProgramResult result = place.run({"--plain", "-p", "--provider", "scripted", "--model", "tour", "look around"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("Let me look at what is here."), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("bash"), std::string::npos);
  EXPECT_NE(result.out.find("read README.md"), std::string::npos) << result.out;
}

TEST_F(PrintMode, AScriptOfOnesOwnIsPlayed) {
  place.file("s.json", R"({"turns":[{"text":"You said {{prompt}}."}]})");
  EXPECT_EQ(place.run({"-p", "--provider", "scripted", "--model", "s.json", "hello"}).out, "You said hello.\n");
  const ProgramResult missing = place.run({"-p", "--provider", "scripted", "--model", "no.json", "hello"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("no.json"), std::string::npos) << missing.err;
}

TEST_F(PrintMode, ASessionFileOfOnesChoiceIsWrittenAndContinued) {
  place.reply({.text = "one"});
  place.reply({.text = "two"});
  ASSERT_EQ(place.run({"--session", "./here.jsonl", "-p", "first"}).exit_code, 0);
  ASSERT_EQ(place.run({"--session", "./here.jsonl", "-p", "second"}).exit_code, 0);
  EXPECT_EQ(place.conversation(1).size(), 3u);
  EXPECT_TRUE(std::filesystem::exists(place.project() / "here.jsonl"));
}

}  // namespace
}  // namespace tau::test
