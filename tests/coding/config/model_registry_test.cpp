#include "coding/config/model_registry.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "coding/config/start_model.h"

#include "support/fixture.h"
#include "support/run.h"

namespace tau::coding {
namespace {

struct Home {
  test::TemporaryFolder folder;
  std::map<std::string, std::string> environment;
  std::set<std::string, std::less<>> apis;

  void models(const std::string& text) const { folder.write("models.json", text); }
  void auth(const std::string& text) const { folder.write("auth.json", text); }
  ModelRegistry registry() const {
    return ModelRegistry({.agent_folder = folder.path(),
                          .apis = apis,
                          .environment = ai::layered(environment, [](std::string_view) { return std::nullopt; })});
  }
};

std::expected<ai::RequestAuth, Error> auth_of(const ModelRegistry& registry, std::string_view provider,
                                              std::string_view id) {
  asio::io_context io;
  auto model = registry.find(provider, id);
  EXPECT_TRUE(model);
  return test::run(io, registry.request_auth(*model));
}

std::optional<std::string> header(const ai::RequestAuth& auth, std::string_view name) {
  for (const auto& [key, value] : auth.headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

constexpr std::string_view kBrook =
    R"({"providers":{"brook":{"baseUrl":"http://127.0.0.1:1/v1","api":"openai-completions",
  "apiKey":"$BROOK_KEY","authHeader":true,"headers":{"x-team":"${TEAM}-1","x-both":"provider"},
  "models":[{"id":"pebble-1","headers":{"X-Both":"model"}},{"id":"pebble-2"}]}}})";

TEST(ModelRegistry, OnlyProvidersWithAKeyAreAvailable) {  // MO-40
  Home setup;
  EXPECT_TRUE(setup.registry().available().empty());
  setup.environment = {{"GROQ_API_KEY", "k"}};
  const auto models = setup.registry().available();
  ASSERT_FALSE(models.empty());
  EXPECT_TRUE(std::all_of(models.begin(), models.end(), [](const ai::Model& m) { return m.provider == "groq"; }));
}

TEST(ModelRegistry, AnApiThatTheProgramCannotSpeakIsNotAvailable) {
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "k"}, {"GEMINI_API_KEY", "k"}};
  setup.apis = {"openai-completions"};
  for (const ai::Model& model : setup.registry().available())
    EXPECT_EQ(model.provider, "groq");
  EXPECT_TRUE(setup.registry().find("google", "gemini-3.1-pro-preview"));
}

TEST(ModelRegistry, ACustomProviderResolvesKeyAndHeadersAtRequestTime) {  // CA-177
  Home setup;
  setup.models(std::string(kBrook));
  EXPECT_FALSE(setup.registry().has_auth("brook"));
  setup.environment = {{"BROOK_KEY", "sk-1"}, {"TEAM", "blue"}};
  const ModelRegistry registry = setup.registry();
  EXPECT_TRUE(registry.problems().empty());
  const auto auth = auth_of(registry, "brook", "pebble-1");
  ASSERT_TRUE(auth) << auth.error().message;
  EXPECT_EQ(auth->api_key, "sk-1");
  EXPECT_EQ(header(*auth, "Authorization"), "Bearer sk-1");
  EXPECT_EQ(header(*auth, "x-team"), "blue-1");
  EXPECT_EQ(header(*auth, "X-Both"), "model");
  EXPECT_FALSE(header(*auth, "x-both"));
  EXPECT_EQ(header(*auth_of(registry, "brook", "pebble-2"), "x-both"), "provider");
}

TEST(ModelRegistry, AHeaderThatCannotBeResolvedIsAnErrorWithoutSecrets) {  // CA-177, FF-108
  Home setup;
  setup.models(std::string(kBrook));
  setup.environment = {{"BROOK_KEY", "sk-canary"}};
  const auto auth = auth_of(setup.registry(), "brook", "pebble-1");
  ASSERT_FALSE(auth);
  EXPECT_NE(auth.error().message.find("TEAM"), std::string::npos) << auth.error().message;
  EXPECT_EQ(auth.error().message.find("sk-canary"), std::string::npos) << auth.error().message;
}

TEST(ModelRegistry, TheOrderIsRuntimeKeyStoredConfiguredEnvironment) {  // CA-177, AI-242
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "from-env"}};
  const std::string id = "openai/gpt-oss-120b";
  EXPECT_EQ(auth_of(setup.registry(), "groq", id)->api_key, "from-env");
  setup.models(R"({"providers":{"groq":{"apiKey":"configured"}}})");
  EXPECT_EQ(auth_of(setup.registry(), "groq", id)->api_key, "configured");
  setup.auth(R"({"groq":{"type":"api_key","key":"stored"}})");
  EXPECT_EQ(auth_of(setup.registry(), "groq", id)->api_key, "stored");
  ModelRegistry registry = setup.registry();
  registry.set_runtime_key("groq", "given");
  EXPECT_EQ(auth_of(registry, "groq", id)->api_key, "given");
  EXPECT_EQ(test::read_file(setup.folder / "auth.json"), R"({"groq":{"type":"api_key","key":"stored"}})");  // CA-187
}

TEST(ModelRegistry, AStoredEntryOwnsItsProviderEvenWhenItIsUnusable) {  // AI-242
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "from-env"}};
  setup.auth(R"({"groq":{"type":"api_key","key":"$MISSING"}})");
  const ModelRegistry registry = setup.registry();
  EXPECT_FALSE(registry.has_auth("groq"));
  const auto auth = auth_of(registry, "groq", "openai/gpt-oss-120b");
  ASSERT_FALSE(auth);
  EXPECT_NE(auth.error().message.find("MISSING"), std::string::npos) << auth.error().message;
}

TEST(ModelRegistry, ACredentialsOwnVariablesComeFirst) {  // CA-181
  Home setup;
  setup.environment = {{"KEY", "outer"}};
  setup.auth(R"({"groq":{"type":"api_key","key":"$KEY","env":{"KEY":"inner","HTTPS_PROXY":"http://p"}}})");
  const auto auth = auth_of(setup.registry(), "groq", "openai/gpt-oss-120b");
  ASSERT_TRUE(auth);
  EXPECT_EQ(auth->api_key, "inner");
  EXPECT_EQ(auth->env.at("HTTPS_PROXY"), "http://p");
}

TEST(ModelRegistry, StoredCommandsRunOnceConfiguredOnesAtEveryRequest) {  // CA-180
  Home setup;
  const std::string count = (setup.folder / "count").string();
  const std::string command = "!echo x >> " + count + "; wc -l < " + count;
  setup.auth(R"({"groq":{"type":"api_key","key":")" + command + "\"}}");
  setup.models(R"({"providers":{"brook":{"baseUrl":"http://x","api":"openai-completions","apiKey":")" + command +
               R"(","models":[{"id":"m"}]}}})");
  const ModelRegistry registry = setup.registry();
  EXPECT_TRUE(registry.has_auth("groq"));
  EXPECT_FALSE(std::filesystem::exists(count));  // CA-182
  EXPECT_EQ(auth_of(registry, "groq", "openai/gpt-oss-120b")->api_key, "1");
  EXPECT_EQ(auth_of(registry, "groq", "openai/gpt-oss-120b")->api_key, "1");
  EXPECT_EQ(auth_of(registry, "brook", "m")->api_key, "2");
  EXPECT_EQ(auth_of(registry, "brook", "m")->api_key, "3");
}

TEST(ModelRegistry, ALoginIsUsedUntilItExpires) {  // AI-243, AI-247
  Home setup;
  const std::string later = std::to_string(now_milliseconds() + 3'600'000);
  setup.auth(
      R"({"anthropic":{"type":"oauth","access":"a","refresh":"r","expires":)" + later +
      R"(},"kimi-coding":{"type":"oauth","access":"k","refresh":"r","expires":)" + later +
      R"(},"github-copilot":{"type":"oauth","access":"tid=1;proxy-ep=proxy.company.example.com;x=2","refresh":"r",
                "availableModelIds":["gpt-5.4"],"expires":)" +
      later + R"(},"xai":{"type":"oauth","access":"old","refresh":"r","expires":1}})");
  const ModelRegistry registry = setup.registry();
  EXPECT_EQ(auth_of(registry, "anthropic", "claude-opus-4-8")->api_key, "a");
  EXPECT_EQ(header(*auth_of(registry, "kimi-coding", "kimi-for-coding"), "Authorization"), "Bearer k");
  EXPECT_EQ(auth_of(registry, "github-copilot", "gpt-5.4")->base_url, "https://api.company.example.com");
  EXPECT_FALSE(auth_of(registry, "xai", "grok-4.6"));
  std::vector<std::string> copilot;
  for (const ai::Model& model : registry.available()) {
    if (model.provider == "github-copilot") copilot.push_back(model.id);
  }
  EXPECT_EQ(copilot, std::vector<std::string>{"gpt-5.4"});
}

TEST(ModelRegistry, ABrokenModelsFileLeavesTheBuiltInModels) {  // CA-170, MO-14
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "k"}};
  setup.models("{\n  \"providers\": [\n");
  const ModelRegistry registry = setup.registry();
  ASSERT_EQ(registry.problems().size(), 1U);
  EXPECT_NE(registry.problems()[0].find("line 3"), std::string::npos) << registry.problems()[0];
  EXPECT_FALSE(registry.available().empty());
}

TEST(ModelRegistry, AnUnusableEntryIsReportedAndTheBuiltInOneStays) {  // CA-176
  Home setup;
  setup.models(R"({"providers":{"groq":{},"brook":{"models":[{"id":"m"}]}}})");
  const ModelRegistry registry = setup.registry();
  EXPECT_EQ(registry.problems().size(), 2U);
  EXPECT_TRUE(registry.find("groq", "openai/gpt-oss-120b"));
  EXPECT_TRUE(registry.models_of("brook").empty());
}

TEST(ModelRegistry, ABrokenCredentialFileIsNamed) {  // MO-14, FF-115
  Home setup;
  setup.auth("{");
  const auto problems = setup.registry().problems();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("auth.json"), std::string::npos) << problems[0];
}

TEST(ModelRegistry, AMissingKeySaysWhatToDo) {  // MO-25
  const Home setup;
  const auto auth = auth_of(setup.registry(), "groq", "openai/gpt-oss-120b");
  ASSERT_FALSE(auth);
  EXPECT_NE(auth.error().message.find("GROQ_API_KEY"), std::string::npos) << auth.error().message;
  EXPECT_NE(auth.error().message.find("auth.json"), std::string::npos) << auth.error().message;
}

TEST(ModelRegistry, CloudflareFillsItsAddress) {  // AI-250
  Home setup;
  setup.environment = {{"CLOUDFLARE_API_KEY", "k"}, {"CLOUDFLARE_ACCOUNT_ID", "acc"}};
  const auto auth = auth_of(setup.registry(), "cloudflare-workers-ai", "@cf/moonshotai/kimi-k2.6");
  ASSERT_TRUE(auth);
  EXPECT_EQ(auth->base_url, "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1");
}

TEST(ModelRegistry, TheScriptedProviderIsFoundByNameOnly) {
  const Home setup;
  const ModelRegistry registry = setup.registry();
  const auto by_option = registry.resolve("scripted", "path/to.json");
  ASSERT_TRUE(by_option.model);
  EXPECT_EQ(by_option.model->id, "path/to.json");
  EXPECT_EQ(by_option.model->api, "scripted");
  EXPECT_EQ(by_option.model->provider, "scripted");
  EXPECT_EQ(registry.resolve(std::nullopt, "scripted/tour").model->id, "tour");
  EXPECT_EQ(registry.resolve("scripted", "").model->id, "tour");
  EXPECT_FALSE(registry.resolve(std::nullopt, "tour").model);
  EXPECT_TRUE(registry.find("scripted", "anything"));
  EXPECT_TRUE(registry.has_auth("scripted"));
  EXPECT_TRUE(auth_of(registry, "scripted", "tour"));
  EXPECT_TRUE(registry.available().empty());
}

TEST(ModelList, TheTableIsPaddedAndSorted) {  // MO-40
  Home setup;
  setup.models(R"({"providers":{"fake-anthropic":{"baseUrl":"http://x","api":"anthropic-messages","apiKey":"k",
    "models":[{"id":"fake-b","contextWindow":200000,"maxTokens":8192,"reasoning":true,"input":["text","image"]},
              {"id":"fake-a-small","contextWindow":8000,"maxTokens":1000},
              {"id":"huge","contextWindow":1500000,"maxTokens":999}]}}})");
  const ModelListing listing = list_models(setup.registry(), "fake-anthropic");
  EXPECT_EQ(listing.table,
            "provider        model         context  max-out  thinking  images\n"
            "fake-anthropic  fake-a-small  8K       1K       no        no    \n"
            "fake-anthropic  fake-b        200K     8.2K     yes       yes   \n"
            "fake-anthropic  huge          1.5M     999      no        no    \n");
  EXPECT_EQ(listing.note, "");
}

TEST(ModelList, TheSearchTakesLettersInOrder) {  // MO-40
  Home setup;
  setup.models(
      R"({"providers":{"fake-anthropic":{"baseUrl":"http://x","api":"a","apiKey":"k","models":[{"id":"fake-a"}]}}})");
  EXPECT_NE(list_models(setup.registry(), "fake-o").table.find("fake-anthropic"), std::string::npos);
  EXPECT_EQ(list_models(setup.registry(), "zzz").table, "");
  EXPECT_EQ(list_models(setup.registry(), "zzz").note, "No models matching \"zzz\"\n");  // MO-41
}

TEST(ModelList, WithoutAKeyItSaysHowToGetOne) {  // MO-41
  const Home setup;
  const ModelListing listing = list_models(setup.registry(), "");
  EXPECT_NE(listing.note.find("ANTHROPIC_API_KEY"), std::string::npos);
  EXPECT_NE(listing.table.find("scripted"), std::string::npos);
}

// ---- start --------------------------------------------------------------------------------------------------------

StartChoice start(const Home& setup, const json::object& settings, const StartRequest& request) {
  return choose_start_model(setup.registry(), Settings::in_memory(settings), request);
}

std::string reference(const StartChoice& choice) {
  return choice.model ? choice.model->provider + "/" + choice.model->id : "";
}

TEST(StartModel, WithoutAnyKeyThereIsNone) {  // MO-25; never the scripted one
  const Home setup;
  const StartChoice choice = start(setup, {}, {});
  EXPECT_FALSE(choice.model);
  EXPECT_FALSE(choice.error);
  EXPECT_FALSE(start(setup, {{"defaultProvider", "scripted"}, {"defaultModel", "tour"}}, {}).model);
}

TEST(StartModel, TheOrderIsRequestScopeSessionDefaultKnownFirst) {  // CA-196
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "k"}, {"CEREBRAS_API_KEY", "k"}};
  EXPECT_EQ(reference(start(setup, {}, {})), "groq/openai/gpt-oss-120b");
  const json::object saved{{"defaultProvider", "cerebras"}, {"defaultModel", "gemma-4-31b"}};
  EXPECT_EQ(reference(start(setup, saved, {})), "cerebras/gemma-4-31b");
  StartRequest stored;
  stored.stored = {"groq", "llama-3.1-8b-instant", std::nullopt};
  EXPECT_EQ(reference(start(setup, saved, stored)), "groq/llama-3.1-8b-instant");
  StartRequest scoped;
  scoped.scope = {"groq/llama*", "cerebras/*"};
  EXPECT_EQ(reference(start(setup, saved, scoped)), "cerebras/gemma-4-31b");  // the saved one is in it
  EXPECT_EQ(reference(start(setup, {}, scoped)), "groq/llama-3.1-8b-instant");
  scoped.stored = stored.stored;
  EXPECT_EQ(reference(start(setup, saved, scoped)), "groq/llama-3.1-8b-instant");  // the session's
  StartRequest asked = scoped;
  asked.model = "cerebras/gpt-oss-120b";
  EXPECT_EQ(reference(start(setup, saved, asked)), "cerebras/gpt-oss-120b");
}

TEST(StartModel, ADefaultWithoutKeyGivesWay) {
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "k"}};
  EXPECT_EQ(reference(start(setup, {{"defaultProvider", "openai"}, {"defaultModel", "gpt-5.5"}}, {})),
            "groq/openai/gpt-oss-120b");
  StartRequest stored;
  stored.stored = {"openai", "gpt-5.5", std::nullopt};
  const StartChoice choice = start(setup, {}, stored);
  EXPECT_EQ(reference(choice), "groq/openai/gpt-oss-120b");
  ASSERT_EQ(choice.warnings.size(), 1U);
  EXPECT_NE(choice.warnings[0].find("openai/gpt-5.5"), std::string::npos) << choice.warnings[0];
}

TEST(StartModel, TheFirstAvailableModelIsTheLastResort) {
  Home setup;
  setup.models(
      R"({"providers":{"brook":{"baseUrl":"http://x","api":"openai-completions","apiKey":"k","models":[{"id":"m"}]}}})");
  EXPECT_EQ(reference(start(setup, {}, {})), "brook/m");
}

TEST(StartModel, ErrorsOfTheRequest) {  // MO-24
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "k"}};
  StartRequest request;
  request.provider = "nope";
  request.model = "x";
  EXPECT_EQ(start(setup, {}, request).error,
            "Unknown provider \"nope\". Use --list-models to see available providers/models.");
  request.provider = "groq";
  const StartChoice custom = start(setup, {}, request);
  EXPECT_EQ(reference(custom), "groq/x");
  EXPECT_EQ(custom.warnings,
            std::vector<std::string>{"Model \"x\" not found for provider \"groq\". Using custom model id."});
  request.model.reset();
  EXPECT_TRUE(start(setup, {}, request).error);
  request.provider = "scripted";
  EXPECT_EQ(reference(start(setup, {}, request)), "scripted/tour");
}

TEST(StartModel, TheThinkingLevelIsChosenAndClamped) {  // CA-197
  using enum ai::ThinkingLevel;
  Home setup;
  setup.environment = {{"ANTHROPIC_API_KEY", "k"}};
  EXPECT_EQ(start(setup, {}, {}).thinking_level, kMedium);
  json::object settings{{"defaultThinkingLevel", "low"}};
  EXPECT_EQ(start(setup, settings, {}).thinking_level, kLow);
  settings["modelThinkingLevels"] = json::object{{"anthropic/claude-opus-4-8", "high"}};
  EXPECT_EQ(start(setup, settings, {}).thinking_level, kHigh);
  StartRequest request;
  request.stored = {"anthropic", "claude-opus-4-8", kOff};
  EXPECT_EQ(start(setup, settings, request).thinking_level, kOff);
  request.model = "claude-opus-4-8:minimal";
  EXPECT_EQ(start(setup, settings, request).thinking_level, kMinimal);
  request.thinking_level = kMax;
  EXPECT_EQ(start(setup, settings, request).thinking_level,
            ai::clamp_thinking_level(*setup.registry().find("anthropic", "claude-opus-4-8"), kMax));
  request.model = "scripted/tour";
  EXPECT_EQ(start(setup, settings, request).thinking_level,
            ai::clamp_thinking_level(*setup.registry().find("scripted", "tour"), kMax));
}

TEST(StartModel, ScopesWarnAboutPatternsWithoutMatch) {  // MO-24
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "k"}};
  StartRequest request;
  request.scope = {"nothing*"};
  const StartChoice choice = start(setup, {}, request);
  EXPECT_EQ(choice.warnings, std::vector<std::string>{"No models match pattern \"nothing*\""});
  EXPECT_EQ(reference(choice), "groq/openai/gpt-oss-120b");
}

TEST(StartModel, CyclingGoesAroundAndSkipsWhatCannotBeUsed) {  // CA-199
  Home setup;
  setup.environment = {{"GROQ_API_KEY", "k"}};
  const ModelRegistry registry = setup.registry();
  const auto model = [&](const char* provider, const char* id) {
    return ScopedModel{*registry.find(provider, id), std::nullopt};
  };
  const std::vector<ScopedModel> scope{model("groq", "llama-3.1-8b-instant"), model("openai", "gpt-5.5"),
                                       model("groq", "openai/gpt-oss-120b")};
  const auto candidates = cycle_candidates(registry, scope);
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(cycle_model(candidates, &candidates[0].model, true)->model.id, "openai/gpt-oss-120b");
  EXPECT_EQ(cycle_model(candidates, &candidates[1].model, true)->model.id, "llama-3.1-8b-instant");
  EXPECT_EQ(cycle_model(candidates, &candidates[0].model, false)->model.id, "openai/gpt-oss-120b");
  EXPECT_EQ(cycle_model(candidates, &scope[1].model, true)->model.id, "openai/gpt-oss-120b");  // unknown: as the first
  EXPECT_FALSE(cycle_model({candidates[0]}, nullptr, true));
  EXPECT_GT(cycle_candidates(registry, {}).size(), 2U);
}

TEST(StartModel, ThinkingLevelsCycleThroughWhatTheModelOffers) {  // CA-199
  using enum ai::ThinkingLevel;
  ai::Model model;
  EXPECT_FALSE(next_thinking_level(model, kOff));
  model.reasoning = true;
  model.thinking_level_map = {{kMinimal, std::nullopt}};
  EXPECT_EQ(next_thinking_level(model, kOff), kLow);
  EXPECT_EQ(next_thinking_level(model, kHigh), kOff);
}

}  // namespace
}  // namespace tau::coding
