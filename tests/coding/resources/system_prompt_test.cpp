#include "coding/resources/system_prompt.h"

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::coding {
namespace {

SystemPromptParts parts() {
  SystemPromptParts made;
  made.tools = {{"read", "read a file", {"Read files with read."}},
                {"bash", "run a command", {"Shared rule.", "Read files with read."}},
                {"quiet", std::nullopt, {"Shared rule."}}};
  made.cwd = "/work/here";
  return made;
}

/// Whether the pieces occur in this order.
testing::AssertionResult in_order(const std::string& text, const std::vector<std::string>& pieces) {
  std::size_t at = 0;
  for (const std::string& piece : pieces) {
    at = text.find(piece, at);
    if (at == std::string::npos)
      return testing::AssertionFailure() << "\"" << piece << "\" is missing or out of place in\n" << text;
    at += piece.size();
  }
  return testing::AssertionSuccess();
}

std::size_t count(std::string_view text, std::string_view piece) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(piece, at)) != std::string_view::npos; at += piece.size())
    ++n;
  return n;
}

TEST(SystemPrompt, ThePartsStandInTheirOrder) {  // CA-101
  SystemPromptParts all = parts();
  all.append = {"First addition.", "Second addition."};
  all.context_files = {{"/a/AGENTS.md", "Rule A."}, {"/b/AGENTS.md", "Rule B."}};
  Skill skill;
  skill.name = "s";
  skill.description = "d";
  skill.file = "/s/SKILL.md";
  all.skills = {skill};
  all.documentation = "/opt/tau";
  const std::string text = build_system_prompt(all);
  EXPECT_TRUE(in_order(
      text, {"tau", "Available tools:\n- read: read a file\n- bash: run a command\n", "Guidelines:\n",
             "- Read files with read.\n", "- Shared rule.\n", "/opt/tau", "\n\nFirst addition.\n\nSecond addition.",
             "\n\n<project_context>\n\n",
             "<project_instructions path=\"/a/AGENTS.md\">\nRule A.\n</project_instructions>\n\n",
             "<project_instructions path=\"/b/AGENTS.md\">\nRule B.\n</project_instructions>\n\n</project_context>\n",
             "<available_skills>", "</available_skills>\nCurrent working directory: /work/here"}));
  EXPECT_TRUE(text.ends_with("/work/here"));
  EXPECT_EQ(text.find("quiet"), std::string::npos);  // no snippet, not listed
  EXPECT_EQ(count(text, "Shared rule."), 1U);        // guidelines are said once
  EXPECT_EQ(count(text, "Read files with read."), 1U);
}

TEST(SystemPrompt, SearchingWithBashIsAdvisedOnlyWithoutSearchTools) {  // CA-101
  SystemPromptParts some = parts();
  const std::string advice = "search files with bash";
  EXPECT_NE(build_system_prompt(some).find(advice), std::string::npos);
  some.tools.push_back({"grep", "search", {}});
  EXPECT_EQ(build_system_prompt(some).find(advice), std::string::npos);
  EXPECT_NE(build_system_prompt({.cwd = "/x"}).find("(none)"), std::string::npos);
}

TEST(SystemPrompt, ACustomTextReplacesOnlyOurOwn) {  // CA-102
  SystemPromptParts custom = parts();
  custom.custom = "You are a parrot.";
  custom.append = {"Added."};
  EXPECT_EQ(build_system_prompt(custom), "You are a parrot.\n\nAdded.\nCurrent working directory: /work/here\n");
}

TEST(SystemPrompt, SkillsNeedAToolThatReads) {  // CA-101
  SystemPromptParts some = parts();
  Skill skill;
  skill.name = "s";
  some.skills = {skill};
  some.tools = {{"edit", "edit", {}}};
  EXPECT_EQ(build_system_prompt(some).find("available_skills"), std::string::npos);
}

TEST(PromptFiles, TheProjectsComeFirstWhenItIsTrusted) {  // CA-105
  const test::TemporaryFolder folder;
  folder.write("agent/SYSTEM.md", "\xEF\xBB\xBFuser");
  folder.write("agent/APPEND_SYSTEM.md", "user's addition");
  folder.write("cwd/.pi/SYSTEM.md", "project");
  const PromptFiles trusted = find_prompt_files(folder / "agent", folder / "cwd", true);
  EXPECT_EQ(trusted.system, "project");
  EXPECT_EQ(trusted.append, "user's addition");
  EXPECT_EQ(find_prompt_files(folder / "agent", folder / "cwd", false).system, "user");
  EXPECT_FALSE(find_prompt_files(folder / "none", folder / "cwd", false).system);
}

TEST(PromptArguments, AnExistingFileIsReadAnythingElseIsText) {  // CA-104
  const test::TemporaryFolder folder;
  folder.write("p.md",
               "\xEF\xBB\xBF"
               "From the file.");
  EXPECT_EQ(prompt_argument("p.md", folder.path()).value(), "From the file.");
  EXPECT_EQ(prompt_argument("Be brief.", folder.path()).value(), "Be brief.");
  EXPECT_EQ(prompt_argument(std::string(5000, 'x'), folder.path()).value(), std::string(5000, 'x'));
}

}  // namespace
}  // namespace tau::coding
