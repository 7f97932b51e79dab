#include "ai/auth/environment.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tau::ai {
namespace {

Environment variables(std::map<std::string, std::string> values) {
  return layered(std::move(values), [](std::string_view) { return std::nullopt; });
}

std::optional<std::optional<std::string>> header(const RequestAuth& auth, std::string_view name) {
  for (const auto& [key, value] : auth.headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

// AI-242
TEST(EnvironmentAuth, TheKeyComesFromTheProvidersVariable) {
  const auto auth = environment_auth("openai", variables({{"OPENAI_API_KEY", "sk-1"}}));
  ASSERT_TRUE(auth);
  EXPECT_EQ(auth->api_key, "sk-1");
  EXPECT_EQ(auth->source, "OPENAI_API_KEY");
  EXPECT_FALSE(environment_auth("openai", variables({{"GROQ_API_KEY", "x"}})));
  EXPECT_FALSE(environment_auth("nobody", variables({{"NOBODY_API_KEY", "x"}})));
}

TEST(EnvironmentAuth, ABlankVariableCountsAsMissing) {
  EXPECT_FALSE(environment_auth("openai", variables({{"OPENAI_API_KEY", "  "}})));
}

// AI-250
TEST(EnvironmentAuth, AnthropicTakesTokenThenLoginThenKey) {
  const auto token = environment_auth(
      "anthropic",
      variables({{"ANTHROPIC_AUTH_TOKEN", "t"}, {"ANTHROPIC_OAUTH_TOKEN", "o"}, {"ANTHROPIC_API_KEY", "k"}}));
  ASSERT_TRUE(token);
  EXPECT_FALSE(token->api_key);
  EXPECT_EQ(header(*token, "Authorization"), "Bearer t");
  EXPECT_EQ(
      environment_auth("anthropic", variables({{"ANTHROPIC_OAUTH_TOKEN", "o"}, {"ANTHROPIC_API_KEY", "k"}}))->api_key,
      "o");
  EXPECT_EQ(environment_auth("anthropic", variables({{"ANTHROPIC_API_KEY", "k"}}))->api_key, "k");
}

TEST(EnvironmentAuth, CloudflareNeedsItsAccountAndGateway) {
  EXPECT_FALSE(environment_auth("cloudflare-workers-ai", variables({{"CLOUDFLARE_API_KEY", "k"}})));
  const auto workers = environment_auth("cloudflare-workers-ai",
                                        variables({{"CLOUDFLARE_API_KEY", "k"}, {"CLOUDFLARE_ACCOUNT_ID", "a"}}));
  ASSERT_TRUE(workers);
  EXPECT_EQ(workers->api_key, "k");
  const auto all =
      variables({{"CLOUDFLARE_API_KEY", "k"}, {"CLOUDFLARE_ACCOUNT_ID", "a"}, {"CLOUDFLARE_GATEWAY_ID", "g"}});
  const auto gateway = environment_auth("cloudflare-ai-gateway", all);
  ASSERT_TRUE(gateway);
  EXPECT_EQ(header(*gateway, "cf-aig-authorization"), "Bearer k");
  ASSERT_TRUE(header(*gateway, "x-api-key"));
  EXPECT_FALSE(*header(*gateway, "x-api-key"));  // named without a value: removed
  EXPECT_EQ(fill_base_url("https://h/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/x", all), "https://h/a/g/x");
}

TEST(EnvironmentAuth, ProvidersThatSignForThemselvesNeedNoKey) {
  const auto profile = environment_auth("amazon-bedrock", variables({{"AWS_PROFILE", "work"}}));
  ASSERT_TRUE(profile);
  EXPECT_FALSE(profile->api_key);
  EXPECT_FALSE(environment_auth("amazon-bedrock", variables({{"AWS_ACCESS_KEY_ID", "only half"}})));
  EXPECT_EQ(environment_auth("google-vertex", variables({{"GOOGLE_CLOUD_API_KEY", "k"}}))->api_key, "k");
  EXPECT_FALSE(environment_auth("google-vertex", variables({{"GOOGLE_CLOUD_PROJECT", "p"}})));
}

}  // namespace
}  // namespace tau::ai
