// Golden pairs: what the coding agent keeps, and what a model is sent of it (fixtures/projection).
#include <map>

#include <gtest/gtest.h>

#include "agent/agent_message.h"
#include "coding/roles/bash_execution.h"
#include "coding/roles/branch_summary.h"
#include "coding/roles/compaction_summary.h"
#include "coding/roles/convert_to_llm.h"
#include "coding/roles/custom.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

/// Cases where tau differs on purpose, and why.
const std::map<std::string, std::string, std::less<>> kDeviations = {
    {"assistant-null-content", "null content of a standard message reads as [] (AI-7)"},
    {"bash-excluded-truthy-number", "excludeFromContext is a boolean: any other value is no exclusion"},
    {"bash-exit-string", "an exit code is a number: a text is none"},
    {"bash-missing-timestamp", "messages have a time: a missing one is 0"},
    {"branch-summary-missing-summary", "a missing summary is empty, not the word undefined"},
    {"custom-missing-content", "missing content is [] (SES-86)"},
    {"custom-null-content", "null content is [] (SES-86)"},
    {"custom-number-content", "content that is neither text nor blocks is []"},
    {"user-null-content", "null content of a standard message reads as [] (AI-7)"},
    {"default-user-null-content", "null content of a standard message reads as [] (AI-7)"},
    {"block-images-null-content", "null content of a standard message reads as [] (AI-7)"},
};

/// Our own lead-in sentence in place of the golden one's mark.
std::string lead_of(const std::vector<ai::MessageRef>& projection) {
  const std::string text = ai::text_of(std::get<ai::UserMessage>(*projection.front()).content);
  return text.substr(0, text.find("\n\n<summary>\n"));
}

std::string with_leads(std::string text) {
  const std::pair<std::string, std::string> marks[] = {
      {"{{BRANCH_LEAD}}", lead_of(project(BranchSummary{}))},
      {"{{COMPACTION_LEAD}}", lead_of(project(CompactionSummary{}))},
  };
  for (const auto& [mark, lead] : marks) {
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.replace(at, mark.size(), lead);
    }
  }
  return text;
}

json::array convert(const json::object& test_case, std::vector<agent::AgentMessage>& input,
                    std::vector<ai::MessageRef>& output) {
  const json::object& options = test_case.at("options").as_object();
  const bool is_default = json::string_or(options, "converter") == "agent-default";
  for (const json::value& message : test_case.at("agentMessages").as_array()) {
    input.push_back((is_default ? agent::RoleSet{} : coding_roles()).read(message.as_object()));
  }
  output = is_default ? agent::standard_messages(input) : convert_to_llm(input, json::bool_or(options, "blockImages"));
  json::array out;
  for (const ai::MessageRef& message : output)
    out.push_back(ai::to_json(*message));
  return out;
}

TEST(Projection, AllGoldenCases) {
  int cases = 0;
  for (const auto& file : test::files_in(test::fixture_root() / "projection", ".json")) {
    const std::string name = file.stem().string();
    SCOPED_TRACE(name);
    const json::value test_case = test::read_json(file);
    const json::object& o = test_case.as_object();
    std::vector<agent::AgentMessage> input;
    std::vector<ai::MessageRef> output;
    const json::array got = convert(o, input, output);
    const auto expected = json::parse(with_leads(json::to_text(o.at("llmMessages"))), {.wtf8 = true});
    ASSERT_TRUE(expected);
    ++cases;
    EXPECT_EQ(json::equal(json::value(got), *expected), !kDeviations.contains(name))
        << "got " << json::to_text(got) << "\nexpected " << json::to_text(*expected);
    if (kDeviations.contains(name)) continue;
    // PR-2, PR-3: messages that pass unchanged are the same objects.
    const json::array& same = o.at("sameObject").as_array();
    ASSERT_EQ(same.size(), output.size());
    for (std::size_t i = 0; i < same.size(); ++i) {
      const auto from = same[i].as_int64();
      if (from < 0) continue;
      EXPECT_EQ(output[i].get(), input[static_cast<std::size_t>(from)].standard()) << i;
    }
  }
  EXPECT_EQ(cases, 93);
}

TEST(Projection, LeadInsAreOneSentenceThatEndsInAColon) {  // PR-8, PR-9
  for (const std::string& lead : {lead_of(project(BranchSummary{})), lead_of(project(CompactionSummary{}))}) {
    EXPECT_TRUE(lead.ends_with(':')) << lead;
    EXPECT_EQ(lead.find('\n'), std::string::npos);
    EXPECT_EQ(lead.find('.'), std::string::npos);
  }
}

TEST(Projection, AnExcludedCommandIsKeptButNotSent) {
  BashExecution bash;
  bash.command = "pwd";
  bash.exclude_from_context = true;
  const agent::AgentMessage message = agent::AgentMessage::of(bash);
  EXPECT_TRUE(convert_to_llm({message}).empty());
  EXPECT_EQ(json::string_or(message.to_json(), "command"), "pwd");
}

TEST(Roles, UnknownMembersAreWrittenBack) {  // AG-3
  const char* const stored[] = {
      R"({"role":"bashExecution","command":"a","output":"b","exitCode":3,"cancelled":false,"truncated":true,)"
      R"("fullOutputPath":"/x","timestamp":5,"excludeFromContext":false,"new":{"a":1}})",
      R"({"role":"custom","customType":"t","content":[{"type":"text","text":"x","mark":1}],"display":false,)"
      R"("details":null,"timestamp":5,"new":1})",
      R"({"role":"branchSummary","summary":"s","fromId":null,"timestamp":5,"new":[1]})",
      R"({"role":"compactionSummary","summary":"s","tokensBefore":12,"timestamp":5,"new":true})",
  };
  for (const char* text : stored) {
    const json::value o = *json::parse(text);
    const agent::AgentMessage message = coding_roles().read(o.as_object());
    EXPECT_EQ(message.unknown(), nullptr);
    EXPECT_EQ(json::to_text(message.to_json()), text);
  }
}

}  // namespace
}  // namespace tau::coding
