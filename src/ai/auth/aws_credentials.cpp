#include "ai/auth/aws_credentials.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/percent_encoding.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

using Result = std::expected<AwsKeys, std::string>;

constexpr std::chrono::milliseconds kTimeout{5000};
constexpr std::size_t kReplyLimit = std::size_t{256} << 10;

using Section = std::map<std::string, std::string, std::less<>>;

/// One section of a file of the AWS command line ("[name]", "key = value").
Section read_section(const std::string& file, std::string_view wanted) {
  Section section;
  std::ifstream in(file);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    const std::string_view text = utf8::trim(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      inside = utf8::trim(text.substr(1, text.find(']') - 1)) == wanted;
      continue;
    }
    const std::size_t equals = text.find('=');
    if (!inside || equals == std::string_view::npos) continue;
    section[std::string(utf8::trim(text.substr(0, equals)))] = utf8::trim(text.substr(equals + 1));
  }
  return section;
}

std::string value_of(const Section& section, std::string_view key) {
  const auto found = section.find(key);
  return found != section.end() ? found->second : std::string();
}

std::string home_file(const Environment& environment, std::string_view variable, std::string_view name) {
  if (auto file = environment(variable)) return *std::move(file);
  return environment("HOME").value_or("") + std::string(name);
}

std::optional<AwsKeys> keys_of(const json::object& o) {
  AwsKeys keys;
  keys.access_key = json::string_or(o, "AccessKeyId");
  keys.secret_key = json::string_or(o, "SecretAccessKey");
  keys.session_token = json::string_or(o, "Token", json::string_or(o, "SessionToken"));
  if (keys.access_key.empty() || keys.secret_key.empty()) return std::nullopt;
  return keys;
}

/// The user's own program, from the user's own file.
Result run_credential_process(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) return std::unexpected("credential_process cannot be started");
  std::string output;
  std::array<char, 4096> piece{};
  for (std::size_t n = 0;
       (n = std::fread(piece.data(), 1, piece.size(), pipe.get())) > 0 && output.size() < kReplyLimit;)
    output.append(piece.data(), n);
  const auto parsed = json::parse(utf8::trim(output));
  auto keys = parsed && parsed->is_object() ? keys_of(parsed->get_object()) : std::nullopt;
  if (!keys) return std::unexpected("credential_process printed no keys");
  return *std::move(keys);
}

boost::asio::awaitable<std::expected<std::string, std::string>> fetch(http::Client& client, http::Request request,
                                                                      std::stop_token stop) {
  using Text = std::expected<std::string, std::string>;
  request.header_timeout = kTimeout;
  request.idle_timeout = kTimeout;
  const auto response = co_await client.send(std::move(request), stop);
  if (!response) co_return Text(std::unexpect, response.error().message);
  auto body = co_await http::Client::read_all(**response, kReplyLimit);
  if (!body) co_return Text(std::unexpect, body.error().message);
  if ((*response)->status != 200) co_return Text(std::unexpect, fmt::format("status {}", (*response)->status));
  co_return Text(*std::move(body));
}

boost::asio::awaitable<Result> container_keys(http::Client& client, const std::string url, const std::string token,
                                              std::stop_token stop) {
  http::Request request;
  request.method = "GET";
  request.url = url;
  if (!token.empty()) request.headers.emplace_back("authorization", token);
  const auto body = co_await fetch(client, std::move(request), stop);
  if (!body) co_return Result(std::unexpect, "the container gives no AWS keys: " + body.error());
  const auto parsed = json::parse(*body);
  auto keys = parsed && parsed->is_object() ? keys_of(parsed->get_object()) : std::nullopt;
  if (!keys) co_return Result(std::unexpect, "the container's answer holds no AWS keys");
  co_return Result(*std::move(keys));
}

/// The text of an element of a small XML answer.
std::string element(std::string_view xml, std::string_view name) {
  const std::string open = fmt::format("<{}>", name);
  const std::size_t begin = xml.find(open);
  const std::size_t end = xml.find(fmt::format("</{}>", name));
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return std::string(xml.substr(begin + open.size(), end - begin - open.size()));
}

boost::asio::awaitable<Result> web_identity_keys(http::Client& client, Environment environment,
                                                 const std::string region, std::stop_token stop) {
  const std::string file = *environment("AWS_WEB_IDENTITY_TOKEN_FILE");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream token;
  token << in.rdbuf();
  if (!in) co_return Result(std::unexpect, "cannot read AWS_WEB_IDENTITY_TOKEN_FILE " + file);
  http::Request request;
  request.url = environment("AWS_ENDPOINT_URL_STS").value_or(fmt::format("https://sts.{}.amazonaws.com", region)) + "/";
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  request.body = fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&WebIdentityToken={}",
      percent_encode(environment("AWS_ROLE_ARN").value_or("")),
      percent_encode(environment("AWS_ROLE_SESSION_NAME").value_or("tau")), percent_encode(utf8::trim(token.str())));
  const auto body = co_await fetch(client, std::move(request), stop);
  if (!body) co_return Result(std::unexpect, "no AWS keys for the web identity: " + body.error());
  AwsKeys keys{element(*body, "AccessKeyId"), element(*body, "SecretAccessKey"), element(*body, "SessionToken")};
  if (keys.access_key.empty() || keys.secret_key.empty()) {
    co_return Result(std::unexpect, "no AWS keys for the web identity: the answer holds none");
  }
  co_return Result(std::move(keys));
}

}  // namespace

AwsProfile read_aws_profile(const std::string& name, const Environment& environment) {
  AwsProfile profile;
  const Section config = read_section(home_file(environment, "AWS_CONFIG_FILE", "/.aws/config"),
                                      name == "default" ? name : "profile " + name);
  const Section secrets =
      read_section(home_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials"), name);
  profile.region = value_of(config, "region");
  profile.credential_process = value_of(secrets, "credential_process");
  if (profile.credential_process.empty()) profile.credential_process = value_of(config, "credential_process");
  for (const Section* section : {&secrets, &config}) {
    AwsKeys keys{value_of(*section, "aws_access_key_id"), value_of(*section, "aws_secret_access_key"),
                 value_of(*section, "aws_session_token")};
    if (!profile.keys && !keys.access_key.empty() && !keys.secret_key.empty()) profile.keys = std::move(keys);
  }
  return profile;
}

boost::asio::awaitable<std::expected<AwsKeys, std::string>> aws_keys(http::Client& client, Environment environment,
                                                                     std::string region, std::stop_token stop) {
  const auto chosen = environment("AWS_PROFILE");
  if (!chosen) {
    const auto access = environment("AWS_ACCESS_KEY_ID");
    const auto secret = environment("AWS_SECRET_ACCESS_KEY");
    if (access && secret) co_return Result(AwsKeys{*access, *secret, environment("AWS_SESSION_TOKEN").value_or("")});
  }
  const std::string name = chosen.value_or("default");
  AwsProfile profile = read_aws_profile(name, environment);
  if (profile.keys) co_return Result(*std::move(profile.keys));
  if (!profile.credential_process.empty()) {
    Result keys = run_credential_process(profile.credential_process);
    co_return keys;
  }
  if (chosen) {
    co_return Result(std::unexpect, fmt::format("the AWS profile {} has no keys; `aws configure --profile {}` writes "
                                                "some",
                                                name, name));
  }
  if (environment("AWS_WEB_IDENTITY_TOKEN_FILE")) {
    Result keys = co_await web_identity_keys(client, environment, std::move(region), std::move(stop));
    co_return keys;
  }
  std::string url;
  if (const auto relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    url = "http://169.254.170.2" + *relative;
  } else if (const auto full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    url = *full;
  }
  if (!url.empty()) {
    std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
    Result keys = co_await container_keys(client, std::move(url), std::move(token), std::move(stop));
    co_return keys;
  }
  co_return Result(std::unexpect,
                   "no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                   "or AWS_PROFILE");
}

}  // namespace tau::ai
