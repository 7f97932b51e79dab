#include "ai/catalog/catalog.h"

#include <set>

#include <gtest/gtest.h>

#include "ai/catalog/providers.h"

namespace tau::ai {
namespace {

const Model* find(std::string_view provider, std::string_view id) {
  for (const Model& model : catalog_models(provider)) {
    if (model.id == id) return &model;
  }
  return nullptr;
}

// AI-251: the whole catalogue is read once here, because the program reads a provider only when it needs it.
TEST(Catalog, EveryModelIsCompleteAndUniqueInItsProvider) {
  std::size_t count = 0;
  for (const ProviderInfo& provider : built_in_providers()) {
    std::set<std::string> ids;
    for (const Model& model : catalog_models(provider.id)) {
      ++count;
      const std::string name = std::string(provider.id) + "/" + model.id;
      EXPECT_EQ(model.provider, provider.id) << name;
      EXPECT_TRUE(ids.insert(model.id).second) << name;
      EXPECT_FALSE(model.name.empty()) << name;
      EXPECT_FALSE(model.api.empty()) << name;
      EXPECT_GT(model.context_window, 0) << name;
      EXPECT_GT(model.max_tokens, 0) << name;
      EXPECT_TRUE(model.extra.empty()) << name;
      if (model.api != "azure-openai-responses") {  // its address is the user's own (AI-184)
        EXPECT_TRUE(model.base_url.starts_with("https://")) << name << " " << model.base_url;  // AI-255
      }
    }
  }
  EXPECT_GT(count, 900U);
}

// CA-341
TEST(Catalog, TheDefaultModelOfEveryProviderIsInIt) {
  EXPECT_EQ(default_models().size(), built_in_providers().size());
  for (const DefaultModel& row : default_models()) {
    EXPECT_NE(find_provider(row.provider), nullptr) << row.provider;
    if (row.provider == "radius") continue;  // has no models of its own (AI-246)
    EXPECT_NE(find(row.provider, row.model), nullptr) << row.provider << "/" << row.model;
  }
  EXPECT_EQ(default_model("anthropic"), "claude-opus-4-8");
  EXPECT_EQ(default_model("nobody"), "");
}

TEST(Catalog, SharedAndOwnMembersOfAModelAreJoined) {
  const Model* model = find("anthropic", "claude-haiku-4-5");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->api, "anthropic-messages");
  EXPECT_EQ(model->base_url, "https://api.anthropic.com");
  EXPECT_TRUE(model->reasoning);
  EXPECT_TRUE(model->image_input);
  EXPECT_DOUBLE_EQ(model->cost.input, 1);
  EXPECT_DOUBLE_EQ(model->cost.cache_write, 1.25);
  EXPECT_EQ(model->compat.at("supportsStrictTools"), json::value(true));
}

TEST(Catalog, HeadersAndPriceTiersAreKept) {  // AI-252
  ASSERT_FALSE(catalog_models("nvidia").empty());
  const Model& nvidia = catalog_models("nvidia").front();
  ASSERT_EQ(nvidia.headers.size(), 1U);
  EXPECT_EQ(nvidia.headers[0].first, "NVCF-POLL-SECONDS");
  bool has_tiers = false;
  for (const Model& model : catalog_models("openai"))
    has_tiers = has_tiers || !model.tiers.empty();
  EXPECT_TRUE(has_tiers);
}

TEST(Catalog, AnUnknownProviderHasNoModels) {
  EXPECT_TRUE(catalog_models("nobody").empty());
  EXPECT_EQ(find_provider("nobody"), nullptr);
}

}  // namespace
}  // namespace tau::ai
