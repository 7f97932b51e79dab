// Every run of every test of this program is checked against the invariants (debug builds), not only those whose test
// thought of it; and the check itself is seen to work.
#include <gtest/gtest.h>

#include "agent/builders.h"
#include "agent/check_transcript.h"

#include "support/run.h"

namespace {

using namespace tau;
using namespace agent;

void fail_the_test(std::string_view when, std::span<const Violation> violations) {
  for (const Violation& violation : violations) {
    ADD_FAILURE() << violation.rule << ' ' << when << ", message " << violation.position << ": " << violation.what;
  }
}

class Invariants : public testing::Environment {
 public:
  void SetUp() override { set_violation_reporter(&fail_the_test); }
};
[[maybe_unused]] const testing::Environment* const kInvariants =
    testing::AddGlobalTestEnvironment(new Invariants);  // NOLINT(bugprone-unhandled-exception-at-new)

std::vector<std::string> reported;

void collect(std::string_view when, std::span<const Violation> violations) {
  for (const Violation& violation : violations)
    reported.push_back(std::string(violation.rule) + ' ' + std::string(when));
}

TEST(CheckRun, ARunThatBreaksARuleIsReportedInDebugBuilds) {
  reported.clear();
  const ViolationReporter previous = set_violation_reporter(&collect);
  asio::io_context io;
  test::FauxProvider provider;
  provider.replies = {test::text_reply("hello")};
  Agent agent(io.get_executor(), test::faux_options(provider, {}));
  ai::ToolResultMessage stray;
  stray.tool_call_id = "nobody";
  std::vector<AgentMessage> prompts{AgentMessage(std::move(stray))};
  test::run(io, agent.prompt(std::move(prompts)));
  set_violation_reporter(previous);
#ifdef NDEBUG
  EXPECT_TRUE(reported.empty());
#else
  EXPECT_EQ(reported, (std::vector<std::string>{"IV-2 before a model call", "IV-2 at the end of a run"}));
#endif
}

}  // namespace
