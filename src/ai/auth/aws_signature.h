// Amazon's request signature, version 4 (AI-224): a request is signed with a key that is derived from the secret, the
// day, the region and the service, so that the secret never travels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tau::ai {

/// Secret.
struct AwsKeys {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // empty: none
};

struct AwsRequest {
  std::string method;
  std::string path;                                          // as sent
  std::string query;                                         // as sent, in the order of its names; empty: none
  std::vector<std::pair<std::string, std::string>> headers;  // those to sign; any case, any order
  std::string payload_hash;                                  // hex of SHA-256 of the body
};

/// The value of the authorization header. `time`: "20260101T000000Z", as in the header x-amz-date.
std::string aws_authorization(const AwsRequest& request, const AwsKeys& keys, std::string_view region,
                              std::string_view service, std::string_view time);

/// "20260101T000000Z".
std::string aws_time(std::int64_t unix_milliseconds);

}  // namespace tau::ai
