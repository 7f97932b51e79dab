// Application default credentials of Google Cloud (AI-210): a file that a service account or a person's login left
// behind, and the access tokens that Google gives for it.
#pragma once

#include <cstdint>
#include <expected>
#include <stop_token>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "ai/auth/environment.h"
#include "ai/http/http_client.h"

namespace tau::ai {

/// What a file of credentials says. Secret.
struct GoogleCredentials {
  enum class Kind { kServiceAccount, kAuthorizedUser } kind = Kind::kServiceAccount;
  std::string token_uri;
  std::string client_email;  // of a service account
  std::string private_key;   // PEM
  std::string private_key_id;
  std::string client_id;  // of a person's login
  std::string client_secret;
  std::string refresh_token;
};

/// Errors name the file and what is wrong with it.
std::expected<GoogleCredentials, std::string> read_google_credentials(const std::string& file);

/// GOOGLE_APPLICATION_CREDENTIALS, else the place where `gcloud auth application-default login` writes.
std::string google_credentials_file(const Environment& environment);

/// The signed request of a service account for a token (RFC 7523), valid for an hour. `now`: Unix seconds.
std::expected<std::string, std::string> google_assertion(const GoogleCredentials& credentials, std::int64_t now);

/// An access token for the Cloud platform. Kept for the process until a minute before it expires.
boost::asio::awaitable<std::expected<std::string, std::string>> google_access_token(http::Client& client,
                                                                                    Environment environment,
                                                                                    std::stop_token stop);

}  // namespace tau::ai
