// The golden cases of tests/fixtures/agent: 98 scripts, each played on the real loop and compared line by line with
// what pi 0.85.0 did (AG sections 2 to 7).
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "agent/scripted_run.h"

#include "support/fixture.h"

namespace {

using namespace tau;

/// Cases in which tau does something else on purpose. What it does instead is in tests/agent/expected/<case>.jsonl.
constexpr const char* kNoCallAfterAbort =
    "FF-17: after an abort no further model call is made; the aborted reply is tau's own";
constexpr const char* kEveryCallHasAResult = "FF-17: every call of an aborted batch gets a result";
constexpr const char* kHooksReplace =
    "hooks return new values instead of writing into live ones (design.md, section 4)";
constexpr const char* kTypedResult =
    "a tool's result is a typed value: content is always a list, empty lists are left out";

const std::map<std::string, std::string> kDeviations = {
    {"abort-in-before-hook", kEveryCallHasAResult},
    {"abort-mid-tool", kNoCallAfterAbort},
    {"abort-mid-tool-parallel", kNoCallAfterAbort},
    {"abort-mid-tool-sequential", kEveryCallHasAResult},
    {"abort-mid-tool-with-queues", "FF-17; steering stays in its queue instead of entering a turn that is lost"},
    {"abort-on-last-message-end", "FF-17; the follow-up stays in its queue instead of entering a turn that is lost"},
    {"abort-on-tool-message-end", kEveryCallHasAResult},
    {"abort-on-tool-start-parallel", kEveryCallHasAResult},
    {"added-tool-names", kTypedResult},
    {"continue-loop", "the context is the loop's own copy: the caller's list does not grow"},
    {"mutate-assistant-on-message-end", kHooksReplace},
    {"mutate-on-message-start", kHooksReplace},
    {"mutate-tool-result-on-message-end", kHooksReplace},
    {"tool-null-content", kTypedResult},
};

std::filesystem::path golden_folder() {
  return test::fixture_root() / "agent";
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  constexpr std::string_view kEnding = ".script.json";
  for (const auto& path : test::files_in(golden_folder(), std::string(kEnding))) {
    const std::string name = path.filename().string();
    names.push_back(name.substr(0, name.size() - kEnding.size()));
  }
  return names;
}

/// TAU_RECORD=<folder> keeps what was played, to compare it by hand.
void record(const std::string& name, const std::vector<json::value>& log) {
  const char* folder = std::getenv("TAU_RECORD");
  if (folder == nullptr) return;
  std::ofstream out(std::filesystem::path(folder) / (name + ".jsonl"));
  for (const json::value& line : log)
    out << json::to_text(line) << '\n';
}

class GoldenCase : public testing::TestWithParam<std::string> {};

TEST_P(GoldenCase, HappensAsRecorded) {
  const std::string& name = GetParam();
  const json::value script = test::read_json(golden_folder() / (name + ".script.json"));
  const std::vector<json::value> played = test::play_script(script.as_object());
  record(name, played);

  const auto folder = kDeviations.contains(name)
                          ? std::filesystem::path(TAU_SOURCE_DIR) / "tests" / "agent" / "expected"
                          : golden_folder();
  std::vector<json::value> expected = test::read_json_lines(folder / (name + ".jsonl"));
  for (std::size_t i = 0; i < std::max(played.size(), expected.size()); ++i) {
    ASSERT_LT(i, played.size()) << "nothing happened instead of " << json::to_text(expected[i]);
    ASSERT_LT(i, expected.size()) << "happened unexpectedly: " << json::to_text(played[i]);
    ASSERT_TRUE(json::equal(played[i], test::normalized(expected[i])))
        << "line " << i + 1 << "\n  played:   " << json::to_text(played[i])
        << "\n  expected: " << json::to_text(test::normalized(expected[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Agent, GoldenCase, testing::ValuesIn(case_names()), [](const auto& tested) {
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(GoldenCases, AreAllThere) {
  EXPECT_EQ(case_names().size(), 98U);
}

/// A deviation that no longer differs does not belong in the list.
TEST(GoldenCases, DeviationsDifferFromTheRecording) {
  for (const auto& [name, reason] : kDeviations) {
    const auto own = test::read_json_lines(std::filesystem::path(TAU_SOURCE_DIR) / "tests" / "agent" / "expected" /
                                           (name + ".jsonl"));
    const auto recorded = test::read_json_lines(golden_folder() / (name + ".jsonl"));
    bool equal = own.size() == recorded.size();
    for (std::size_t i = 0; equal && i < own.size(); ++i)
      equal = json::equal(test::normalized(own[i]), test::normalized(recorded[i]));
    EXPECT_FALSE(equal) << name;
  }
}

}  // namespace
