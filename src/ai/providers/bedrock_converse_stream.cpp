#include "ai/providers/bedrock_converse_stream.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ai/auth/aws_credentials.h"
#include "ai/auth/aws_signature.h"
#include "ai/provider_call.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/percent_encoding.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::string_view kService = "bedrock";
constexpr std::string_view kDefaultRegion = "us-east-1";

/// The region of one of Amazon's own hosts: "bedrock-runtime[-fips].<region>.amazonaws.com[.cn]".
std::optional<std::string> standard_region(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  std::string_view host = url.substr(scheme + 3);
  host = host.substr(0, host.find_first_of("/:"));
  for (const std::string_view prefix : {"bedrock-runtime-fips.", "bedrock-runtime."}) {
    if (!host.starts_with(prefix)) continue;
    host.remove_prefix(prefix.size());
    for (const std::string_view suffix : {".amazonaws.com.cn", ".amazonaws.com"}) {
      if (host.ends_with(suffix)) return std::string(host.substr(0, host.size() - suffix.size()));
    }
    return std::nullopt;
  }
  return std::nullopt;
}

/// "arn:aws:bedrock:eu-west-1:…".
std::optional<std::string> arn_region(std::string_view id) {
  if (!id.starts_with("arn:")) return std::nullopt;
  for (int colons = 0; colons < 3; ++colons) {
    const std::size_t colon = id.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    id.remove_prefix(colon + 1);
  }
  const std::string_view region = id.substr(0, id.find(':'));
  return region.empty() ? std::nullopt : std::optional(std::string(region));
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

std::string header_value(const http::HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

/// How one call proves who asks.
struct Proof {
  std::string bearer;           // not empty: sent as it is
  std::optional<AwsKeys> keys;  // else the request is signed
};

/// Host and path of a URL.
std::pair<std::string, std::string> host_and_path(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  const std::size_t slash = rest.find('/');
  return {std::string(rest.substr(0, slash)), slash == std::string_view::npos ? "/" : std::string(rest.substr(slash))};
}

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options, const BedrockEndpoint& endpoint,
                                                 const Proof& proof) {
  auto body = encode_bedrock(model, context, options, endpoint.region);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);
  ProviderCall call;
  json::write(call.request.body, *body);
  call.request.url = join_url(endpoint.base_url, fmt::format("/model/{}/converse-stream", percent_encode(model.id)));

  Headers headers{{"content-type", "application/json"}, {"accept", "application/vnd.amazon.eventstream"}};
  for (const Headers* own : {&model.headers, &options.headers}) {
    for (const auto& [name, value] : *own) {
      const std::string key = lower_case(name);
      if (key.starts_with("x-amz-") || key == "authorization" || key == "host") continue;  // AI-224
      merge_headers(headers, {{name, value}});
    }
  }
  if (!proof.bearer.empty()) {
    merge_headers(headers, {{"authorization", "Bearer " + proof.bearer}});
  } else {
    const auto [host, path] = host_and_path(call.request.url);
    const std::string time = aws_time(now_milliseconds());
    const std::string hash = hex(sha256(call.request.body));
    merge_headers(headers, {{"x-amz-date", time}, {"x-amz-content-sha256", hash}});
    if (!proof.keys->session_token.empty()) {
      merge_headers(headers, {{"x-amz-security-token", proof.keys->session_token}});
    }
    AwsRequest request{"POST", path, "", {{"host", host}}, hash};
    for (const auto& [name, value] : headers) {
      if (value) request.headers.emplace_back(name, *value);
    }
    merge_headers(headers,
                  {{"authorization", aws_authorization(request, *proof.keys, endpoint.region, kService, time)}});
  }
  merge_headers(headers, {{"user-agent", user_agent()}});
  call.request.headers = present_headers(std::move(headers));
  call.error_text = [](int status, std::string_view, const http::HeaderList& reply, std::string_view text) {
    const auto parsed = json::parse(text);
    const json::object* o = parsed ? parsed->if_object() : nullptr;
    const std::string message = o != nullptr ? json::string_or(*o, "message", json::string_or(*o, "Message")) : "";
    return bedrock_error_text(bedrock_error_code(header_value(reply, "x-amzn-errortype")), message, status, text);
  };
  call.describe_error = [](AssistantMessage& message, int status, std::string_view, const http::HeaderList& reply,
                           std::string_view) {
    json::object details{{"status", status}};
    if (const std::string code = bedrock_error_code(header_value(reply, "x-amzn-errortype")); !code.empty()) {
      details.emplace("errorCode", code);
    }
    if (const std::string id = header_value(reply, "x-amzn-requestid"); !id.empty()) details.emplace("requestId", id);
    message.diagnostics.emplace().emplace_back(json::object{
        {"type", "bedrock_response_failure"}, {"timestamp", now_milliseconds()}, {"details", std::move(details)}});
  };
  call.on_headers = [](StreamDecoder& decoder, const http::HeaderList& reply) {
    static_cast<BedrockDecoder&>(decoder).set_request_id(header_value(reply, "x-amzn-requestid"));
  };
  call.decoder = std::make_unique<BedrockDecoder>(model);
  return call;
}

}  // namespace

BedrockEndpoint bedrock_endpoint(const Model& model, const Environment& environment) {
  const auto standard = standard_region(model.base_url);
  const bool own_host = !standard && !utf8::is_blank(model.base_url);
  BedrockEndpoint endpoint;
  std::optional<std::string> region = arn_region(model.id);
  if (!region) region = environment("AWS_REGION");
  if (!region) region = environment("AWS_DEFAULT_REGION");
  const auto profile = environment("AWS_PROFILE");
  const bool use_standard = standard && !region && !profile;
  if (!region && profile) region = read_aws_profile(*profile, environment).region;
  if (region && region->empty()) region.reset();
  if (!region && use_standard) region = standard;
  endpoint.region = region.value_or(std::string(kDefaultRegion));
  if (own_host || use_standard) {
    endpoint.base_url = model.base_url;
  } else {
    const std::string_view suffix = endpoint.region.starts_with("cn-") ? ".cn" : "";
    endpoint.base_url = fmt::format("https://bedrock-runtime.{}.amazonaws.com{}", endpoint.region, suffix);
  }
  return endpoint;
}

std::string bedrock_error_code(std::string_view name) {
  name = name.substr(0, name.find(':'));
  if (const std::size_t hash = name.find('#'); hash != std::string_view::npos) name.remove_prefix(hash + 1);
  std::string code(name);
  if (!code.empty() && code[0] >= 'a' && code[0] <= 'z') code[0] = static_cast<char>(code[0] - 'a' + 'A');
  return code;
}

std::string bedrock_error_text(std::string_view code, std::string_view message, int status, std::string_view body) {
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"InternalServerException", "Internal server error"},
      {"ModelStreamErrorException", "Model stream error"},
      {"ValidationException", "Validation error"},
      {"ThrottlingException", "Throttling error"},
      {"ServiceUnavailableException", "Service unavailable"},
  };
  std::string prefix(code);
  for (const auto& [name, words] : kPrefixes) {
    if (code == name) prefix = words;
  }
  std::string text(message);
  if (text.empty() && !utf8::is_blank(body)) {
    constexpr std::size_t kLongest = 4000;
    const std::string_view shown = utf8::prefix_utf16(utf8::trim(body), kLongest);
    text = status > 0 ? fmt::format("{}: {}", status, shown) : std::string(shown);
  }
  if (text.empty()) text = status > 0 ? fmt::format("status {}", status) : "no message";
  if (text.find("data retention") != std::string::npos || text.find("data_retention") != std::string::npos) {
    text += " (the account's data retention mode does not allow this model; it is set in the Bedrock console)";
  }
  return prefix.empty() ? text : fmt::format("{}: {}", prefix, text);
}

asio::awaitable<AssistantMessage> stream_bedrock(http::Client& client, Model model, Context context,
                                                 StreamOptions options, EventSink sink, std::stop_token stop) {
  Environment environment = layered(options.env, process_environment());
  const BedrockEndpoint endpoint = bedrock_endpoint(model, environment);
  Proof proof;
  const bool skip_auth = environment("AWS_BEDROCK_SKIP_AUTH") == "1";
  if (skip_auth) {
    proof.keys = AwsKeys{"dummy-access-key", "dummy-secret-key", {}};
  } else if (options.api_key && !utf8::is_blank(*options.api_key)) {
    proof.bearer = *options.api_key;
  } else if (auto token = environment("AWS_BEARER_TOKEN_BEDROCK")) {
    proof.bearer = *std::move(token);
  } else {
    auto keys = co_await aws_keys(client, environment, endpoint.region, stop);
    if (!keys) {
      AssistantMessage failed = co_await fail_call(std::move(model), std::move(keys.error()), std::move(sink));
      co_return failed;
    }
    proof.keys = *std::move(keys);
  }
  auto call = prepare(model, context, options, endpoint, proof);
  if (!call) {
    AssistantMessage failed = co_await fail_call(std::move(model), std::move(call.error()), std::move(sink));
    co_return failed;
  }
  AssistantMessage message = co_await run_provider_call(client, *std::move(call), std::move(model), std::move(options),
                                                        std::move(sink), std::move(stop));
  co_return message;
}

}  // namespace tau::ai
