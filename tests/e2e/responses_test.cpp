// The Responses family with the real executable: built-in models with the key of the environment, and models.json.
#include <algorithm>

#include <gtest/gtest.h>

#include "e2e/workplace.h"

namespace tau::test {
namespace {

/// A token as the ChatGPT backend takes it: its payload names the account "acct-1".
constexpr const char* kAccountToken =
    "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xIn19.sig";

void write_models(const Workplace& place, const json::object& providers) {
  std::ofstream(place.agent() / "models.json") << json::to_text(json::object{{"providers", providers}});
}

/// Queues a call of `read` and the answer that follows its result.
void script_a_tool_round(Workplace& place) {
  place.file("a.txt", "alpha\n");
  place.server.add(sse_answer(
      reply_stream("openai-responses",
                   {.text = "Reading.", .calls = {{"c1", "read", {{"path", "a.txt"}}}}, .thinking = "look"}, 1)));
  place.server.add(sse_answer(reply_stream("openai-responses", {.text = "It says alpha."}, 2)));
}

std::vector<std::string> conversation(const Workplace& place, std::size_t request) {
  return conversation_of("openai-responses", place.server.requests().at(request).json());
}

const std::vector<std::string> kSecondRequest{"user: what does a.txt say?", "thinking enc-1: look",
                                              "assistant: Reading.", "call c1 read", "tool c1: alpha\n"};

TEST(Responses, ABuiltInModelRunsAToolWithTheKeyOfTheEnvironment) {
  Workplace place;
  write_models(place, {{"openai", {{"baseUrl", place.server.url() + "/v1"}}}});
  place.environment["OPENAI_API_KEY"] = "sk-of-the-environment";
  script_a_tool_round(place);
  const ProgramResult result = place.run({"--provider", "openai", "--model", "gpt-5.1", "-p", "what does a.txt say?"});
  EXPECT_EQ(result.out, "It says alpha.\n") << result.err;

  const std::vector<RecordedRequest> requests = place.server.requests();
  ASSERT_EQ(requests.size(), 2U);
  for (const RecordedRequest& request : requests) {  // AI-160, AI-161
    EXPECT_EQ(request.path, "/v1/responses");
    EXPECT_EQ(request.headers.at("authorization"), "Bearer sk-of-the-environment");
    EXPECT_EQ(json::string_or(request.json(), "model"), "gpt-5.1");
    EXPECT_FALSE(json::bool_or(request.json(), "store", true));
  }
  EXPECT_EQ(conversation(place, 1), kSecondRequest);

  // AI-174: 60 of 100 tokens were not cached; prices of the catalogue.
  const std::vector<json::object> messages = place.session_messages();
  ASSERT_EQ(messages.size(), 4U);
  const json::object& usage = *json::find_object(messages[1], "usage");
  EXPECT_EQ(json::number_or(usage, "input"), 60);
  EXPECT_EQ(json::number_or(usage, "cacheRead"), 40);
  EXPECT_EQ(json::number_or(*json::find_object(usage, "cost"), "input"), 1.25 / 1000000 * 60);
  EXPECT_EQ(json::number_or(*json::find_object(usage, "cost"), "cacheRead"), 0.125 / 1000000 * 40);
}

TEST(Responses, AzureTakesAddressAndDeploymentFromTheEnvironment) {  // AI-184, AI-185
  Workplace place;
  place.environment["AZURE_OPENAI_API_KEY"] = "azure-key";
  place.environment["AZURE_OPENAI_BASE_URL"] = place.server.url() + "/openai/v1";
  place.environment["AZURE_OPENAI_DEPLOYMENT_NAME_MAP"] = "gpt-5.4=prod";
  script_a_tool_round(place);
  const ProgramResult result =
      place.run({"--provider", "azure-openai-responses", "--model", "gpt-5.4", "-p", "what does a.txt say?"});
  EXPECT_EQ(result.out, "It says alpha.\n") << result.err;
  const std::vector<RecordedRequest> requests = place.server.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].path, "/openai/v1/responses?api-version=v1");
  EXPECT_EQ(requests[1].headers.at("api-key"), "azure-key");
  EXPECT_EQ(json::string_or(requests[1].json(), "model"), "prod");
  EXPECT_EQ(conversation(place, 1), kSecondRequest);
}

TEST(Responses, CodexNamesTheAccountOfItsToken) {  // AI-188 to AI-190
  Workplace place;
  write_models(place, {{"openai-codex", {{"baseUrl", place.server.url()}, {"apiKey", kAccountToken}}}});
  script_a_tool_round(place);
  const ProgramResult result =
      place.run({"--provider", "openai-codex", "--model", "gpt-5.5", "-p", "what does a.txt say?"});
  EXPECT_EQ(result.out, "It says alpha.\n") << result.err;
  const std::vector<RecordedRequest> requests = place.server.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].path, "/codex/responses");
  EXPECT_EQ(requests[1].headers.at("chatgpt-account-id"), "acct-1");
  EXPECT_FALSE(json::string_or(requests[1].json(), "instructions").empty());
  EXPECT_EQ(conversation(place, 1), kSecondRequest);
}

TEST(Responses, AKeyInTheEnvironmentIsEnough) {
  Workplace place;
  write_models(place, {{"openai", {{"baseUrl", place.server.url() + "/v1"}}}});
  place.environment["OPENAI_API_KEY"] = "sk-of-the-environment";
  EXPECT_NE(place.run({"--list-models"}).out.find("gpt-5.1"), std::string::npos);
  place.server.add(sse_answer(reply_stream("openai-responses", {.text = "hello"})));
  const ProgramResult result = place.run({"-p", "hi"});
  EXPECT_EQ(result.out, "hello\n") << result.err;
}

TEST(Responses, AnErrorInTheStreamIsTriedAgain) {  // FF-49
  Workplace place;
  place.use_provider("openai-responses");
  place.server.add(sse_answer(
      "data: {\"type\":\"error\",\"error\":{\"type\":\"server_error\",\"message\":\"Sorry about that.\"}}\n\n"));
  place.reply({.text = "now"});
  const ProgramResult result = place.run({"-p", "hi"});
  EXPECT_EQ(result.out, "now\n") << result.err;
  EXPECT_EQ(place.server.requests().size(), 2U);
}

}  // namespace
}  // namespace tau::test
