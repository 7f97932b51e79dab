#include "ai/model.h"

#include <string>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::ai {
namespace {

json::value vectors(const char* name) {
  return test::read_json(test::fixture_root() / "ai/util" / name);
}

Model model_with(const json::object& members) {
  json::object o = members;
  o.emplace("id", "m");
  o.emplace("api", "a");
  o.emplace("provider", "p");
  return *model_from_json(o);
}

// AI-60
TEST(Model, PricesAreTheSameDoublesAsPis) {
  const json::value cases = vectors("calculate-cost.json");
  for (const json::value& v : cases.get_array()) {
    const Model model = model_with({{"cost", v.at("cost")}});
    Usage usage = usage_from_json(v.at("usage").get_object());
    price(usage, model);
    const json::object& out = v.at("out").get_object();
    EXPECT_EQ(usage.cost.input, json::number_or(out, "input")) << json::to_text(v);
    EXPECT_EQ(usage.cost.output, json::number_or(out, "output")) << json::to_text(v);
    EXPECT_EQ(usage.cost.cache_read, json::number_or(out, "cacheRead")) << json::to_text(v);
    EXPECT_EQ(usage.cost.cache_write, json::number_or(out, "cacheWrite")) << json::to_text(v);
    EXPECT_EQ(usage.cost.total, json::number_or(out, "total")) << json::to_text(v);
  }
}

// AI-52, AI-53
TEST(Model, OffersAndClampsThinkingLevels) {
  const json::value cases = vectors("thinking-levels.json");
  for (const json::value& v : cases.get_array()) {
    const Model model = model_with(v.get_object());
    json::array supported;
    for (const ThinkingLevel level : supported_thinking_levels(model))
      supported.emplace_back(to_string(level));
    EXPECT_EQ(json::to_text(supported), json::to_text(v.at("supported"))) << json::to_text(v);
    for (const auto& [level, clamped] : v.at("clamp").get_object()) {
      EXPECT_EQ(to_string(clamp_thinking_level(model, *thinking_level_from(std::string_view(level)))),
                json::view(clamped.get_string()))
          << std::string_view(level) << " in " << json::to_text(v);
    }
  }
}

TEST(Model, KeepsMembersThatItDoesNotKnow) {
  constexpr std::string_view kText =
      R"({"id":"m","name":"M","api":"a","provider":"p","baseUrl":"u","reasoning":true,)"
      R"("thinkingLevelMap":{"off":null,"high":"h"},"input":["text","image"],)"
      R"("cost":{"input":1.5,"output":2,"cacheRead":0,"cacheWrite":0,"tiers":[{"inputTokensAbove":10,"input":3,"output":4,"cacheRead":0,"cacheWrite":0}]},)"
      R"("contextWindow":1000,"maxTokens":100,"headers":{"x":"y","z":null},"compat":{"k":1},"newer":[1]})";
  const auto model = model_from_json(json::parse(kText)->get_object());
  ASSERT_TRUE(model);
  EXPECT_EQ(json::to_text(to_json(*model)), kText);
}

TEST(Model, NeedsIdApiAndProvider) {
  EXPECT_FALSE(model_from_json({{"api", "a"}, {"provider", "p"}}));
  EXPECT_FALSE(model_from_json({{"id", "m"}, {"provider", "p"}}));
  EXPECT_FALSE(model_from_json({{"id", "m"}, {"api", "a"}}));
  EXPECT_EQ(model_from_json({{"id", "m"}, {"api", "a"}, {"provider", "p"}})->name, "m");
}

// AI-48
TEST(Headers, LaterOnesReplaceEarlierOnesWithoutRegardToCase) {
  Headers headers{{"X-One", "1"}, {"Two", "2"}};
  merge_headers(headers, {{"x-one", std::nullopt}, {"three", "3"}});
  EXPECT_EQ(headers, (Headers{{"Two", "2"}, {"x-one", std::nullopt}, {"three", "3"}}));
}

}  // namespace
}  // namespace tau::ai
