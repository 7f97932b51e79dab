#include "app/cli/arguments.h"

#include <set>

#include <gtest/gtest.h>

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

TEST(Arguments, ListsAreTrimmedAndEmptyNamesDropped) {
  EXPECT_EQ(*parse({"--tools", " read, ,bash "}).tools, (std::vector<std::string>{"read", "bash"}));
}

TEST(Options, NamesAreUniqueAndHelpListsEachOfThem) {
  std::set<std::string_view> names;
  const std::string help = help_text("tau");
  for (const Option& option : options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_NE(help.find("--" + std::string(option.name)), std::string::npos) << option.name;
  }
}

}  // namespace
}  // namespace tau::app
