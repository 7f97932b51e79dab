#include "ai/grammar_tool.h"

#include <string>

#include <gtest/gtest.h>

namespace tau::ai {
namespace {

json::object object(std::string_view text) {
  return json::parse(text)->get_object();
}

Tool tool(std::string_view sampling,
          std::string_view parameters =
              R"({"type":"object","properties":{"input":{"type":"string"},"note":{}},"required":["input"]})") {
  return {"t", "", object(parameters), json::value(object(sampling))};
}

// AI-84
TEST(Grammar, LarkGoesBeforeRegularExpressions) {
  const auto grammar =
      grammar_of(tool(R"({"type":"grammar","variants":{"openai_regex":"a+","openai_lark":"start: x"}})"), true);
  ASSERT_TRUE(grammar && *grammar);
  EXPECT_EQ((*grammar)->syntax, "lark");
  EXPECT_EQ((*grammar)->definition, "start: x");
  EXPECT_EQ((*grammar)->property, "input");
  EXPECT_EQ(
      (*grammar_of(tool(R"({"type":"grammar","variants":{"openai_lark":" ","openai_regex":"a+"}})"), true))->syntax,
      "regex");
}

TEST(Grammar, IsNothingWhereNobodyAsksOrTheApiHasNone) {
  EXPECT_EQ(grammar_of(Tool{"t", "", {}, {}}, true)->has_value(), false);
  EXPECT_EQ(grammar_of(tool(R"({"type":"json_schema"})"), true)->has_value(), false);
  EXPECT_EQ(grammar_of(tool(R"({"type":"grammar","variants":{}})"), false)->has_value(), false);
}

TEST(Grammar, NeedsADefinitionAndOneRequiredString) {
  constexpr std::string_view kSampling = R"({"type":"grammar","variants":{"openai_regex":"a+"}})";
  EXPECT_FALSE(grammar_of(tool(R"({"type":"grammar","variants":{"openai_lark":"\n"}})"), true));
  for (const char* parameters :
       {R"({"type":"object","properties":{"i":{"type":"string"}},"required":[]})",
        R"({"type":"object","properties":{"i":{"type":"number"}},"required":["i"]})",
        R"({"type":"object","properties":{},"required":["i"]})",
        R"({"type":"object","properties":{"i":{"type":"string"},"j":{"type":"string"}},"required":["i","j"]})",
        R"({"properties":{"i":{"type":"string"}},"required":["i"]})"}) {
    EXPECT_FALSE(grammar_of(tool(kSampling, parameters), true)) << parameters;
  }
}

// AI-85
TEST(Grammar, TextIsDressedAsJsonWhileItStreams) {
  GrammarArguments arguments("input");
  EXPECT_EQ(arguments.append(""), "");
  EXPECT_EQ(arguments.append("a \"q\""), R"({"input":"a \"q\")");
  EXPECT_EQ(*arguments.replace("a \"q\"\nb"), "\\nb");
  EXPECT_EQ(*arguments.replace("a \"q\"\nb"), "");
  EXPECT_FALSE(arguments.replace("something else"));
  EXPECT_EQ(arguments.close(), "\"}");
  EXPECT_EQ(GrammarArguments("input").close(), R"({"input":""})");
}

TEST(Grammar, TextIsTakenFromACallThatIsReplayed) {
  ToolCall call;
  call.name = "patch";
  call.arguments = json::object{{"input", "text"}, {"n", 1}};
  EXPECT_EQ(grammar_input(call, "input"), "text");
  EXPECT_EQ(grammar_input(call, "n").error(), "Grammar tool call \"patch\" requires argument \"n\" to be a string.");
}

}  // namespace
}  // namespace tau::ai
