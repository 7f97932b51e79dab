// Which proxy a request goes through (AI-265, FF-54).
//
// libcurl has rules of its own for the environment; they differ from what users of Node programs know (it ignores
// HTTP_PROXY in capitals and ports in NO_PROXY). So we decide, and libcurl is told the result.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tau::ai::http {

/// The value of an environment variable; nothing and "" both count as not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// The proxy for `url`, as "http://[user:password@]host[:port]" or "https://…"; "" = connect directly.
///
/// `<scheme>_proxy`, then `all_proxy`, lower case before upper. `no_proxy` is a list separated by commas or blanks:
///   `*`  `host` (and its subdomains)  `.domain` and `*.domain` (subdomains only)  any of these with `:port`
///   IP addresses, IPv6 with or without brackets  `<-loopback>` (proxy localhost too)
/// localhost, *.localhost, 127.0.0.0/8 and [::1] are never proxied, unless `<-loopback>` asks for it.
/// Fails when the variable names a proxy that is neither http nor https.
std::expected<std::string, Error> proxy_for(std::string_view url, const EnvironmentLookup& lookup);

/// Looks in `env` (of a request), then in the process environment.
EnvironmentLookup environment_of(const std::map<std::string, std::string>& env);

struct UrlParts {
  std::string scheme;  // lower case
  std::string host;    // lower case, IPv6 without brackets
  int port = 0;        // the scheme's own when the URL names none
};
/// Nothing when it is no http or https URL with a host.
std::optional<UrlParts> split_url(std::string_view url);

/// "api.example.com" or "127.0.0.1:8080": for messages, so without user, password, path and query.
std::string host_and_port(std::string_view url);

}  // namespace tau::ai::http
