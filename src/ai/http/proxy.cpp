#include "ai/http/proxy.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

namespace tau::ai::http {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return out;
}

std::optional<int> port_number(std::string_view text) {
  int port = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (ec != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535) return std::nullopt;
  return port;
}

struct HostPort {
  std::string host;
  std::optional<int> port;
};

/// "host", "host:port", "[v6]", "[v6]:port" or a bare IPv6 address.
std::optional<HostPort> split_host(std::string_view text) {
  HostPort out;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    out.host = lower(text.substr(1, close - 1));
    text.remove_prefix(close + 1);
    if (text.empty()) return out;
    if (!text.starts_with(':')) return std::nullopt;
  } else {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
      out.host = lower(text);
      return out;
    }
    out.host = lower(text.substr(0, colon));
    text.remove_prefix(colon);
  }
  text.remove_prefix(1);
  if (text.empty()) return out;
  out.port = port_number(text);
  if (!out.port) return std::nullopt;
  return out;
}

/// Lower case is looked for first (AI-265).
std::string value_of(const EnvironmentLookup& lookup, std::string_view name) {
  for (const std::string& spelling : {lower(name), upper(name)}) {
    if (const auto value = lookup(spelling); value && !value->empty()) return *value;
  }
  return {};
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1" || host == "0:0:0:0:0:0:0:1") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
}

bool matches(std::string_view rule, const UrlParts& url) {
  if (rule == "*") return true;
  bool subdomains_only = false;
  if (rule.starts_with("*.")) rule.remove_prefix(1);
  if (rule.starts_with('.')) {
    subdomains_only = true;
    rule.remove_prefix(1);
  }
  std::optional<HostPort> wanted = split_host(rule);
  if (!wanted || wanted->host.empty()) return false;
  if (wanted->port && *wanted->port != url.port) return false;
  if (wanted->host.ends_with('.')) wanted->host.pop_back();
  if (url.host == wanted->host) return !subdomains_only;
  return url.host.size() > wanted->host.size() && url.host.ends_with(wanted->host) &&
         url.host[url.host.size() - wanted->host.size() - 1] == '.';
}

}  // namespace

std::optional<UrlParts> split_url(std::string_view url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  UrlParts parts;
  parts.scheme = lower(url.substr(0, colon));
  if (parts.scheme != "http" && parts.scheme != "https") return std::nullopt;
  std::string_view authority = url.substr(colon + 3);
  authority = authority.substr(0, authority.find_first_of("/?#\\"));
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
  std::optional<HostPort> host = split_host(authority);
  if (!host || host->host.empty()) return std::nullopt;
  parts.host = std::move(host->host);
  if (parts.host.ends_with('.')) parts.host.pop_back();  // "example.com." is the same host
  parts.port = host->port.value_or(parts.scheme == "https" ? 443 : 80);
  return parts;
}

std::string host_and_port(std::string_view url) {
  const std::optional<UrlParts> parts = split_url(url);
  if (!parts) return "the server";
  std::string host = parts->host.find(':') == std::string::npos ? parts->host : "[" + parts->host + "]";
  if (parts->port == (parts->scheme == "https" ? 443 : 80)) return host;
  return fmt::format("{}:{}", host, parts->port);
}

std::expected<std::string, Error> proxy_for(std::string_view url, const EnvironmentLookup& lookup) {
  const std::optional<UrlParts> parts = split_url(url);
  if (!parts) return std::string();
  std::string variable = parts->scheme + "_proxy";
  std::string proxy = value_of(lookup, variable);
  if (proxy.empty()) {
    variable = "all_proxy";
    proxy = value_of(lookup, variable);
  }
  if (proxy.empty()) return std::string();

  bool loopback_too = false;
  const std::string exceptions = value_of(lookup, "no_proxy");
  for (std::string_view rest = exceptions; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(", \t\r\n"), rest.size());
    const std::string_view rule = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (rule == "<-loopback>") {
      loopback_too = true;
    } else if (!rule.empty() && matches(rule, *parts)) {
      return std::string();
    }
  }
  if (!loopback_too && is_loopback(parts->host)) return std::string();

  if (proxy.find("://") == std::string::npos) proxy = "http://" + proxy;
  if (!split_url(proxy)) {
    // The value may hold a password: it is not quoted.
    return std::unexpected(error(fmt::format(
        "{} names a proxy that cannot be used: it must be http://host:port or https://host:port", upper(variable))));
  }
  return proxy;
}

EnvironmentLookup environment_of(const std::map<std::string, std::string>& env) {
  return [&env](const std::string& name) -> std::optional<std::string> {
    // Capitals of the request come before small letters of the process.
    for (const std::string& spelling : {name, upper(name)}) {
      if (const auto it = env.find(spelling); it != env.end() && !it->second.empty()) return it->second;
    }
    const char* text = std::getenv(name.c_str());
    if (text == nullptr) return std::nullopt;
    return text;
  };
}

}  // namespace tau::ai::http
