#include "coding/resources/prompt_templates.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::coding {
namespace {

json::value fixture(const std::string& name) {
  return test::read_json(test::fixture_root() / "templates" / name);
}

std::vector<std::string> texts(const json::value& list) {
  std::vector<std::string> out;
  for (const json::value& item : list.as_array())
    out.emplace_back(json::view(item.as_string()));
  return out;
}

// FF-116 wins over these golden cases.
const std::map<std::string, std::vector<std::string>> kDifferentArguments = {
    {"\"\" x", {"", "x"}},                              // an empty text is an argument
    {"'' ''", {"", ""}},                                // the same
    {"\"a \\\" b\"", {"a \\", "b\""}},                  // the last quote is never closed: text
    {"\"unterminated arg", {"\"unterminated", "arg"}},  // the same
};

TEST(TemplateArguments, GoldenCases) {  // CA-134
  std::set<std::string> different;
  const json::value file = fixture("parse-args.json");
  for (const json::value& one : file.as_array()) {
    const std::string input(json::view(one.at("input").as_string()));
    SCOPED_TRACE(input);
    const auto ours = kDifferentArguments.find(input);
    if (ours != kDifferentArguments.end()) different.insert(input);
    EXPECT_EQ(parse_arguments(input), ours != kDifferentArguments.end() ? ours->second : texts(one.at("args")));
  }
  EXPECT_EQ(different.size(), kDifferentArguments.size());
}

TEST(TemplateArguments, QuotesAreReadAsPeopleMeanThem) {  // FF-116
  using List = std::vector<std::string>;
  EXPECT_EQ(parse_arguments("\"\" b"), (List{"", "b"}));
  EXPECT_EQ(parse_arguments("doesn't matter"), (List{"doesn't", "matter"}));
  EXPECT_EQ(parse_arguments("\"a b\" 'c d' e\nf"), (List{"a b", "c d", "e", "f"}));
  EXPECT_EQ(parse_arguments("say \"hi"), (List{"say", "\"hi"}));
  EXPECT_EQ(parse_arguments("it's not John's"), (List{"it's", "not", "John's"}));
  EXPECT_EQ(parse_arguments("'tis what it's"), (List{"'tis", "what", "it's"}));
  EXPECT_EQ(parse_arguments("'don't touch' x"), (List{"don't touch", "x"}));
  EXPECT_EQ(parse_arguments("--flag='x y'"), (List{"--flag=x y"}));
  EXPECT_EQ(parse_arguments("dogs' tails 'a b'"), (List{"dogs'", "tails", "a b"}));
}

TEST(TemplateFilling, GoldenCases) {  // CA-135
  const json::value file = fixture("substitute.json");
  for (const json::value& one : file.as_array()) {
    const std::string content(json::view(one.at("content").as_string()));
    SCOPED_TRACE(content);
    EXPECT_EQ(fill_template(content, texts(one.at("args"))), json::view(one.at("result").as_string()));
  }
}

TEST(TemplateExpansion, GoldenCases) {  // CA-133
  const json::value file = fixture("expand.json");
  std::vector<PromptTemplate> templates;
  for (const json::value& one : file.at("templates").as_array()) {
    PromptTemplate made;
    made.name = std::string(json::view(one.at("name").as_string()));
    made.content = std::string(json::view(one.at("content").as_string()));
    templates.push_back(std::move(made));
  }
  for (const json::value& one : file.at("cases").as_array()) {
    const std::string input(json::view(one.at("input").as_string()));
    SCOPED_TRACE(input);
    EXPECT_EQ(expand_prompt_template(input, templates).value_or(input), json::view(one.at("output").as_string()));
  }
}

TEST(PromptTemplates, GoldenFiles) {  // CA-131
  const json::value file = fixture("load.json");
  for (const json::value& one : file.as_array()) {
    const std::string name(json::view(one.at("file").as_string()));
    SCOPED_TRACE(name);
    const test::TemporaryFolder folder;
    folder.write(name, std::string(json::view(one.at("content").as_string())));
    const PromptTemplates loaded = load_prompt_templates({{folder / name, ResourceOrigin::kUser}});
    const json::value& expected = one.at("loaded");
    ASSERT_EQ(loaded.templates.size(), expected.is_null() ? 0U : 1U);
    if (expected.is_null()) continue;
    const PromptTemplate& made = loaded.templates[0];
    EXPECT_EQ(made.name, json::view(expected.at("name").as_string()));
    EXPECT_EQ(made.content, json::view(expected.at("content").as_string()));
    // CA-401: a number as description becomes text.
    const json::value& description = expected.at("description");
    EXPECT_EQ(made.description,
              description.is_string() ? std::string(json::view(description.get_string())) : json::to_text(description));
    const json::value& hint = expected.at("argumentHint");
    EXPECT_EQ(made.argument_hint,
              hint.is_string() ? std::optional<std::string>(json::view(hint.get_string())) : std::nullopt);
  }
}

TEST(PromptTemplates, ABrokenFileIsLeftOutAndNamed) {  // FF-115
  const test::TemporaryFolder folder;
  const auto file = folder.write("bad.md", "---\ndescription: [\n---\nBody");
  const PromptTemplates loaded = load_prompt_templates({{file, ResourceOrigin::kUser}});
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_NE(loaded.warnings[0].find(file.string()), std::string::npos) << loaded.warnings[0];
}

}  // namespace
}  // namespace tau::coding
