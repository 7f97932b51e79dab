#include <fstream>

#include <gtest/gtest.h>

#include "ai/auth/google_credentials.h"
#include "ai/providers/google_generative_ai.h"
#include "ai/providers/google_vertex.h"
#include "ai/providers/provider_fixtures.h"

#include "support/fixture.h"
#include "support/http_server.h"
#include "support/run.h"

namespace tau::ai {
namespace {

json::array& contents_of(test::Expectation& expected) {
  return expected.requests.at(0).at("body").at("contents").as_array();
}

/// FF-9: blank user messages are not sent; FF-13: results in the order of the calls.
void own_order(test::Expectation& expected) {
  json::array kept;
  for (json::value& content : contents_of(expected)) {
    json::array& parts = content.at("parts").as_array();
    if (parts.size() == 1 && json::find_string(parts[0].get_object(), "text") == "") continue;
    if (parts.size() == 2 && parts[0].get_object().contains("functionResponse")) std::swap(parts[0], parts[1]);
    kept.push_back(std::move(content));
  }
  contents_of(expected) = std::move(kept);
}

/// FF-9: a result without a text says so.
void say_no_output(test::Expectation& expected) {
  for (json::value& content : contents_of(expected)) {
    for (json::value& part : content.at("parts").as_array()) {
      json::object* response = nullptr;
      if (part.get_object().contains("functionResponse"))
        response = &part.at("functionResponse").at("response").get_object();
      if (response != nullptr && json::find_string(*response, "output") == "")
        (*response)["output"] = "(no tool output)";
    }
  }
}

/// FF-13: all results of a turn in one content; the images follow.
void images_after_all_results(test::Expectation& expected) {
  json::array& contents = contents_of(expected);
  json::value last = contents.back();
  contents.pop_back();
  json::array& first = contents.at(2).at("parts").as_array();
  first.push_back(last.at("parts").at(0));
}

/// AI-203: an error is an error, however it is dressed.
void report_the_error(test::Expectation& expected) {
  std::erase_if(expected.events,
                [](const json::value& event) { return json::string_or(event.get_object(), "type") == "text_end"; });
  expected.message["errorMessage"] =
      R"(got status: UNAVAILABLE. {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}})";
}

const test::Differences& differences() {
  static const test::Differences all{
      {"orphans-and-skips", {"FF-9, FF-13: no blank message; results in call order", own_order}},
      {"tool-results-image", {"FF-9: an empty result gets a text", say_no_output}},
      {"tool-results-image-gemini2", {"FF-13: one content holds all results of a turn", images_after_all_results}},
      {"mid-stream-error", {"AI-203: an error inside an event is reported", report_the_error}},
  };
  return all;
}

TAU_PROVIDER_FIXTURES(GoogleGenerativeAi, "google-generative-ai", differences());
TAU_PROVIDER_FIXTURES(GoogleVertex, "google-vertex", {});

Model gemini(std::string id = "gemini-3-flash-preview") {
  Model m;
  m.id = std::move(id);
  m.api = "google-generative-ai";
  m.provider = "google";
  m.base_url = "http://127.0.0.1:1/v1beta";
  m.reasoning = true;
  m.max_tokens = 1000;
  return m;
}

test::Decoded decode(std::string_view body, std::size_t piece = 1 << 20) {
  GoogleDecoder decoder(gemini());
  return test::decode(decoder, test::pieces_of(body, piece));
}

/// Without the time in made ids.
std::vector<std::string> events_of(const test::Decoded& decoded) {
  std::vector<std::string> events;
  for (std::string text : decoded.events) {
    if (const std::size_t at = text.find("lookup_berth_1"); at != std::string::npos) text.erase(at + 12, 14);
    events.push_back(std::move(text));
  }
  return events;
}

TEST(GoogleDecoder, AnySplitOfTheBytesGivesTheSameEvents) {  // FF-53
  for (const char* name : {"parallel-tool-calls", "thinking-signature", "single-tool-call", "mid-stream-error-raw"}) {
    const std::string body = test::case_response("google-generative-ai", name);
    const auto whole = events_of(decode(body)).size();
    EXPECT_EQ(events_of(decode(body, 1)).size(), whole) << name;
    for (std::size_t at = 0; at <= body.size(); ++at) {
      GoogleDecoder decoder(gemini());
      const std::string_view text = body;
      const test::Decoded split = test::decode(decoder, {text.substr(0, at), text.substr(at)});
      ASSERT_EQ(split.events.size(), whole) << name << " cut at " << at;
      ASSERT_EQ(split.terminal_events, 1);
    }
  }
}

TEST(GoogleDecoder, AnyBeginningOfAStreamEndsInOneTerminalEvent) {  // FF-46
  for (const std::string& name : test::provider_cases("google-generative-ai")) {
    const std::string body = test::case_response("google-generative-ai", name);
    for (std::size_t at = 0; at < body.size(); at += 3) {
      const test::Decoded decoded = decode(std::string_view(body).substr(0, at));
      ASSERT_EQ(decoded.terminal_events, 1) << name << " cut at " << at;
      ASSERT_NE(decoded.message.stop_reason, StopReason::kPending);
    }
  }
}

TEST(GoogleDecoder, AnErrorInsteadOfAStreamIsReported) {  // AI-203
  const test::Decoded decoded = decode("{\n  \"error\": {\"code\": 429, \"status\": \"RESOURCE_EXHAUSTED\"}\n}\n");
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kError);
  EXPECT_EQ(decoded.message.error_message,
            R"(got status: RESOURCE_EXHAUSTED. {"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}})");
}

TEST(GoogleEncoder, AThinkingWordThatTheServiceDoesNotKnowFails) {  // AI-199
  Model model = gemini();
  model.thinking_level_map[ThinkingLevel::kHigh] = "extreme";
  StreamOptions options;
  options.reasoning = ThinkingLevel::kHigh;
  EXPECT_FALSE(encode_google(model, {}, options));
}

TEST(GoogleEncoder, StrictSchemasNeedTheThirdGeneration) {  // AI-196
  Context context;
  Tool tool;
  tool.name = "t";
  tool.parameters = json::object{{"type", "object"}, {"properties", json::object{}}};
  tool.constrained_sampling = json::object{{"type", "json_schema"}, {"strict", "require"}};
  context.tools.push_back(tool);
  EXPECT_TRUE(encode_google(gemini(), context, {}));
  EXPECT_FALSE(encode_google(gemini("gemini-2.5-pro"), context, {}));
}

// ---- Vertex --------------------------------------------------------------------------------------------------------

Model vertex_model(std::string base_url) {
  Model m = gemini();
  m.api = "google-vertex";
  m.provider = "google-vertex";
  m.base_url = std::move(base_url);
  return m;
}

TEST(GoogleVertex, AddressesForKeysAndLogins) {  // AI-210
  StreamOptions options;
  options.api_key = "real-key";
  EXPECT_EQ(vertex_url(vertex_model("https://{location}-aiplatform.googleapis.com"), options),
            "https://aiplatform.googleapis.com/v1/publishers/google/models/"
            "gemini-3-flash-preview:streamGenerateContent?alt=sse");
  EXPECT_EQ(vertex_url(vertex_model("http://proxy/v1beta1/"), options),
            "http://proxy/v1beta1/publishers/google/models/gemini-3-flash-preview:streamGenerateContent?alt=sse");
  options.api_key = "<authenticated>";
  options.env = {{"GOOGLE_CLOUD_PROJECT", "p1"}, {"GOOGLE_CLOUD_LOCATION", "europe-west4"}};
  EXPECT_EQ(vertex_url(vertex_model(""), options),
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p1/locations/europe-west4/publishers/google/"
            "models/gemini-3-flash-preview:streamGenerateContent?alt=sse");
  options.env = {{"GOOGLE_CLOUD_PROJECT", "p1"}};
  EXPECT_NE(vertex_url(vertex_model(""), options).error().find("GOOGLE_CLOUD_LOCATION"), std::string::npos);
  options.env.clear();
  EXPECT_NE(vertex_url(vertex_model(""), options).error().find("GOOGLE_CLOUD_PROJECT"), std::string::npos);
}

class VertexLogin : public testing::Test {
 protected:
  AssistantMessage call(const std::string& credentials_file) {
    StreamOptions options;
    options.env = {{"GOOGLE_CLOUD_PROJECT", "p1"},
                   {"GOOGLE_CLOUD_LOCATION", "here"},
                   {"GOOGLE_APPLICATION_CREDENTIALS", credentials_file}};
    Context context;
    context.messages.push_back(make_message(Message(UserMessage{std::string("hi"), 1, {}})));
    boost::asio::io_context io;
    const auto client = http::make_client(io.get_executor());
    return test::run(io, stream_google_vertex(*client, vertex_model(server.url()), context, options,
                                              [](const StreamEvent&) { return std::nullopt; }, {}));
  }
  void answer_with_text() {
    server.add(
        test::sse_answer("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ok\"}]},"
                         "\"finishReason\":\"STOP\"}]}\n\n"));
  }

  test::HttpServer server;
  test::TemporaryFolder folder;
};

TEST_F(VertexLogin, ALoginsTokenIsFetchedOnceAndSent) {  // AI-210
  folder.write("adc.json", json::to_text(json::object{{"type", "authorized_user"},
                                                      {"client_id", "id&1"},
                                                      {"client_secret", "s"},
                                                      {"refresh_token", "r"},
                                                      {"token_uri", server.url() + "/token"}}));
  test::ScriptedAnswer token;
  token.body = R"({"access_token":"ya29.abc","expires_in":3600})";
  server.add(std::move(token));
  answer_with_text();
  answer_with_text();
  const std::string file = (folder / "adc.json").string();
  EXPECT_EQ(text_of(call(file)), "ok");
  EXPECT_EQ(text_of(call(file)), "ok");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].body, "grant_type=refresh_token&client_id=id%261&client_secret=s&refresh_token=r");
  EXPECT_EQ(requests[1].headers.at("authorization"), "Bearer ya29.abc");
  EXPECT_EQ(requests[2].headers.at("authorization"), "Bearer ya29.abc");
  EXPECT_FALSE(requests[1].headers.contains("x-goog-api-key"));
}

TEST_F(VertexLogin, AServiceAccountSignsItsRequest) {  // AI-210
  const std::string pem = (folder / "key.pem").string();
  ASSERT_EQ(std::system(
                ("openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out " + pem + " 2>/dev/null").c_str()),
            0);
  folder.write("sa.json", json::to_text(json::object{{"type", "service_account"},
                                                     {"client_email", "bot@p1"},
                                                     {"private_key", test::read_file(pem)},
                                                     {"token_uri", server.url() + "/token"}}));
  const auto credentials = read_google_credentials((folder / "sa.json").string());
  ASSERT_TRUE(credentials) << credentials.error();
  const auto assertion = google_assertion(*credentials, 1000);
  ASSERT_TRUE(assertion) << assertion.error();
  // openssl checks the signature over the first two parts.
  const std::size_t dot = assertion->rfind('.');
  folder.write("signed", assertion->substr(0, dot));
  folder.write("signature", assertion->substr(dot + 1));
  const std::string check = "cd " + folder.path().string() +
                            " && openssl pkey -in key.pem -pubout -out pub.pem 2>/dev/null && "
                            "{ tr '_-' '/+' < signature; printf '=='; } | openssl base64 -d -A > raw 2>/dev/null; "
                            "openssl dgst -sha256 -verify pub.pem -signature raw signed >/dev/null";
  EXPECT_EQ(std::system(check.c_str()), 0);

  test::ScriptedAnswer token;
  token.body = R"({"access_token":"ya29.sa","expires_in":3600})";
  server.add(std::move(token));
  answer_with_text();
  EXPECT_EQ(text_of(call((folder / "sa.json").string())), "ok");
  EXPECT_TRUE(
      server.requests().at(0).body.starts_with("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
                                               "&assertion="));
}

TEST_F(VertexLogin, WhatIsWrongWithTheLoginIsSaid) {
  EXPECT_NE(call("/nowhere/adc.json").error_message->find("/nowhere/adc.json"), std::string::npos);
  folder.write("x.json", R"({"type":"external_account"})");
  EXPECT_NE(call((folder / "x.json").string()).error_message->find("external_account"), std::string::npos);
  folder.write("bad.json", json::to_text(json::object{{"type", "authorized_user"},
                                                      {"client_id", "i"},
                                                      {"client_secret", "s"},
                                                      {"refresh_token", "r"},
                                                      {"token_uri", server.url() + "/token"}}));
  test::ScriptedAnswer refused;
  refused.status = 400;
  refused.body = R"({"error":"invalid_grant","error_description":"Token has been expired or revoked."})";
  server.add(std::move(refused));
  const AssistantMessage message = call((folder / "bad.json").string());
  EXPECT_EQ(message.stop_reason, StopReason::kError);
  EXPECT_NE(message.error_message->find("expired or revoked"), std::string::npos);
}

}  // namespace
}  // namespace tau::ai
