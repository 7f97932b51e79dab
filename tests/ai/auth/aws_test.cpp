#include <stdlib.h>

#include <gtest/gtest.h>

#include "ai/auth/aws_credentials.h"
#include "ai/auth/aws_signature.h"
#include "base/hash.h"

#include "support/fixture.h"
#include "support/http_server.h"
#include "support/run.h"

namespace tau::ai {
namespace {

// Real signatures, made by Amazon's own library with a clock that stood still.
TEST(AwsSignature, IsTheRecordedOne) {  // AI-224
  int checked = 0;
  for (const auto& folder : test::folders_in(test::fixture_root() / "ai/bedrock-converse-stream")) {
    const json::object request = test::read_json(folder / "request.json").as_object();
    const json::object& headers = *json::find_object(request, "headers");
    const std::string wanted = json::string_or(headers, "authorization");
    if (!wanted.starts_with("AWS4-HMAC-SHA256")) continue;
    const std::size_t begin = wanted.find("SignedHeaders=") + 14;
    const std::string names = wanted.substr(begin, wanted.find(',', begin) - begin);
    AwsRequest signed_request;
    signed_request.method = json::string_or(request, "method");
    signed_request.path = json::string_or(request, "path");
    signed_request.payload_hash = hex(sha256(json::string_or(request, "rawBody")));
    EXPECT_EQ(signed_request.payload_hash, json::string_or(headers, "x-amz-content-sha256"));
    for (std::size_t at = 0; at < names.size();) {
      const std::string name = names.substr(at, names.find(';', at) - at);
      signed_request.headers.emplace_back(name, json::string_or(headers, name));
      at += name.size() + 1;
    }
    const AwsKeys keys{"AKIDEXAMPLEELLERY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", {}};
    EXPECT_EQ(aws_authorization(signed_request, keys, "eu-west-1", "bedrock", "20260101T000000Z"), wanted)
        << folder.filename();
    ++checked;
  }
  EXPECT_GE(checked, 4);
}

TEST(AwsSignature, TimesAreInAmazonsForm) {
  EXPECT_EQ(aws_time(1767225600000), "20260101T000000Z");
}

class AwsKeysTest : public testing::Test {
 protected:
  std::expected<AwsKeys, std::string> keys(std::map<std::string, std::string> variables) {
    variables.emplace("HOME", folder.path().string());
    const Environment environment = layered(variables, [](std::string_view) { return std::nullopt; });
    boost::asio::io_context io;
    const auto client = http::make_client(io.get_executor());
    return test::run(io, aws_keys(*client, environment, "eu-west-1", {}));
  }

  test::TemporaryFolder folder;
  test::HttpServer server;
};

TEST_F(AwsKeysTest, ComeFromTheEnvironment) {
  const auto found = keys({{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "S"}, {"AWS_SESSION_TOKEN", "T"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->access_key + found->secret_key + found->session_token, "AST");
}

TEST_F(AwsKeysTest, ComeFromProfiles) {
  folder.write(".aws/credentials",
               "[default]\naws_access_key_id = D\naws_secret_access_key=DS\n\n[work]\naws_access_key_id=W\n"
               "aws_secret_access_key = WS\naws_session_token = WT\n");
  folder.write(".aws/config", "# regions\n[default]\nregion = us-west-2\n[profile work]\nregion=eu-north-1\n");
  EXPECT_EQ(keys({})->access_key, "D");
  // A profile that was asked for comes before keys that lie about.
  const auto work = keys({{"AWS_PROFILE", "work"}, {"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "S"}});
  EXPECT_EQ(work->session_token, "WT");
  const Environment environment =
      layered({{"HOME", folder.path().string()}}, [](std::string_view) { return std::nullopt; });
  EXPECT_EQ(read_aws_profile("work", environment).region, "eu-north-1");
  EXPECT_NE(keys({{"AWS_PROFILE", "missing"}}).error().find("missing"), std::string::npos);
}

TEST_F(AwsKeysTest, ComeFromTheUsersOwnProgram) {
  folder.write(
      ".aws/config",
      "[default]\ncredential_process = echo '{\"Version\":1,\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"PS\"}'\n");
  EXPECT_EQ(keys({})->access_key, "P");
}

TEST_F(AwsKeysTest, ComeFromTheContainer) {
  test::ScriptedAnswer answer;
  answer.body = R"({"AccessKeyId":"C","SecretAccessKey":"CS","Token":"CT"})";
  server.add(std::move(answer));
  const auto found = keys({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/creds"},
                           {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "let me in"}});
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found->session_token, "CT");
  EXPECT_EQ(server.requests().at(0).headers.at("authorization"), "let me in");
}

TEST_F(AwsKeysTest, ComeForAWebIdentity) {
  folder.write("token", "jwt.of.pod\n");
  test::ScriptedAnswer answer;
  answer.body =
      "<R><Credentials><AccessKeyId>I</AccessKeyId><SecretAccessKey>IS</SecretAccessKey>"
      "<SessionToken>IT</SessionToken></Credentials></R>";
  server.add(std::move(answer));
  const auto found = keys({{"AWS_WEB_IDENTITY_TOKEN_FILE", (folder / "token").string()},
                           {"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"},
                           {"AWS_ENDPOINT_URL_STS", server.url()}});
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found->session_token, "IT");
  EXPECT_NE(server.requests().at(0).body.find("WebIdentityToken=jwt.of.pod"), std::string::npos);
}

TEST_F(AwsKeysTest, WithoutAnyTheErrorSaysWhatToSet) {
  EXPECT_NE(keys({}).error().find("AWS_ACCESS_KEY_ID"), std::string::npos);
}

}  // namespace
}  // namespace tau::ai
