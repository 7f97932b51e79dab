#include "ai/auth/environment.h"

#include <stdlib.h>

#include <filesystem>

#include "ai/catalog/providers.h"
#include "base/files.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::string_view kAccount = "CLOUDFLARE_ACCOUNT_ID";
constexpr std::string_view kGateway = "CLOUDFLARE_GATEWAY_ID";
constexpr std::string_view kGatewayProvider = "cloudflare-ai-gateway";

bool is_cloudflare(std::string_view provider) {
  return provider == kGatewayProvider || provider == "cloudflare-workers-ai";
}

RequestAuth with_key(std::string key, std::string source) {
  RequestAuth auth;
  auth.api_key = std::move(key);
  auth.source = std::move(source);
  return auth;
}

std::optional<RequestAuth> bedrock_auth(const Environment& env) {
  RequestAuth auth;
  if (auto token = env("AWS_BEARER_TOKEN_BEDROCK")) return with_key(*token, "AWS_BEARER_TOKEN_BEDROCK");
  if (env("AWS_ACCESS_KEY_ID") && env("AWS_SECRET_ACCESS_KEY")) {
    auth.source = "AWS_ACCESS_KEY_ID";
    return auth;
  }
  for (const std::string_view name : {"AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                      "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"}) {
    if (env(name)) {
      auth.source = name;
      return auth;
    }
  }
  return std::nullopt;
}

std::optional<RequestAuth> vertex_auth(const Environment& env) {
  if (auto key = env("GOOGLE_CLOUD_API_KEY")) return with_key(*key, "GOOGLE_CLOUD_API_KEY");
  const bool has_project = env("GOOGLE_CLOUD_PROJECT") || env("GCLOUD_PROJECT");
  if (!has_project || !env("GOOGLE_CLOUD_LOCATION")) return std::nullopt;
  const std::string file =
      env("GOOGLE_APPLICATION_CREDENTIALS").value_or("~/.config/gcloud/application_default_credentials.json");
  std::error_code failed;
  if (!std::filesystem::exists(expand_home(file), failed)) return std::nullopt;
  RequestAuth auth;
  auth.source = "application default credentials";
  return auth;
}

}  // namespace

Environment process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* text = ::getenv(std::string(name).c_str());
    if (text == nullptr || utf8::is_blank(text)) return std::nullopt;
    return text;
  };
}

Environment layered(std::map<std::string, std::string> first, Environment second) {
  return [first = std::move(first), second = std::move(second)](std::string_view name) {
    const auto found = first.find(std::string(name));
    if (found != first.end() && !utf8::is_blank(found->second)) return std::optional(found->second);
    return second(name);
  };
}

std::optional<RequestAuth> key_auth(std::string_view provider, std::string key, std::string source,
                                    const Environment& environment) {
  if (!is_cloudflare(provider)) return with_key(std::move(key), std::move(source));
  const bool gateway = provider == kGatewayProvider;
  RequestAuth auth = with_key(std::move(key), std::move(source));
  for (const std::string_view name : {kAccount, kGateway}) {
    if (name == kGateway && !gateway) continue;
    auto text = environment(name);
    if (!text) return std::nullopt;
    auth.env.emplace(name, *std::move(text));
  }
  if (gateway) {  // AI-250: the gateway has its own header; the provider behind it holds its own key
    auth.headers = {{"cf-aig-authorization", "Bearer " + *auth.api_key},
                    {"Authorization", std::nullopt},
                    {"x-api-key", std::nullopt}};
  }
  return auth;
}

std::optional<RequestAuth> environment_auth(std::string_view provider, const Environment& environment) {
  if (provider == "amazon-bedrock") return bedrock_auth(environment);
  if (provider == "google-vertex") return vertex_auth(environment);
  const ProviderInfo* info = find_provider(provider);
  if (info == nullptr) return std::nullopt;
  for (const std::string_view name : info->key_variables) {
    if (name.empty()) break;
    auto key = environment(name);
    if (!key) continue;
    if (name == "ANTHROPIC_AUTH_TOKEN") {  // AI-250: a bearer token, not a key
      RequestAuth auth;
      auth.headers = {{"Authorization", "Bearer " + *key}};
      auth.source = name;
      return auth;
    }
    return key_auth(provider, *std::move(key), std::string(name), environment);
  }
  return std::nullopt;
}

std::vector<std::string> wanted_variables(std::string_view provider) {
  if (provider == "amazon-bedrock") return {"AWS_PROFILE", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"};
  if (provider == "anthropic") return {"ANTHROPIC_API_KEY"};  // the one that people have
  std::vector<std::string> names;
  if (const ProviderInfo* info = find_provider(provider)) {
    for (const std::string_view name : info->key_variables) {
      if (!name.empty()) names.emplace_back(name);
    }
  }
  if (is_cloudflare(provider)) names.emplace_back(kAccount);
  if (provider == kGatewayProvider) names.emplace_back(kGateway);
  return names;
}

std::string fill_base_url(std::string_view base_url, const Environment& environment) {
  std::string out(base_url);
  for (const std::string_view name : {kAccount, kGateway}) {
    const std::string mark = "{" + std::string(name) + "}";
    const std::size_t at = out.find(mark);
    if (at == std::string::npos) continue;
    if (const auto text = environment(name)) out.replace(at, mark.size(), *text);
  }
  return out;
}

}  // namespace tau::ai
