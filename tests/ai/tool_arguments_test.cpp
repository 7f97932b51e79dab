#include "ai/tool_arguments.h"

#include <string>

#include <gtest/gtest.h>

#include "ai/json_schema.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

json::object object(std::string_view text) {
  return json::parse(text)->get_object();
}

Tool probe(std::string_view parameters) {
  return {"probe", "", object(parameters), {}};
}

/// The arguments after validation, or the lines that say what is wrong.
std::string outcome(std::string_view parameters, std::string_view arguments) {
  const auto result = validate_tool_arguments(probe(parameters), *json::parse(arguments));
  if (result) return json::to_text(*result);
  const std::size_t begin = result.error().find('\n') + 1;
  return result.error().substr(begin, result.error().find("\n\n") - begin);
}

// AI-230 to AI-232
TEST(ToolArguments, AreJudgedAndConvertedAsByPi) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/validate-tool-arguments.json");
  ASSERT_GE(vectors.get_array().size(), 38U);
  for (const json::value& v : vectors.get_array()) {
    const Tool tool{"probe", "", v.at("parameters").get_object(), {}};
    const auto result = validate_tool_arguments(tool, v.at("arguments"));
    if (const json::value* ok = json::find(v, "ok")) {
      ASSERT_TRUE(result) << json::to_text(v) << result.error();
      EXPECT_EQ(json::to_text(*result), json::to_text(*ok)) << json::to_text(v);
    } else {
      ASSERT_FALSE(result) << json::to_text(v);
      EXPECT_EQ(result.error(), json::string_or(v.get_object(), "error"));
    }
  }
}

TEST(ToolArguments, MustBeAnObject) {
  const Tool tool = probe("{}");
  for (const char* text : {"[1]", "null", "\"x\"", "5"}) {
    const auto result = validate_tool_arguments(tool, *json::parse(text));
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().find("  - root: must be object\n"), std::string::npos) << result.error();
  }
}

TEST(ToolArguments, NullsOfOptionalPropertiesAreDroppedEverywhere) {
  constexpr std::string_view kSchema = R"({"type":"object","properties":{
    "a":{"type":"string"},"n":{"type":["string","null"]},"e":{"enum":["x",null]},
    "list":{"type":"array","items":{"type":"object","properties":{"b":{"type":"number"}}}}}})";
  EXPECT_EQ(outcome(kSchema, R"({"a":null,"n":null,"e":null,"list":[{"b":null,"c":null},{"b":1}]})"),
            R"({"n":null,"e":null,"list":[{"c":null},{"b":1}]})");
}

// AI-231
TEST(ToolArguments, AreConvertedOnlyWithoutLoss) {
  const auto one = [](std::string_view type, std::string_view value) {
    const std::string schema =
        R"({"type":"object","properties":{"x":{"type":)" + std::string(type) + R"(}},"required":["x"]})";
    return outcome(schema, R"({"x":)" + std::string(value) + "}");
  };
  EXPECT_EQ(one(R"("number")", R"(" 1.5e2 ")"), R"({"x":150})");
  EXPECT_EQ(one(R"("number")", R"("0x10")"), R"({"x":16})");
  EXPECT_EQ(one(R"("number")", R"("+3")"), R"({"x":3})");
  EXPECT_EQ(one(R"("number")", R"("3px")"), "  - x: must be number");
  EXPECT_EQ(one(R"("number")", R"("Infinity")"), "  - x: must be number");
  EXPECT_EQ(one(R"("integer")", "true"), R"({"x":1})");
  EXPECT_EQ(one(R"("integer")", "4.0"), R"({"x":4})");
  EXPECT_EQ(one(R"("boolean")", "null"), R"({"x":false})");
  EXPECT_EQ(one(R"("boolean")", "2"), "  - x: must be boolean");
  EXPECT_EQ(one(R"("string")", "0.0006000000000000001"), R"({"x":"0.0006000000000000001"})");
  EXPECT_EQ(one(R"("null")", "\"\""), R"({"x":null})");
  EXPECT_EQ(one(R"("null")", "false"), R"({"x":null})");
  EXPECT_EQ(one(R"(["integer","boolean"])", R"("true")"), R"({"x":true})");
  EXPECT_EQ(one(R"(["number","string"])", R"("5")"), R"({"x":"5"})");
  EXPECT_EQ(one(R"("array")", "5"), "  - x: must be array");
}

TEST(ToolArguments, AreConvertedInsideUnionsReferencesAndFreeMembers) {
  EXPECT_EQ(
      outcome(R"({"type":"object","properties":{"u":{"oneOf":[{"type":"object","properties":{"n":{"type":"number"}},
                     "required":["n"]},{"type":"boolean"}]}}})",
              R"({"u":{"n":"7"}})"),
      R"({"u":{"n":7}})");
  EXPECT_EQ(outcome(R"({"type":"object","additionalProperties":{"type":"number"}})", R"({"a":"1","b":2})"),
            R"({"a":1,"b":2})");
  EXPECT_EQ(outcome(R"({"type":"object","properties":{"t":{"$ref":"#/$defs/node"}},
                     "$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/node"}}}}})",
                    R"({"t":{"v":"1","next":{"v":"2","next":null}}})"),
            R"({"t":{"v":1,"next":{"v":2}}})");
  EXPECT_EQ(
      outcome(R"({"type":"object","properties":{"x":{"allOf":[{"type":"number"},{"minimum":3}]}}})", R"({"x":"2"})"),
      "  - x: must be >= 3");
}

// AI-232
TEST(ToolCalls, NameAToolThatExists) {
  const std::vector<Tool> tools{probe(R"({"type":"object","properties":{"n":{"type":"number"}}})")};
  ToolCall call;
  call.name = "probe";
  call.arguments = json::object{{"n", "1"}};
  EXPECT_EQ(json::to_text(*validate_tool_call(tools, call)), R"({"n":1})");
  call.name = "other";
  EXPECT_EQ(validate_tool_call(tools, call).error(), "Tool \"other\" not found");
}

// ---- the schema checker alone ------------------------------------------------------------------------------------

std::string errors(std::string_view schema, std::string_view instance) {
  std::string out;
  for (const SchemaError& e : check_schema(object(schema), *json::parse(instance)))
    out += (out.empty() ? "" : "; ") + e.path + ": " + e.message;
  return out;
}

TEST(JsonSchema, ChecksLimits) {
  EXPECT_EQ(errors(R"({"minimum":1,"maximum":3})", "4"), ": must be <= 3");
  EXPECT_EQ(errors(R"({"exclusiveMinimum":1})", "1"), ": must be > 1");
  EXPECT_EQ(errors(R"({"exclusiveMaximum":1.5})", "1.5"), ": must be < 1.5");
  EXPECT_EQ(errors(R"({"multipleOf":0.1})", "0.3"), "");
  EXPECT_EQ(errors(R"({"multipleOf":2})", "3"), ": must be multiple of 2");
  EXPECT_EQ(errors(R"({"maxLength":2})", R"("é😀x")"), ": must not have more than 2 characters");
  EXPECT_EQ(errors(R"({"maxLength":3})", R"("é😀x")"), "");
  EXPECT_EQ(errors(R"({"minItems":1})", "[]"), ": must not have fewer than 1 items");
  EXPECT_EQ(errors(R"({"maxItems":1})", "[1,2]"), ": must not have more than 1 items");
  EXPECT_EQ(errors(R"({"minProperties":1})", "{}"), ": must not have fewer than 1 properties");
  EXPECT_EQ(errors(R"({"uniqueItems":true})", R"([{"a":1},{"a":1.0}])"), ": must not have duplicate items");
  EXPECT_EQ(errors(R"({"minimum":1,"minLength":1})", "null"), "") << "limits are for their own type";
}

TEST(JsonSchema, ChecksPatternsAsFarAsTheyMeanTheSame) {
  EXPECT_EQ(errors(R"({"pattern":"^[a-z]+\\d?$"})", R"("abc1")"), "");
  EXPECT_EQ(errors(R"({"pattern":"^a$"})", R"("a\nb")"), R"(: must match pattern "^a$")");
  EXPECT_EQ(errors(R"({"pattern":"("})", R"("x")"), "") << "not an expression: not enforced";
  EXPECT_EQ(errors(R"({"pattern":"^\\u0041$"})", R"("A")"), "");
  EXPECT_EQ(errors(R"({"pattern":"^(a+)+$"})", "\"" + std::string(5000, 'a') + "b\""), "")
      << "too costly to match: not enforced";
}

TEST(JsonSchema, ChecksMembersAndItems) {
  EXPECT_EQ(errors(R"({"required":["a","b","c"]})", R"({"b":1})"), "a: must have required properties a, c");
  EXPECT_EQ(errors(R"({"properties":{"a":false}})", R"({"a":1})"), "a: must not be there");
  EXPECT_EQ(errors(R"({"patternProperties":{"^x":{"type":"number"}},"additionalProperties":false})", R"({"x1":"s"})"),
            "x1: must be number");
  EXPECT_EQ(errors(R"({"additionalProperties":{"type":"number"}})", R"({"k":"s"})"), "k: must be number");
  EXPECT_EQ(errors(R"({"propertyNames":{"maxLength":1}})", R"({"kk":1})"), ": property name kk is invalid");
  EXPECT_EQ(errors(R"({"prefixItems":[{"type":"string"}],"items":{"type":"number"}})", R"([1,"x"])"),
            "0: must be string; 1: must be number");
  EXPECT_EQ(errors(R"({"items":[{"type":"string"}],"additionalItems":false})", R"(["a",1])"), "1: must not be there");
  EXPECT_EQ(errors(R"({"contains":{"type":"number"}})", R"(["a"])"), ": must contain at least 1 valid item");
}

TEST(JsonSchema, ChecksCombinations) {
  EXPECT_EQ(errors(R"({"anyOf":[{"type":"number"},{"type":"null"}]})", R"("x")"),
            ": must be number; : must be null; : must match a schema in anyOf");
  EXPECT_EQ(errors(R"({"oneOf":[{"type":"number"},{"minimum":1}]})", "5"), ": must match exactly one schema in oneOf");
  EXPECT_EQ(errors(R"({"not":{"type":"number"}})", "5"), ": must not be valid");
  EXPECT_EQ(errors(R"({"if":{"type":"number"},"then":{"minimum":3},"else":{"minLength":3}})", "1"), ": must be >= 3");
  EXPECT_EQ(errors(R"({"if":{"type":"number"},"then":{"minimum":3},"else":{"minLength":3}})", R"("ab")"),
            ": must not have fewer than 3 characters");
}

TEST(JsonSchema, FollowsReferencesAndSurvivesCircles) {
  EXPECT_EQ(errors(R"({"$defs":{"a/b":{"type":"number"}},"properties":{"x":{"$ref":"#/$defs/a~1b"}}})", R"({"x":"s"})"),
            "x: must be number");
  EXPECT_EQ(errors(R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}})", "1"), "");
  EXPECT_EQ(errors(R"({"$ref":"https://example.com/other"})", "1"), "") << "outside of the document: not enforced";
}

}  // namespace
}  // namespace tau::ai
