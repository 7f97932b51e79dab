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
}

}  // namespace
}  // namespace tau::coding
