#include "coding/config/config_value.h"

#include <chrono>

#include <gtest/gtest.h>

#include "support/fixture.h"
#include "support/run.h"

namespace tau::coding {
namespace {

std::expected<std::string, Error> resolve(std::string value, ai::Environment environment) {
  asio::io_context io;
  return test::run(io, resolve_value(std::move(value), std::move(environment)));
}

ai::Environment nothing() {
  return [](std::string_view) { return std::nullopt; };
}

TEST(ConfigValue, GoldenCases) {  // CA-180, CA-181
  const json::value file = test::read_json(test::fixture_root() / "tools" / "config-values.json");
  std::map<std::string, std::string> variables;
  for (const auto& [name, text] : file.at("env").as_object())
    variables.emplace(name, json::view(text.get_string()));
  const ai::Environment environment = ai::layered(variables, nothing());
  for (const json::value& one : file.at("cases").as_array()) {
    const std::string input(json::view(one.at("input").as_string()));
    SCOPED_TRACE(input);
    const auto resolved = resolve(input, environment);
    if (one.at("value").is_null()) {
      EXPECT_FALSE(resolved);
    } else {
      ASSERT_TRUE(resolved) << resolved.error().message;
      EXPECT_EQ(*resolved, json::view(one.at("value").as_string()));
    }
    EXPECT_EQ(is_command(input), one.at("isCommand").as_bool());
    std::vector<std::string> names;
    for (const json::value& name : one.at("envNames").as_array())
      names.emplace_back(json::view(name.as_string()));
    EXPECT_EQ(variables_of(input), names);
  }
}

TEST(ConfigValue, AvailabilityNeverRunsACommand) {  // CA-182
  const test::TemporaryFolder folder;
  const auto mark = folder / "ran";
  EXPECT_TRUE(is_available("!touch " + mark.string(), nothing()));
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_FALSE(is_available("$TAU_TEST_MISSING", nothing()));
  EXPECT_TRUE(is_available("plain", nothing()));
}

TEST(ConfigValue, ErrorsNameTheVariableAndNeverTheCommand) {  // FF-108
  const auto missing = resolve("x-$TAU_ONE-${TAU_TWO}", nothing());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("TAU_ONE, TAU_TWO"), std::string::npos) << missing.error().message;
  const auto failing = resolve("!echo sk-canary; exit 3", nothing());
  ASSERT_FALSE(failing);
  EXPECT_EQ(failing.error().message.find("sk-canary"), std::string::npos) << failing.error().message;
  EXPECT_NE(failing.error().message.find("exit code 3"), std::string::npos) << failing.error().message;
}

TEST(ConfigValue, ACommandHasTenSeconds) {  // CA-180
  const auto before = std::chrono::steady_clock::now();
  const auto hanging = resolve("!sleep 60", nothing());
  ASSERT_FALSE(hanging);
  EXPECT_NE(hanging.error().message.find("10 s"), std::string::npos) << hanging.error().message;
  const auto took = std::chrono::steady_clock::now() - before;
  EXPECT_GE(took, std::chrono::seconds(9));
  EXPECT_LT(took, std::chrono::seconds(20));
}

}  // namespace
}  // namespace tau::coding
