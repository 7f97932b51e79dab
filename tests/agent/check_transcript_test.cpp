#include "agent/check_transcript.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "agent/role_set.h"

namespace {

using namespace tau;
using agent::AgentMessage;

AgentMessage message(std::string_view text) {
  return agent::RoleSet().read(json::parse(text)->as_object());
}

AgentMessage user() {
  return message(R"({"role":"user","content":"go","timestamp":1})");
}
AgentMessage calls(std::string_view blocks, std::string_view stop = "toolUse") {
  return message(R"({"role":"assistant","content":[)" + std::string(blocks) + R"(],"stopReason":")" +
                 std::string(stop) + R"(","timestamp":1})");
}
AgentMessage result(std::string id, std::string tool = "ls") {
  return AgentMessage(ai::ToolResultMessage{std::move(id), std::move(tool), {}, {}, {}, {}, false, 1, {}});
}
constexpr std::string_view kOne = R"({"type":"toolCall","id":"c1","name":"ls","arguments":{}})";
constexpr std::string_view kTwo = R"({"type":"toolCall","id":"c1","name":"ls","arguments":{}},
                                     {"type":"toolCall","id":"c2","name":"ls","arguments":{}})";

std::vector<std::string> rules(const std::vector<AgentMessage>& messages) {
  std::vector<std::string> out;
  for (const agent::Violation& violation : agent::check_transcript(messages))
    out.push_back(std::to_string(violation.position) + " " + std::string(violation.rule));
  return out;
}

using Rules = std::vector<std::string>;

TEST(CheckTranscript, AProperConversationHasNoViolation) {
  EXPECT_EQ(rules({user(), calls(kTwo), result("c1"), result("c2"), user(), calls("", "stop")}), Rules{});
  EXPECT_EQ(rules({}), Rules{});
}

TEST(CheckTranscript, CallsWithoutResultAreLegal) {  // AG-52
  EXPECT_EQ(rules({user(), calls(kTwo), result("c2"), user()}), Rules{});
}

TEST(CheckTranscript, AResultNeedsItsCall) {
  EXPECT_EQ(rules({user(), calls(kOne), result("c9")}), Rules{"2 IV-2"});
  EXPECT_EQ(rules({result("c1")}), Rules{"0 IV-2"});
}

TEST(CheckTranscript, AResultComesOnce) {
  EXPECT_EQ(rules({user(), calls(kOne), result("c1"), result("c1")}), Rules{"3 IV-2"});
}

TEST(CheckTranscript, NothingStandsBetweenAReplyAndItsResults) {
  EXPECT_EQ(rules({calls(kTwo), result("c1"), user(), result("c2")}), Rules{"3 IV-2"});
  EXPECT_EQ(rules({calls(kOne), message(R"({"role":"poll"})"), result("c1")}), Rules{"2 IV-2"});
}

TEST(CheckTranscript, AResultBelongsToTheNearestReply) {
  EXPECT_EQ(rules({calls(kOne), calls("", "stop"), result("c1")}), Rules{"2 IV-2"});
}

TEST(CheckTranscript, AResultNamesTheToolOfItsCall) {
  EXPECT_EQ(rules({calls(kOne), result("c1", "rm")}), Rules{"1 IV-2"});
}

TEST(CheckTranscript, APartialReplyIsNoPartOfATranscript) {
  EXPECT_EQ(rules({user(), calls("", "pending")}), Rules{"1 IV-7"});
}

TEST(CheckTranscript, RequiredFieldsAndKnownBlocks) {  // IV-1
  EXPECT_EQ(rules({calls(R"({"type":"toolCall","id":"","name":"","arguments":{}})")}), (Rules{"0 IV-1", "0 IV-1"}));
  EXPECT_EQ(rules({calls(R"({"type":"hologram"})", "stop")}), Rules{"0 IV-1"});
  EXPECT_EQ(rules({message(R"({"role":"user","content":[{"type":"hologram"}],"timestamp":1})")}), Rules{"0 IV-1"});
  EXPECT_EQ(rules({message(R"({"content":"who said this?"})")}), Rules{"0 IV-1"});
}

TEST(CheckConversion, AChangedOrderIsFound) {  // IV-4
  const std::vector<AgentMessage> messages{user(), user(), user()};
  std::vector<ai::MessageRef> converted = agent::standard_messages(messages);
  converted.insert(converted.begin() + 1, ai::make_message(ai::UserMessage{"made anew", 1, {}}));
  EXPECT_TRUE(agent::check_conversion(messages, converted).empty());
  converted.erase(converted.begin());
  EXPECT_TRUE(agent::check_conversion(messages, converted).empty());
  std::swap(converted[1], converted[2]);
  ASSERT_EQ(agent::check_conversion(messages, converted).size(), 1U);
  EXPECT_EQ(agent::check_conversion(messages, converted)[0].position, 2U);
}

TEST(CheckConversion, ARepeatedMessageIsFound) {
  const std::vector<AgentMessage> messages{user(), user()};
  std::vector<ai::MessageRef> converted = agent::standard_messages(messages);
  converted.push_back(converted.back());
  EXPECT_EQ(agent::check_conversion(messages, converted).size(), 1U);
}

}  // namespace
