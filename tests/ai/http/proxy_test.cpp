#include "ai/http/proxy.h"

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tau::ai::http {
namespace {

using Variables = std::map<std::string, std::string>;
using ::testing::HasSubstr;
using ::testing::Not;

EnvironmentLookup only(const Variables& variables) {
  return [&variables](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  };
}

struct Case {
  std::string url;
  Variables variables;
  std::string proxy;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.url;
  for (const auto& [name, value] : c.variables)
    *out << " " << name << "=" << value;
}

class ProxyRule : public ::testing::TestWithParam<Case> {};

TEST_P(ProxyRule, GivesTheProxy) {  // AI-265, FF-54
  const auto proxy = proxy_for(GetParam().url, only(GetParam().variables));
  ASSERT_TRUE(proxy) << proxy.error().message;
  EXPECT_EQ(*proxy, GetParam().proxy);
}

Case with_exception(std::string url, std::string no_proxy, bool direct) {
  return {std::move(url), {{"all_proxy", "http://p:1"}, {"no_proxy", std::move(no_proxy)}}, direct ? "" : "http://p:1"};
}

const std::vector<Case> kVariables = {
    {"http://api.test/", {}, ""},
    {"http://api.test/", {{"http_proxy", "http://p:1"}}, "http://p:1"},
    {"http://api.test/", {{"HTTP_PROXY", "http://p:1"}}, "http://p:1"},
    {"https://api.test/", {{"http_proxy", "http://p:1"}}, ""},
    {"https://api.test/", {{"HTTPS_PROXY", "http://p:1"}}, "http://p:1"},
    {"https://api.test/", {{"https_proxy", "http://low:1"}, {"HTTPS_PROXY", "http://up:1"}}, "http://low:1"},
    {"https://api.test/", {{"https_proxy", ""}, {"HTTPS_PROXY", "http://up:1"}}, "http://up:1"},
    {"https://api.test/", {{"ALL_PROXY", "http://all:1"}}, "http://all:1"},
    {"https://api.test/", {{"https_proxy", "http://s:1"}, {"all_proxy", "http://all:1"}}, "http://s:1"},
    {"http://api.test/", {{"http_proxy", "p:1"}}, "http://p:1"},
    {"http://api.test/", {{"http_proxy", "https://user:pw@p:1"}}, "https://user:pw@p:1"},
};
INSTANTIATE_TEST_SUITE_P(Variables, ProxyRule, ::testing::ValuesIn(kVariables));

const std::vector<Case> kExceptions = {
    with_exception("https://api.test/", "*", true),
    with_exception("https://api.test/", "api.test", true),
    with_exception("https://API.Test/", "Api.tesT", true),
    with_exception("https://api.test./", "api.test", true),
    with_exception("https://v1.api.test/", "api.test", true),
    with_exception("https://myapi.test/", "api.test", false),
    with_exception("https://v1.api.test/", ".api.test", true),
    with_exception("https://api.test/", ".api.test", false),
    with_exception("https://v1.api.test/", "*.api.test", true),
    with_exception("https://api.test/", "*.api.test", false),
    with_exception("https://api.test/", "other, api.test", true),
    with_exception("https://api.test/", "other api.test", true),
    with_exception("https://api.test/", " ,other,,", false),
    with_exception("https://api.test/", "api.test:443", true),
    with_exception("https://api.test/", "api.test:8443", false),
    with_exception("https://api.test:8443/", "api.test:8443", true),
    with_exception("http://v1.api.test:8080/", ".api.test:8080", true),
    with_exception("http://10.0.0.7/", "10.0.0.7", true),
    with_exception("http://10.0.0.77/", "10.0.0.7", false),
    with_exception("http://[fd00::7]:8080/", "[fd00::7]", true),
    with_exception("http://[fd00::7]:8080/", "fd00::7", true),
    with_exception("http://[fd00::7]:8080/", "[fd00::7]:8080", true),
    with_exception("http://[fd00::7]:8080/", "[fd00::7]:80", false),
};
INSTANTIATE_TEST_SUITE_P(Exceptions, ProxyRule, ::testing::ValuesIn(kExceptions));

const std::vector<Case> kLoopback = {
    with_exception("http://127.0.0.1:11434/", "", true),
    with_exception("http://127.9.9.9/", "", true),
    with_exception("http://localhost:11434/", "", true),
    with_exception("http://model.localhost/", "", true),
    with_exception("http://[::1]:11434/", "", true),
    with_exception("http://127.example.test/", "", false),
    with_exception("http://localhost.test/", "", false),
    with_exception("http://localhost:11434/", "<-loopback>", false),
    with_exception("http://127.0.0.1/", "<-loopback>,127.0.0.1", true),
};
INSTANTIATE_TEST_SUITE_P(Loopback, ProxyRule, ::testing::ValuesIn(kLoopback));

TEST(Proxy, OnlyHttpProxiesAreTakenAndThePasswordIsNotShown) {  // AI-265, FF-108
  const Variables variables = {{"ALL_PROXY", "socks5://user:hunter2@p:1"}};
  const auto proxy = proxy_for("http://api.test/", only(variables));
  ASSERT_FALSE(proxy);
  EXPECT_THAT(proxy.error().message, HasSubstr("ALL_PROXY"));
  EXPECT_THAT(proxy.error().message, Not(HasSubstr("hunter2")));
}

TEST(Proxy, VariablesOfTheRequestComeBeforeTheProcess) {  // AI-265
  ::setenv("http_proxy", "http://process:1", 1);
  const Variables request = {{"HTTP_PROXY", "http://request:1"}};
  EXPECT_EQ(*proxy_for("http://api.test/", environment_of(request)), "http://request:1");
  EXPECT_EQ(*proxy_for("http://api.test/", environment_of({})), "http://process:1");
  ::unsetenv("http_proxy");
}

TEST(Proxy, MessagesNameHostAndPortOnly) {  // FF-108
  EXPECT_EQ(host_and_port("https://user:pw@Api.test/v1?key=secret"), "api.test");
  EXPECT_EQ(host_and_port("http://127.0.0.1:8080/x"), "127.0.0.1:8080");
  EXPECT_EQ(host_and_port("https://[::1]:9/"), "[::1]:9");
  EXPECT_EQ(host_and_port("nonsense"), "the server");
}

}  // namespace
}  // namespace tau::ai::http
