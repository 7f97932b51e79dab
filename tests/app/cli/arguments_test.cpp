#include "app/cli/arguments.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "app/cli/shell_completion.h"

namespace tau::app {
namespace {

Arguments parse(std::vector<std::string> words) {
  return parse_arguments(words);
}

TEST(Arguments, PrintTakesTheNextWordAsMessageUnlessItLooksLikeAnOptionOrAFile) {
  EXPECT_EQ(parse({"-p", "hi"}).messages, std::vector<std::string>{"hi"});
  EXPECT_TRUE(parse({"-p", "@a.txt"}).messages.empty());
  EXPECT_EQ(parse({"-p", "@a.txt"}).files, std::vector<std::string>{"a.txt"});
  EXPECT_TRUE(parse({"-p", "--verbose"}).verbose);
  EXPECT_EQ(parse({"-p", "---rule"}).messages, std::vector<std::string>{"---rule"});  // CA-383
}

TEST(Arguments, WordsAfterTheDoubleDashAreMessagesOrFiles) {
  const Arguments a = parse({"--", "--model", "@x", "-p"});
  EXPECT_EQ(a.messages, (std::vector<std::string>{"--model", "-p"}));
  EXPECT_EQ(a.files, std::vector<std::string>{"x"});
  EXPECT_FALSE(a.print);
}

TEST(Arguments, ValueOptionsTakeTheNextWordWhateverItLooksLike) {
  EXPECT_EQ(parse({"--system-prompt", "-x"}).system_prompt, "-x");
  EXPECT_EQ(parse({"--model", "a", "--model", "b"}).model, "b");
}

TEST(Arguments, AMissingValueIsAnErrorThatNamesTheOption) {
  const Arguments a = parse({"--model"});
  ASSERT_EQ(a.errors.size(), 1u);
  EXPECT_NE(a.errors[0].find("--model requires a value"), std::string::npos);
}

TEST(Arguments, UnknownShortOptionsAreErrorsAtOnceAndNamesOfLongOnesAreKeptForExtensions) {
  EXPECT_EQ(parse({"-z"}).errors.size(), 1u);
  EXPECT_EQ(parse({"-"}).errors.size(), 1u);
  const Arguments a = parse({"--plan", "deep", "--fast", "--level=3"});
  ASSERT_EQ(a.unlisted.size(), 3u);
  EXPECT_EQ(a.unlisted[0].value, "deep");
  EXPECT_EQ(a.unlisted[1].value, std::nullopt);
  EXPECT_EQ(a.unlisted[2].name, "level");
  EXPECT_EQ(a.unlisted[2].value, "3");
}

TEST(Arguments, ListedOptionsDoNotTakeTheEqualsForm) {
  EXPECT_EQ(parse({"--model=x"}).unlisted.size(), 1u);
}

TEST(Arguments, TheNearestOptionIsOffered) {
  EXPECT_NE(unknown_option_error({"--contineu"}).find("Did you mean --continue?"), std::string::npos);
  EXPECT_EQ(unknown_option_error({"--zzzzzzzz"}).find("Did you mean"), std::string::npos);
}

TEST(Arguments, AnUnknownModeAndAProviderAloneAreErrors) {  // FF-97
  EXPECT_EQ(parse({"--mode", "jsn"}).errors.size(), 1u);
  EXPECT_EQ(parse({"--provider", "p1"}).errors.size(), 1u);
}

TEST(Arguments, ABogusThinkingLevelIsOnlyAWarning) {  // CA-384
  const Arguments a = parse({"--thinking", "bogus"});
  EXPECT_TRUE(a.errors.empty());
  EXPECT_EQ(a.warnings.size(), 1u);
  EXPECT_FALSE(a.thinking.has_value());
}

TEST(Arguments, ContradictingSessionFlagsAreErrors) {
  EXPECT_EQ(parse({"--fork", "x", "--continue"}).errors.size(), 1u);
  EXPECT_EQ(parse({"--session-id", "x", "--session", "y"}).errors.size(), 1u);
  EXPECT_EQ(parse({"--name", "  "}).errors.size(), 1u);
}

TEST(Arguments, TwoSourcesOfTheSessionAreAnError) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--session", "x", "--continue"}, {"-c", "-r"}, {"--no-session", "-c"}, {"--tools", "read", "--no-tools"}}) {
    EXPECT_EQ(parse(words).errors.size(), 1u) << words[0];
  }
}

TEST(Arguments, FlagsOfExtensionsAreTakenAndTheOthersAreErrors) {  // MO-6
  const Arguments a = parse({"--plan", "deep", "--fast=no", "--name-less"});
  const FlagCheck check = check_flags(a.unlisted, {{"plan", true}, {"fast", false}});
  ASSERT_EQ(check.values.size(), 2u);
  EXPECT_EQ(check.values[0].second, "deep");
  EXPECT_EQ(check.values[1].second, "true");
  ASSERT_EQ(check.errors.size(), 1u);
  EXPECT_TRUE(check.errors[0].starts_with("Unknown option: --name-less"));
  EXPECT_EQ(check_flags(parse({"--plan"}).unlisted, {{"plan", true}}).errors.size(), 1u);
}

TEST(Help, FitsAScreenAndEachTopicListsItsOptions) {
  const std::string overview = help_text("tau");
  EXPECT_LE(std::count(overview.begin(), overview.end(), '\n'), 24);
  EXPECT_TRUE(parse({"--help", "session"}).errors.empty());
  EXPECT_EQ(parse({"--help", "session"}).help_topic, "session");
  EXPECT_EQ(parse({"--help", "me"}).messages, std::vector<std::string>{"me"});
  EXPECT_NE(help_topic("tau", "session")->find("--continue, -c"), std::string::npos);
  const std::string session = *help_topic("tau", "session");
  EXPECT_LE(std::count(session.begin(), session.end(), '\n'), 24);
  EXPECT_FALSE(help_topic("tau", "nothing").has_value());
}

TEST(Completion, EveryOptionIsInEachScriptAndInTheManualPage) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(shell).value();
    for (const Option& option : options())
      EXPECT_NE(script.find(std::string(option.name)), std::string::npos) << shell << " " << option.name;
  }
  EXPECT_FALSE(completion_script("tcsh").has_value());
  EXPECT_NE(manual_page("1.0").find("\\-\\-no\\-context\\-files"), std::string::npos);
}

TEST(Arguments, ListsAreTrimmedAndEmptyNamesDropped) {
  EXPECT_EQ(*parse({"--tools", " read, ,bash "}).tools, (std::vector<std::string>{"read", "bash"}));
}

TEST(Options, NamesAreUniqueAndHelpListsEachOfThem) {
  std::set<std::string_view> names;
  const std::string help = *help_topic("tau", "all");
  const std::string overview = help_text("tau");
  for (const Option& option : options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_NE(help.find("--" + std::string(option.name)), std::string::npos) << option.name;
    EXPECT_NE(overview.find("--" + std::string(option.name)), std::string::npos) << option.name;
  }
}

}  // namespace
}  // namespace tau::app
