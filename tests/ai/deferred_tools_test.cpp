#include "ai/deferred_tools.h"

#include <string>

#include <gtest/gtest.h>

namespace tau::ai {
namespace {

Tool tool(std::string name, std::string description = {}) {
  return {std::move(name), std::move(description), {}, {}};
}

MessageRef reply(std::vector<std::string> names) {
  AssistantMessage m;
  for (std::string& name : names) {
    ToolCall call;
    call.name = std::move(name);
    m.content.emplace_back(std::move(call));
  }
  return make_message(std::move(m));
}

MessageRef result(std::vector<std::string> added) {
  ToolResultMessage m;
  m.added_tool_names = std::move(added);
  return make_message(std::move(m));
}

std::string names(const std::vector<Tool>& tools) {
  std::string out;
  for (const Tool& t : tools)
    out += (out.empty() ? "" : " ") + t.name;
  return out;
}

// AI-77, AI-78
TEST(DeferredTools, AppearWhereAResultNamesThemFirst) {
  const std::vector<Tool> tools{tool("late"), tool("early"), tool("later")};
  const std::vector<MessageRef> messages{reply({"early"}), result({"late", "unknown"}), reply({"late"}),
                                         result({"late", "later"})};
  const ToolSplit split = split_tools(tools, messages, true);
  EXPECT_EQ(names(split.immediate), "early");
  EXPECT_EQ(names(split.deferred), "late later");
  ASSERT_EQ(split.added_at.size(), 2U);
  EXPECT_EQ(names(split.added_at.at(1)), "late");
  EXPECT_EQ(names(split.added_at.at(3)), "later");
}

TEST(DeferredTools, AToolThatWasCalledBeforeIsImmediate) {
  const ToolSplit split = split_tools({tool("a")}, {reply({"a"}), result({"a"})}, true);
  EXPECT_EQ(names(split.immediate), "a");
  EXPECT_TRUE(split.added_at.empty());
}

TEST(DeferredTools, AreImmediateWhereTheApiHasNone) {
  const ToolSplit split = split_tools({tool("a"), tool("b")}, {result({"a"})}, false);
  EXPECT_EQ(names(split.immediate), "a b");
  EXPECT_TRUE(split.deferred.empty());
  EXPECT_TRUE(split.added_at.empty());
}

TEST(DeferredTools, OfEqualNamesTheLastDefinitionCounts) {
  const auto lower = [](const std::string& name) { return name == "A" ? std::string("a") : name; };
  const ToolSplit split = split_tools({tool("a", "old"), tool("b"), tool("A", "new")}, {result({"a"})}, true, lower);
  EXPECT_EQ(names(split.immediate), "b");
  ASSERT_EQ(split.deferred.size(), 1U);
  EXPECT_EQ(split.deferred[0].description, "new");
  EXPECT_EQ(names(split_tools({tool("a", "old"), tool("b"), tool("A", "new")}, {}, true, lower).immediate), "A b");
}

}  // namespace
}  // namespace tau::ai
