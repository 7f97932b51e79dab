// Whatever is wrong: one clear line on stderr that says what, where and what to do; exit code 1; nothing lost.
#include <algorithm>

#include <gtest/gtest.h>

#include "e2e/workplace.h"

namespace tau::test {
namespace {

class BadInput : public testing::Test {
 protected:
  void SetUp() override { place.use_provider("anthropic-messages"); }

  void expect_error(const ProgramResult& result, const std::vector<std::string>& parts) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    for (const std::string& part : parts)
      EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_LE(std::count(result.err.begin(), result.err.end(), '\n'), 3) << result.err;
  }

  Workplace place;
};

TEST_F(BadInput, AnUnknownFlag) {
  expect_error(place.run({"-p", "x", "--contineu"}), {"--contineu", "--continue"});
}

TEST_F(BadInput, AFileThatIsNotThere) {
  expect_error(place.run({"-p", "x", "@no.txt"}), {"no.txt", "not found"});
}

TEST_F(BadInput, AFolderAsFile) {
  expect_error(place.run({"-p", "x", "@."}), {place.project().string()});
}

TEST_F(BadInput, ABrokenModelsJsonIsNamedWithItsPlaceAndKept) {
  std::filesystem::path models = place.agent() / "models.json";
  {
    std::ofstream(models) << "{\"providers\": [\n";
  }
  expect_error(place.run({"-p", "x"}), {models.string(), "line 2"});
  EXPECT_EQ(read_file(models), "{\"providers\": [\n");
}

TEST_F(BadInput, ABrokenSettingsJsonIsAWarningAndTheRunGoesOn) {  // MO-14, FF-115
  std::filesystem::path settings = place.agent() / "settings.json";
  {
    std::ofstream(settings) << "{\"defaultProvider\": \"local\",}";
  }
  place.reply({.text = "ok"});
  const ProgramResult result = place.run({"--model", "local/m1", "-p", "x"});
  EXPECT_EQ(result.out, "ok\n");
  EXPECT_NE(result.err.find(settings.string()), std::string::npos) << result.err;
  EXPECT_EQ(read_file(settings), "{\"defaultProvider\": \"local\",}");
}

TEST_F(BadInput, AnUnknownProviderOrModel) {
  expect_error(place.run({"--provider", "nobody", "--model", "m", "-p", "x"}), {"nobody"});
  expect_error(place.run({"--model", "no-such-model-anywhere", "-p", "x"}), {"no-such-model-anywhere"});
}

TEST_F(BadInput, NoKeyAndNoModelSaysHowToGetOne) {
  std::filesystem::remove(place.agent() / "models.json");
  std::filesystem::remove(place.agent() / "settings.json");
  expect_error(place.run({"-p", "x"}), {"ANTHROPIC_API_KEY", "models.json", "--model tour"});
}

TEST_F(BadInput, AModelWhoseProviderHasNoKeyNamesTheVariable) {
  expect_error(place.run({"--model", "anthropic/claude-sonnet-4-5", "-p", "x"}), {"ANTHROPIC_API_KEY"});
}

TEST_F(BadInput, AServerThatIsDown) {
  std::ofstream(place.agent() / "models.json") << models_json("anthropic-messages", "http://127.0.0.1:1");
  std::ofstream(place.agent() / "settings.json")
      << R"({"defaultProvider":"local","defaultModel":"m1","retry":{"enabled":false}})";
  expect_error(place.run({"-p", "x"}), {"127.0.0.1:1"});
  EXPECT_EQ(place.session_messages().size(), 2u);  // the prompt and the failed reply
}

TEST_F(BadInput, StatusesThatMeanNo) {
  place.server.add(json_answer(401, R"({"type":"error","error":{"type":"authentication_error","message":"bad key"}})"));
  expect_error(place.run({"-p", "x"}), {"401", "bad key"});
  EXPECT_EQ(place.server.requests().size(), 1u);
}

TEST_F(BadInput, StatusesThatMeanLaterAreRetried) {  // FF-44, FF-49
  place.server.add(json_answer(429, R"({"type":"error","error":{"type":"rate_limit_error","message":"rate limit"}})"));
  place.server.add(json_answer(500, R"({"type":"error","error":{"type":"api_error","message":"oops"}})"));
  place.reply({.text = "at last"});
  const ProgramResult result = place.run({"-p", "x"});
  EXPECT_EQ(result.out, "at last\n") << result.err;
  EXPECT_EQ(place.server.requests().size(), 3u);
}

TEST_F(BadInput, GarbageInsteadOfAStream) {
  std::ofstream(place.agent() / "settings.json")
      << R"({"defaultProvider":"local","defaultModel":"m1","retry":{"enabled":false}})";
  place.server.add(sse_answer("\x00\xff\xfe garbage\n\n{]}"));
  expect_error(place.run({"-p", "x"}), {"ended"});
}

TEST_F(BadInput, ASessionThatIsNone) {  // FF-28
  const auto notes = place.file("notes.md", "# Notes\n");
  expect_error(place.run({"--session", notes.string(), "-p", "x"}), {"notes.md"});
  EXPECT_EQ(read_file(notes), "# Notes\n");
}

TEST_F(BadInput, TheKeyNeverShows) {  // FF-108
  place.server.add(json_answer(401, R"({"error":{"message":"the key sk-local-test is wrong"}})"));
  const ProgramResult result = place.run({"-p", "x"});
  EXPECT_EQ(result.err.find("sk-local-test"), std::string::npos) << result.err;
  EXPECT_EQ(read_file(place.session_files().at(0)).find("sk-local-test"), std::string::npos);
}

TEST_F(BadInput, AReplyThatWasCutSaysSo) {  // FF-97
  place.reply({.text = "only half", .stop = "length"});
  const ProgramResult result = place.run({"-p", "x"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "only half\n");
  EXPECT_NE(result.err.find("cut"), std::string::npos) << result.err;
}

TEST_F(BadInput, AFolderThatWasDeleted) {  // FF-117
  ProgramOptions options{{"/bin/sh", "-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$TAU\" -p hi"},
                         place.project(),
                         place.environment,
                         ""};
  options.environment["TAU"] = TAU_EXECUTABLE;
  expect_error(run_program(options), {"folder"});
}

}  // namespace
}  // namespace tau::test
