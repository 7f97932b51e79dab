#include "coding/config/model_resolver.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "coding/config/collation.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

class FixtureModels : public ModelCollection {
 public:
  explicit FixtureModels(const json::array& models) {
    for (const json::value& v : models) {
      ai::Model model;
      model.provider = std::string(json::view(v.at("provider").as_string()));
      model.id = std::string(json::view(v.at("id").as_string()));
      model.name = std::string(json::view(v.at("name").as_string()));
      model.reasoning = false;
      if (!by_provider_.contains(model.provider)) providers_.push_back(model.provider);
      all.push_back(model);
      by_provider_[model.provider].push_back(std::move(model));
    }
  }
  const std::vector<std::string>& providers() const override { return providers_; }
  const std::vector<ai::Model>& models_of(std::string_view provider) const override {
    static const std::vector<ai::Model> none;
    asked.insert(std::string(provider));
    const auto found = by_provider_.find(provider);
    return found == by_provider_.end() ? none : found->second;
  }
  bool has_auth(std::string_view provider) const override { return authenticated.contains(std::string(provider)); }

  std::vector<ai::Model> all;
  std::set<std::string> authenticated;
  mutable std::set<std::string> asked;

 private:
  std::vector<std::string> providers_;
  std::map<std::string, std::vector<ai::Model>, std::less<>> by_provider_;
};

json::value fixture() {
  return test::read_json(test::fixture_root() / "tools" / "model-patterns.json");
}

std::optional<std::string> reference(const std::optional<ai::Model>& model) {
  return model ? std::optional(model->provider + "/" + model->id) : std::nullopt;
}

std::optional<std::string> text(const json::value& v) {
  return v.is_string() ? std::optional<std::string>(json::view(v.get_string())) : std::nullopt;
}

std::optional<std::string> name(std::optional<ai::ThinkingLevel> level) {
  return level ? std::optional<std::string>(ai::to_string(*level)) : std::nullopt;
}

TEST(ModelResolver, GoldenPatterns) {  // CA-191 to CA-193
  const json::value file = fixture();
  const FixtureModels models(file.at("models").as_array());
  for (const json::value& one : file.at("pattern").as_array()) {
    const std::string pattern = *text(one.at("pattern"));
    SCOPED_TRACE(pattern);
    for (const bool lenient : {true, false}) {
      const json::value& expected = one.at(lenient ? "scope" : "cli");
      const ModelChoice choice = match_pattern(pattern, models.all, lenient);
      EXPECT_EQ(reference(choice.model), text(expected.at("model")));
      EXPECT_EQ(name(choice.thinking_level), text(expected.at("thinkingLevel")));
      EXPECT_EQ(choice.warning, text(expected.at("warning")));
    }
    const ai::Model* exact = find_exact(pattern, models.all);
    EXPECT_EQ(exact ? reference(*exact) : std::nullopt, text(one.at("exact")));
  }
}

TEST(ModelResolver, GoldenScopes) {  // CA-194
  const json::value file = fixture();
  const FixtureModels models(file.at("models").as_array());
  for (const json::value& one : file.at("scopes").as_array()) {
    std::vector<std::string> patterns;
    for (const json::value& pattern : one.at("patterns").as_array())
      patterns.push_back(*text(pattern));
    SCOPED_TRACE(json::to_text(one.at("patterns")));
    const ModelScope scope = resolve_scope(patterns, models.all);
    const json::array& expected = one.at("models").as_array();
    ASSERT_EQ(scope.models.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(reference(scope.models[i].model), text(expected[i].at("model")));
      EXPECT_EQ(name(scope.models[i].thinking_level), text(expected[i].at("thinkingLevel")));
    }
    std::vector<std::string> warnings;
    for (const json::value& diagnostic : one.at("diagnostics").as_array())
      warnings.push_back(*text(diagnostic.at("message")));
    EXPECT_EQ(scope.warnings, warnings);
  }
}

TEST(ModelResolver, GoldenCommandLines) {  // CA-195
  const json::value file = fixture();
  for (const json::value& one : file.at("cli").as_array()) {
    SCOPED_TRACE(json::to_text(one));
    FixtureModels models(file.at("models").as_array());
    for (const json::value& provider : one.at("authenticated").as_array())
      models.authenticated.insert(*text(provider));
    const ModelChoice choice = resolve_model(models, text(one.at("provider")), *text(one.at("model")));
    const json::value& expected = one.at("result");
    EXPECT_EQ(reference(choice.model), text(expected.at("model")));
    EXPECT_EQ(name(choice.thinking_level), text(expected.at("thinkingLevel")));
    EXPECT_EQ(choice.warning, text(expected.at("warning")));
    EXPECT_EQ(choice.error, text(expected.at("error")));
  }
}

TEST(ModelResolver, AnIdOfSeveralProvidersIsAnErrorUnlessOneCanBeUsed) {  // CA-195
  const json::value file = fixture();
  FixtureModels models(file.at("models").as_array());
  models.authenticated = {"brook", "creek"};
  const ModelChoice choice = resolve_model(models, std::nullopt, "pebble-1");
  EXPECT_FALSE(choice.model);
  ASSERT_TRUE(choice.error);
  EXPECT_NE(choice.error->find("brook, creek"), std::string::npos) << *choice.error;
}

TEST(ModelResolver, ARawIdWithASlashCountsWhenItsOwnerCanBeUsed) {  // Appendix F
  const json::value file = fixture();
  FixtureModels models(file.at("models").as_array());
  models.authenticated = {"creek"};
  EXPECT_EQ(reference(resolve_model(models, std::nullopt, "pond/reed-3").model), "creek/pond/reed-3");
  models.authenticated = {"creek", "pond"};
  EXPECT_EQ(reference(resolve_model(models, std::nullopt, "pond/reed-3").model), "pond/reed-3");
}

TEST(ModelResolver, ACustomIdThinksWhenALevelIsAsked) {  // CA-195
  const json::value file = fixture();
  const FixtureModels models(file.at("models").as_array());
  EXPECT_TRUE(resolve_model(models, std::nullopt, "brook/new-model:high").model->reasoning);
  EXPECT_FALSE(resolve_model(models, std::nullopt, "brook/new-model").model->reasoning);
}

TEST(ModelResolver, AFullReferenceReadsNoOtherProvider) {  // start-up budget
  const json::value file = fixture();
  FixtureModels models(file.at("models").as_array());
  models.authenticated = {"brook"};
  EXPECT_TRUE(resolve_model(models, std::nullopt, "brook/pebble-2").model);
  EXPECT_EQ(models.asked, std::set<std::string>{"brook"});
}

TEST(ModelResolver, ThinkingClampGoldenCases) {  // CA-198, CA-344
  const json::value file = test::read_json(test::fixture_root() / "tools" / "thinking-clamp.json");
  for (const json::value& one : file.as_array()) {
    ai::Model model;
    model.reasoning = one.at("reasoning").as_bool();
    if (one.at("thinkingLevelMap").is_object()) {
      for (const auto& [level, word] : one.at("thinkingLevelMap").as_object()) {
        model.thinking_level_map[*ai::thinking_level_from(std::string_view(level.data(), level.size()))] = text(word);
      }
    }
    std::vector<std::string> supported;
    for (const ai::ThinkingLevel level : ai::supported_thinking_levels(model))
      supported.emplace_back(ai::to_string(level));
    std::vector<std::string> expected;
    for (const json::value& level : one.at("supported").as_array())
      expected.push_back(*text(level));
    EXPECT_EQ(supported, expected);
    for (const auto& [asked, clamped] : one.at("clamp").as_object()) {
      const auto level = ai::thinking_level_from(std::string_view(asked.data(), asked.size()));
      if (!level) continue;  // "bogus" cannot be written in our types
      EXPECT_EQ(ai::to_string(ai::clamp_thinking_level(model, *level)), *text(clamped)) << json::to_text(one);
    }
  }
}

TEST(Collation, IsThatOfPeople) {  // CA-340
  EXPECT_LT(collate("a-1", "a1"), 0);
  EXPECT_LT(collate("a:1", "a1"), 0);
  EXPECT_LT(collate("a1", "ab"), 0);
  EXPECT_LT(collate("a", "A"), 0);
  EXPECT_LT(collate("A", "b"), 0);
  EXPECT_LT(collate("a", "ab"), 0);
  EXPECT_GT(collate("stone:exacto", "pond/reed-3"), 0);
  EXPECT_EQ(collate("x", "x"), 0);
}

}  // namespace
}  // namespace tau::coding
