#include "coding/session_event.h"

#include <gtest/gtest.h>

namespace tau::coding {
namespace {

TEST(EventLines, ADeltaIsTheSameTextAsItsJsonValue) {  // MO-100, MO-101
  ai::AssistantMessage reply;
  reply.usage.input = 7;
  reply.usage.cost.total = 0.0006000000000000001;
  reply.content.emplace_back(ai::TextContent{});
  EventLines lines;
  for (const std::string delta : {"plain", "quote \" and \\ and \n", "\u2028\u00e9", "half \xED\xA0\xBD", ""}) {
    for (const ai::BlockKind kind : {ai::BlockKind::kText, ai::BlockKind::kThinking, ai::BlockKind::kToolCall}) {
      reply.usage.output += 1;
      const ai::StreamEvent event{ai::BlockDelta{kind, 0, delta}, reply};
      const agent::AgentEvent update = agent::MessageUpdate{reply, event};
      const SessionEvent session_event = AgentActivity{update};
      const auto value = to_json(session_event);
      ASSERT_TRUE(value);
      EXPECT_EQ(lines.line_of(session_event), json::to_text(*value) + "\n");
    }
  }
}

TEST(EventLines, OtherEventsAreTheirJsonAndThoseForPeopleAreNone) {
  EventLines lines;
  EXPECT_EQ(lines.line_of(AgentSettled{}), "{\"type\":\"agent_settled\"}\n");
  EXPECT_EQ(lines.line_of(PersistenceFailed{"x"}), "");
  const CompactionResult result{"s", "a1", 90, 12.5, {}, json::object{{"readFiles", json::array()}}};
  EXPECT_EQ(lines.line_of(CompactionStart{CompactionReason::kManual}),
            "{\"type\":\"compaction_start\",\"reason\":\"manual\"}\n");
  EXPECT_EQ(lines.line_of(CompactionEnd{CompactionReason::kOverflow, result, false, true, {}}),
            R"({"type":"compaction_end","reason":"overflow","result":{"summary":"s","firstKeptEntryId":"a1",)"
            R"("tokensBefore":90,"estimatedTokensAfter":12.5,"details":{"readFiles":[]}},"aborted":false,)"
            "\"willRetry\":true}\n");
  EXPECT_EQ(lines.line_of(SummaryRetryStart{{}}),
            "{\"type\":\"summarization_retry_attempt_start\",\"source\":\"branchSummary\"}\n");
  EXPECT_EQ(lines.line_of(BashOutput{"b", "x"}), "{\"type\":\"bash_execution_update\",\"id\":\"b\",\"delta\":\"x\"}\n");
}

}  // namespace
}  // namespace tau::coding
