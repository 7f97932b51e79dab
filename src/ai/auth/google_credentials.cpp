#include "ai/auth/google_credentials.h"

#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/percent_encoding.h"

namespace tau::ai {

namespace {

constexpr std::string_view kTokenUri = "https://oauth2.googleapis.com/token";
constexpr std::string_view kScope = "https://www.googleapis.com/auth/cloud-platform";
constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kMargin = 60;
constexpr std::chrono::milliseconds kTokenTimeout{15000};
constexpr std::size_t kReplyLimit = std::size_t{64} << 10;

struct KeptToken {
  std::string token;
  std::int64_t expires = 0;  // Unix seconds
};

/// Tokens by file of credentials.
class KeptTokens {
 public:
  std::optional<std::string> find(const std::string& file, std::int64_t now) {
    const std::lock_guard lock(mutex_);
    const auto kept = tokens_.find(file);
    if (kept == tokens_.end() || kept->second.expires - kMargin <= now) return std::nullopt;
    return kept->second.token;
  }
  void keep(const std::string& file, KeptToken token) {
    const std::lock_guard lock(mutex_);
    tokens_[file] = std::move(token);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, KeptToken> tokens_;
};

KeptTokens& kept_tokens() {
  static KeptTokens tokens;
  return tokens;
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

std::optional<std::string> sign_rs256(const std::string& pem, std::string_view message) {
  const std::unique_ptr<BIO, FreeBio> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::unique_ptr<EVP_PKEY, FreeKey> key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr)
                                                   : nullptr);
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  if (!key || !context || EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1) {
    return std::nullopt;
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  std::size_t size = 0;
  if (EVP_DigestSign(context.get(), nullptr, &size, bytes, message.size()) != 1) return std::nullopt;
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes, message.size()) !=
      1) {
    return std::nullopt;
  }
  signature.resize(size);
  return signature;
}

}  // namespace

std::string google_credentials_file(const Environment& environment) {
  std::string file =
      environment("GOOGLE_APPLICATION_CREDENTIALS").value_or("~/.config/gcloud/application_default_credentials.json");
  if (file.starts_with("~/")) file.replace(0, 1, environment("HOME").value_or(""));
  return file;
}

std::expected<GoogleCredentials, std::string> read_google_credentials(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::unexpected(fmt::format("cannot read the Google credentials {}", file));
  std::ostringstream text;
  text << in.rdbuf();
  const auto parsed = json::parse(text.str());
  if (!parsed || !parsed->is_object()) {
    return std::unexpected(
        fmt::format("the Google credentials {} are not JSON{}", file, parsed ? "" : ": " + parsed.error().describe()));
  }
  const json::object& o = parsed->get_object();
  GoogleCredentials credentials;
  credentials.token_uri = json::string_or(o, "token_uri", kTokenUri);
  const std::string type = json::string_or(o, "type");
  const auto need = [&](std::string_view key, std::string& to) {
    to = json::string_or(o, key);
    return !to.empty();
  };
  const auto lacks = [&](std::string_view what) {
    return std::unexpected(fmt::format("the Google credentials {} lack {}", file, what));
  };
  if (type == "service_account") {
    if (!need("client_email", credentials.client_email)) return lacks("client_email");
    if (!need("private_key", credentials.private_key)) return lacks("private_key");
    need("private_key_id", credentials.private_key_id);
    return credentials;
  }
  if (type == "authorized_user") {
    credentials.kind = GoogleCredentials::Kind::kAuthorizedUser;
    if (!need("client_id", credentials.client_id)) return lacks("client_id");
    if (!need("client_secret", credentials.client_secret)) return lacks("client_secret");
    if (!need("refresh_token", credentials.refresh_token)) return lacks("refresh_token");
    return credentials;
  }
  return std::unexpected(fmt::format(
      "the Google credentials {} are of type \"{}\"; service_account and authorized_user can be used", file, type));
}

std::expected<std::string, std::string> google_assertion(const GoogleCredentials& credentials, std::int64_t now) {
  json::object header{{"alg", "RS256"}, {"typ", "JWT"}};
  if (!credentials.private_key_id.empty()) header.emplace("kid", credentials.private_key_id);
  const json::object claims{{"iss", credentials.client_email},
                            {"scope", kScope},
                            {"aud", credentials.token_uri},
                            {"iat", now},
                            {"exp", now + kHour}};
  std::string text = base64url_encode(json::to_text(header)) + "." + base64url_encode(json::to_text(claims));
  const auto signature = sign_rs256(credentials.private_key, text);
  if (!signature) return std::unexpected("the private key of the Google credentials cannot be used");
  return text + "." + base64url_encode(*signature);
}

boost::asio::awaitable<std::expected<std::string, std::string>> google_access_token(http::Client& client,
                                                                                    Environment environment,
                                                                                    std::stop_token stop) {
  using Result = std::expected<std::string, std::string>;
  const std::string file = google_credentials_file(environment);
  const std::int64_t now = now_milliseconds() / 1000;
  if (auto kept = kept_tokens().find(file, now)) co_return Result(*std::move(kept));
  const auto credentials = read_google_credentials(file);
  if (!credentials) co_return Result(std::unexpect, credentials.error());

  http::Request request;
  request.url = credentials->token_uri;
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}, {"accept", "application/json"}};
  request.header_timeout = kTokenTimeout;
  request.idle_timeout = kTokenTimeout;
  if (credentials->kind == GoogleCredentials::Kind::kServiceAccount) {
    const auto assertion = google_assertion(*credentials, now);
    if (!assertion) co_return Result(std::unexpect, assertion.error());
    request.body =
        fmt::format("grant_type={}&assertion={}", percent_encode("urn:ietf:params:oauth:grant-type:jwt-bearer"),
                    percent_encode(*assertion));
  } else {
    request.body = fmt::format("grant_type=refresh_token&client_id={}&client_secret={}&refresh_token={}",
                               percent_encode(credentials->client_id), percent_encode(credentials->client_secret),
                               percent_encode(credentials->refresh_token));
  }
  const auto response = co_await client.send(std::move(request), stop);
  if (!response) co_return Result(std::unexpect, "no Google access token: " + response.error().message);
  const auto body = co_await http::Client::read_all(**response, kReplyLimit);
  if (!body) co_return Result(std::unexpect, "no Google access token: " + body.error().message);
  const auto parsed = json::parse(*body);
  const json::object* o = parsed ? parsed->if_object() : nullptr;
  const auto token = o != nullptr ? json::find_string(*o, "access_token") : std::nullopt;
  if (!token || token->empty()) {
    const std::string why = o != nullptr ? json::string_or(*o, "error_description", json::string_or(*o, "error")) : "";
    co_return Result(std::unexpect, fmt::format("no Google access token: status {}{}{}; try `gcloud auth "
                                                "application-default login`",
                                                (*response)->status, why.empty() ? "" : ", ", why));
  }
  kept_tokens().keep(file, {std::string(*token), now + static_cast<std::int64_t>(json::number_or(*o, "expires_in"))});
  co_return Result(std::string(*token));
}

}  // namespace tau::ai
