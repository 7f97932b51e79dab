#include "coding/config/models_json.h"

#include <gtest/gtest.h>

#include "ai/catalog/catalog.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

ModelsFile parsed(std::string_view text) {
  auto file = parse_models_file(text);
  EXPECT_TRUE(file) << file.error().message;
  return file ? *file : ModelsFile{};
}

std::string problem(std::string_view text) {
  const auto file = parse_models_file(text);
  return file ? "" : file.error().message;
}

const ai::Model& model(const ComposedProvider& composed, std::string_view id) {
  for (const ai::Model& one : composed.models) {
    if (one.id == id) return one;
  }
  throw std::runtime_error("no model " + std::string(id));
}

TEST(ModelsFile, CommentsAndTrailingCommasAreAllowed) {  // CA-170, golden tools/json-comments.json
  const json::value file = test::read_json(test::fixture_root() / "tools" / "json-comments.json");
  for (const json::value& one : file.as_array()) {
    const std::string_view input = json::view(one.at("input").as_string());
    const std::string_view output = json::view(one.at("output").as_string());
    const auto ours = json::parse(input, {.comments = true, .trailing_commas = true});
    const auto theirs = json::parse(output);  // what pi hands to the strict parser
    ASSERT_EQ(ours.has_value(), theirs.has_value()) << input;
    if (ours) {
      EXPECT_TRUE(json::equal(*ours, *theirs)) << input;
    }
  }
}

TEST(ModelsFile, TheExampleOfTheSpecificationLoads) {  // CA-343
  const ModelsFile file = parsed(
      "\xEF\xBB\xBF{\"providers\":{\"brook\":{\"baseUrl\":\"http://127.0.0.1:8080/v1\",\"api\":\"openai-completions\","
      "\"apiKey\":\"$BROOK_KEY\",\"headers\":{\"x-team\":\"${TEAM}-1\"},\"compat\":{\"supportsDeveloperRole\":false},"
      "\"models\":[{\"id\":\"pebble-1\",\"contextWindow\":100000,\"maxTokens\":4000},"
      "{\"id\":\"pebble-r\",\"reasoning\":true,\"thinkingLevelMap\":{\"off\":null,\"xhigh\":\"max\"}}],"
      "\"modelOverrides\":{\"pebble-1\":{\"cost\":{\"input\":1}}}}}}");
  ASSERT_EQ(file.providers.size(), 1U);
  const auto composed = compose_provider({}, file.providers[0]);
  ASSERT_TRUE(composed) << composed.error().message;
  ASSERT_EQ(composed->models.size(), 2U);
  const ai::Model& first = composed->models[0];
  EXPECT_EQ(first.name, "pebble-1");
  EXPECT_EQ(first.provider, "brook");
  EXPECT_EQ(first.base_url, "http://127.0.0.1:8080/v1");
  EXPECT_EQ(first.context_window, 100000);
  EXPECT_EQ(first.cost.input, 1);
  EXPECT_FALSE(first.image_input);
  EXPECT_EQ(first.compat.at("supportsDeveloperRole"), json::value(false));
  const ai::Model& second = composed->models[1];
  EXPECT_EQ(second.context_window, 128000);  // CA-172
  EXPECT_EQ(second.max_tokens, 16384);
  EXPECT_EQ(second.thinking_level_map.at(ai::ThinkingLevel::kXhigh), "max");
  EXPECT_FALSE(second.thinking_level_map.at(ai::ThinkingLevel::kOff));
}

TEST(ModelsFile, EveryViolationIsNamedWithPathAndLine) {  // CA-170, CA-342, FF-115
  const std::string text =
      "{\n"
      "  \"providers\": {\n"
      "    // first\n"
      "    \"b\": {\n"
      "      \"baseUrl\": \"\",\n"
      "      \"api\": 5,\n"
      "      \"compat\": { \"thinkingFormat\": \"smoke\" },\n"
      "      \"models\": [\n"
      "        { \"id\": \"m\", \"input\": [\"text\", \"audio\"], \"cost\": { \"input\": 1, \"output\": 1, "
      "\"cacheRead\": 0 } },\n"
      "        { \"contextWindow\": \"big\" }\n"
      "      ]\n"
      "    }\n"
      "  }\n"
      "}\n";
  const std::string message = problem(text);
  EXPECT_TRUE(message.starts_with("Invalid models.json schema:\n")) << message;
  for (const char* expected :
       {"providers.b.baseUrl: expected a text that is not empty (line 5)", "providers.b.api: ", "(line 6)",
        "providers.b.compat.thinkingFormat: expected one of openai, ", "(line 7)",
        "providers.b.models[0].input[1]: expected one of text, image (line 9)",
        "providers.b.models[0].cost.cacheWrite: expected a value, it is missing (line 9)",
        "providers.b.models[1].id: ", "providers.b.models[1].contextWindow: expected a number (line 10)"}) {
    EXPECT_NE(message.find(expected), std::string::npos) << expected << "\n" << message;
  }
}

TEST(ModelsFile, BrokenJsonSaysWhere) {
  EXPECT_NE(problem("[").find("line 1"), std::string::npos);
  EXPECT_TRUE(problem("[").starts_with("Failed to parse models.json: "));
  EXPECT_FALSE(problem("/* block */ {}").empty());
  EXPECT_NE(problem("[]").find("the file: expected an object"), std::string::npos);
  EXPECT_NE(problem("{}").find("providers"), std::string::npos);
}

TEST(ModelsFile, UnknownKeysAreAccepted) {  // CA-173
  EXPECT_EQ(problem("{\"x\":1,\"providers\":{\"b\":{\"baseUrl\":\"u\",\"new\":[],\"models\":[{\"id\":\"m\",\"api\":"
                    "\"a\",\"y\":{}}]}}}"),
            "");
}

TEST(ModelsFile, AMissingOrEmptyFileIsEmpty) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(read_models_file(folder / "none.json")->providers.empty());
  EXPECT_TRUE(read_models_file(folder.write("empty.json", ""))->providers.empty());
  const auto broken = read_models_file(folder.write("broken.json", "{"));
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find((folder / "broken.json").string()), std::string::npos);
}

// CA-174: seen in pi 0.85.0 with the same file.
TEST(ModelsFile, BuiltInModelsAreChangedReplacedAndJoined) {
  const ModelsFile file = parsed(R"({"providers":{"groq":{"apiKey":"k","baseUrl":"http://over/v1",
    "compat":{"supportsStore":true,"openRouterRouting":{"only":["a"]}},
    "models":[{"id":"openai/gpt-oss-120b","contextWindow":5},
              {"id":"new-one","headers":{"x-b":"2"},"compat":{"openRouterRouting":{"order":["b"]}}}],
    "modelOverrides":{"openai/gpt-oss-20b":{"name":"N","cost":{"input":9},"thinkingLevelMap":{"low":null},
                                            "compat":{"supportsStore":false}},
                      "new-one":{"maxTokens":77},"nope":{"name":"x"}}}}})");
  const auto& built_in = ai::catalog_models("groq");
  const auto composed = compose_provider(built_in, file.providers[0]);
  ASSERT_TRUE(composed) << composed.error().message;
  ASSERT_EQ(composed->models.size(), built_in.size() + 1);
  for (std::size_t i = 0; i < built_in.size(); ++i)
    EXPECT_EQ(composed->models[i].id, built_in[i].id);  // places are kept

  const ai::Model& replaced = model(*composed, "openai/gpt-oss-120b");
  EXPECT_EQ(replaced.context_window, 5);
  EXPECT_FALSE(replaced.reasoning);  // nothing of the built-in one is left
  EXPECT_EQ(replaced.api, "openai-completions");
  EXPECT_EQ(replaced.base_url, "http://over/v1");
  const ai::Model& added = model(*composed, "new-one");
  EXPECT_EQ(added.max_tokens, 77);
  EXPECT_TRUE(json::equal(
      added.compat,
      json::object{{"supportsStore", true}, {"openRouterRouting", {{"only", {"a"}}, {"order", {"b"}}}}}));  // CA-175
  const ai::Model& changed = model(*composed, "openai/gpt-oss-20b");
  EXPECT_EQ(changed.name, "N");
  EXPECT_EQ(changed.cost.input, 9);
  EXPECT_GT(changed.cost.output, 0);
  EXPECT_TRUE(changed.reasoning);
  EXPECT_FALSE(changed.thinking_level_map.at(ai::ThinkingLevel::kLow));
  EXPECT_EQ(changed.compat.at("supportsStore"), json::value(false));
  ASSERT_EQ(composed->model_headers.size(), 1U);
  EXPECT_EQ(composed->model_headers[0].first, "new-one");
}

TEST(ModelsFile, ANewModelTakesAddressAndApiFromItsNearestKin) {
  const ModelsFile file =
      parsed(R"({"providers":{"fireworks":{"models":[{"id":"zz"},{"id":"yy","api":"anthropic-messages"}]},
    "anthropic":{"models":[{"id":"aa"},{"id":"cc","api":"openai-completions"}]}}})");
  const auto fireworks = compose_provider(ai::catalog_models("fireworks"), file.providers[0]);
  ASSERT_TRUE(fireworks);
  EXPECT_EQ(model(*fireworks, "zz").api, "openai-completions");
  EXPECT_EQ(model(*fireworks, "zz").base_url, "https://api.fireworks.ai/inference/v1");
  EXPECT_EQ(model(*fireworks, "yy").base_url, "https://api.fireworks.ai/inference");
  const auto anthropic = compose_provider(ai::catalog_models("anthropic"), file.providers[1]);
  ASSERT_TRUE(anthropic);
  EXPECT_EQ(model(*anthropic, "aa").api, "anthropic-messages");
  EXPECT_EQ(model(*anthropic, "cc").api, "openai-completions");
  EXPECT_EQ(model(*anthropic, "cc").base_url, "https://api.anthropic.com");
}

TEST(ModelsFile, AnEntryThatMakesNoSenseIsRefusedAlone) {  // CA-176
  const ModelsFile file = parsed(R"({"providers":{
    "no-api":{"baseUrl":"http://x","models":[{"id":"m"}]},
    "no-url":{"api":"openai-completions","models":[{"id":"m"}]},
    "no-room":{"baseUrl":"http://x","api":"openai-completions","models":[{"id":"m","maxTokens":0}]},
    "nothing":{},
    "key-only":{"apiKey":"k"},
    "good":{"baseUrl":"http://x","api":"openai-completions","models":[{"id":"m"}]}}})");
  const auto why = [&](std::size_t i) {
    const auto composed = compose_provider({}, file.providers[i]);
    return composed ? std::string() : composed.error().message;
  };
  EXPECT_NE(why(0).find("\"api\""), std::string::npos);
  EXPECT_NE(why(1).find("\"baseUrl\""), std::string::npos);
  EXPECT_NE(why(2).find("\"maxTokens\""), std::string::npos);
  EXPECT_NE(why(3).find("changes nothing"), std::string::npos);
  EXPECT_EQ(why(4), "");
  EXPECT_EQ(why(5), "");
}

}  // namespace
}  // namespace tau::coding
