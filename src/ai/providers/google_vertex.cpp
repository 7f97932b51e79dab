#include "ai/providers/google_vertex.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ai/auth/environment.h"
#include "ai/auth/google_credentials.h"
#include "ai/provider_call.h"
#include "ai/providers/google_generative_ai.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::string_view kKeyMarker = "gcp-vertex-credentials";

/// Whether a path has a segment such as "v1" or "v1beta1".
bool has_version(std::string_view url) {
  const std::size_t scheme = url.find("://");
  std::size_t at = url.find('/', scheme == std::string_view::npos ? 0 : scheme + 3);
  while (at != std::string_view::npos) {
    const std::string_view segment = url.substr(at + 1, url.find('/', at + 1) - at - 1);
    if (segment.size() >= 2 && segment[0] == 'v' && segment[1] >= '0' && segment[1] <= '9') return true;
    at = url.find('/', at + 1);
  }
  return false;
}

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  auto url = vertex_url(model, options);
  if (!url) return std::unexpected(std::move(url.error()));
  auto body = encode_google(model, context, options, GoogleService::kVertex);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);
  Headers headers{{"content-type", "application/json"}, {"accept", "*/*"}, {"user-agent", user_agent()}};
  if (has_vertex_key(options)) merge_headers(headers, {{"x-goog-api-key", *options.api_key}});
  merge_headers(headers, model.headers);
  for (const auto& [name, text] : options.headers) {
    if (text) merge_headers(headers, {{name, text}});
  }
  ProviderCall call;
  call.request.url = *std::move(url);
  call.request.headers = present_headers(std::move(headers));
  json::write(call.request.body, *body);
  call.error_text = [](int status, std::string_view reason, const http::HeaderList&, std::string_view text) {
    return google_error_text(status, reason, text);
  };
  call.decoder = std::make_unique<GoogleDecoder>(model, GoogleService::kVertex);
  return call;
}

}  // namespace

bool has_vertex_key(const StreamOptions& options) {
  if (!options.api_key || utf8::is_blank(*options.api_key)) return false;
  const std::string_view key = utf8::trim(*options.api_key);
  return key != kKeyMarker && !(key.starts_with('<') && key.ends_with('>'));
}

std::expected<std::string, std::string> vertex_url(const Model& model, const StreamOptions& options) {
  const bool with_key = has_vertex_key(options);
  std::string_view base = utf8::trim(model.base_url);
  if (base.find("{location}") != std::string_view::npos) base = {};
  const std::string_view version = has_version(base) ? "" : "/v1";
  const std::string call = fmt::format("publishers/google/models/{}:streamGenerateContent?alt=sse", model.id);
  if (with_key) {
    return join_url(base.empty() ? "https://aiplatform.googleapis.com" : base, fmt::format("{}/{}", version, call));
  }
  auto project = provider_env(options, "GOOGLE_CLOUD_PROJECT");
  if (!project) project = provider_env(options, "GCLOUD_PROJECT");
  if (!project) {
    return std::unexpected(
        "Vertex AI needs a project: set GOOGLE_CLOUD_PROJECT (or GCLOUD_PROJECT), or use a key in "
        "GOOGLE_CLOUD_API_KEY");
  }
  const auto location = provider_env(options, "GOOGLE_CLOUD_LOCATION");
  if (!location)
    return std::unexpected("Vertex AI needs a location: set GOOGLE_CLOUD_LOCATION, for example to us-central1");
  const std::string host = *location == "global" ? "https://aiplatform.googleapis.com"
                                                 : fmt::format("https://{}-aiplatform.googleapis.com", *location);
  return join_url(base.empty() ? std::string_view(host) : base,
                  fmt::format("{}/projects/{}/locations/{}/{}", version, *project, *location, call));
}

asio::awaitable<AssistantMessage> stream_google_vertex(http::Client& client, Model model, Context context,
                                                       StreamOptions options, EventSink sink, std::stop_token stop) {
  if (has_vertex_key(options)) {
    AssistantMessage message = co_await call_provider(client, prepare, std::move(model), std::move(context),
                                                      std::move(options), std::move(sink), std::move(stop));
    co_return message;
  }
  options.api_key.reset();
  const auto url = vertex_url(model, options);
  if (!url) {
    AssistantMessage message = co_await fail_call(std::move(model), url.error(), std::move(sink));
    co_return message;
  }
  Environment environment = layered(options.env, process_environment());
  auto token = co_await google_access_token(client, std::move(environment), stop);
  if (!token) {
    AssistantMessage message = co_await fail_call(std::move(model), std::move(token.error()), std::move(sink));
    co_return message;
  }
  options.headers.insert(options.headers.begin(), {"authorization", "Bearer " + *token});
  AssistantMessage message = co_await call_provider(client, prepare, std::move(model), std::move(context),
                                                    std::move(options), std::move(sink), std::move(stop));
  co_return message;
}

}  // namespace tau::ai
