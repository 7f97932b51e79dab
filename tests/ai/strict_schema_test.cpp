#include "ai/strict_schema.h"

#include <string>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::ai {
namespace {

json::object object(std::string_view text) {
  return json::parse(text)->get_object();
}

std::string strict(std::string_view schema) {
  const auto result = to_strict_schema(object(schema));
  return result ? json::to_text(*result) : result.error();
}

// AI-81, AI-82
TEST(StrictSchema, IsWhatPiMakes) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/strict-schema.json");
  ASSERT_GE(vectors.get_array().size(), 10U);
  for (const json::value& v : vectors.get_array()) {
    const auto result = to_strict_schema(v.at("in").get_object());
    if (const json::value* out = json::find(v, "out")) {
      ASSERT_TRUE(result) << json::to_text(v) << result.error();
      EXPECT_TRUE(json::equal(*result, *out)) << json::to_text(*result) << " for " << json::to_text(v);
    } else {
      ASSERT_FALSE(result) << json::to_text(v);
      EXPECT_EQ(result.error(), json::string_or(v.get_object(), "error"));
    }
  }
}

TEST(StrictSchema, OptionalObjectsMayBeNull) {
  EXPECT_EQ(
      strict(
          R"({"type":"object","properties":{"o":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}}})"),
      R"({"type":"object","properties":{"o":{"anyOf":[{"type":"object","properties":{"x":{"type":"number"}},)"
      R"("required":["x"],"additionalProperties":false},{"type":"null"}]}},"required":["o"],"additionalProperties":false})");
  EXPECT_EQ(strict(R"({"type":"object"})"), R"({"type":"object","required":[],"additionalProperties":false})");
}

// AI-82
TEST(StrictSchema, RefusesWhatCannotBeSaidStrictly) {
  const auto inside = [](std::string_view schema) {
    return strict(R"({"type":"object","properties":{"a":)" + std::string(schema) + "}}");
  };
  for (const char* key :
       {"$ref", "$defs", "definitions", "allOf", "oneOf", "patternProperties", "dependentSchemas", "dependencies",
        "unevaluatedProperties", "propertyNames", "contains", "prefixItems", "not", "if", "then", "else"}) {
    EXPECT_EQ(inside(std::string("{\"") + key + "\":{}}"), std::string(key) + " schemas are unsupported");
  }
  for (const char* schema :
       {"true", R"({"anyOf":[]})", R"({"anyOf":[{"type":"array"}]})", R"({"anyOf":[{"type":["object","null"]}]})",
        R"({"type":"array","items":[{"type":"string"}]})", R"({"properties":{}})",
        R"({"type":"object","additionalProperties":{}})", R"({"type":"object","required":"x"})",
        R"({"type":"object","required":[1]})", R"({"type":["object","null"]})"}) {
    EXPECT_FALSE(to_strict_schema(object(R"({"type":"object","properties":{"a":)" + std::string(schema) + "}}")))
        << schema;
  }
}

// AI-80
TEST(StrictSchema, IsUsedWhenTheToolAsksAndTheApiCan) {
  Tool tool{"t", "", object(R"({"type":"object","properties":{}})"), {}};
  EXPECT_EQ(*strict_parameters(tool, true), std::nullopt);
  tool.constrained_sampling = false;
  EXPECT_EQ(*strict_parameters(tool, true), std::nullopt);
  tool.constrained_sampling = object(R"({"type":"json_schema","strict":"prefer"})");
  EXPECT_TRUE(strict_parameters(tool, true)->has_value());
  EXPECT_EQ(*strict_parameters(tool, false), std::nullopt);
  tool.constrained_sampling = object(R"({"type":"json_schema","strict":"require"})");
  EXPECT_EQ(strict_parameters(tool, false).error(),
            "Tool \"t\" requires JSON-schema constrained sampling, but strict tools are unsupported.");
  tool.parameters = object(R"({"type":"object","properties":{"a":{"allOf":[]}}})");
  EXPECT_EQ(strict_parameters(tool, true).error(),
            "Tool \"t\" requires JSON-schema constrained sampling, but allOf schemas are unsupported.");
}

}  // namespace
}  // namespace tau::ai
