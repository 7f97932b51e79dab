#include "ai/providers/azure_openai_responses.h"

#include <gtest/gtest.h>

#include "ai/providers/provider_fixtures.h"

namespace tau::ai {
namespace {

TAU_PROVIDER_FIXTURES(AzureOpenAiResponses, "azure-openai-responses", {});

Model azure_model(std::string base_url) {
  Model model;
  model.id = "gpt-5.5";
  model.api = "azure-openai-responses";
  model.provider = "azure-openai-responses";
  model.base_url = std::move(base_url);
  return model;
}

std::string url_of(const std::string& base, std::map<std::string, std::string> env = {}) {
  StreamOptions options;
  options.env = std::move(env);
  const auto url = azure_openai_url(azure_model(base), options);
  return url ? *url : "error: " + url.error();
}

TEST(AzureOpenAiResponses, AllFormsOfAzuresAddressMeanTheSamePlace) {  // AI-184
  for (const char* form : {"https://r.openai.azure.com", "https://r.openai.azure.com/",
                           "https://r.openai.azure.com/openai", "https://r.openai.azure.com/openai/v1",
                           "https://r.openai.azure.com/openai/v1/", "https://r.openai.azure.com/openai/v1/responses"}) {
    EXPECT_EQ(url_of(form), "https://r.openai.azure.com/openai/v1/responses?api-version=v1") << form;
  }
  EXPECT_EQ(url_of("https://gateway.example/openai"), "https://gateway.example/openai/responses?api-version=v1");
}

TEST(AzureOpenAiResponses, TheEnvironmentSaysWhere) {
  EXPECT_EQ(url_of("", {{"AZURE_OPENAI_RESOURCE_NAME", "mine"}, {"AZURE_OPENAI_API_VERSION", "2025-04-01"}}),
            "https://mine.openai.azure.com/openai/v1/responses?api-version=2025-04-01");
  EXPECT_EQ(url_of("http://x/y", {{"AZURE_OPENAI_BASE_URL", "https://r.ai.azure.com"}}),
            "https://r.ai.azure.com/openai/v1/responses?api-version=v1");
  EXPECT_TRUE(url_of("").starts_with("error: Azure OpenAI needs an address"));
}

TEST(AzureOpenAiResponses, DeploymentsAreNamedByAMap) {  // AI-185
  StreamOptions options;
  EXPECT_EQ(azure_openai_deployment(azure_model(""), options), "gpt-5.5");
  options.env["AZURE_OPENAI_DEPLOYMENT_NAME_MAP"] = "gpt-5=five, gpt-5.5 = prod-55 ,broken";
  EXPECT_EQ(azure_openai_deployment(azure_model(""), options), "prod-55");
}

}  // namespace
}  // namespace tau::ai
