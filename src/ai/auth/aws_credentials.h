// Where keys for Amazon come from (AI-224): the environment, the files of the AWS command line, a web identity, or the
// container that tau runs in.
#pragma once

#include <expected>
#include <optional>
#include <stop_token>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "ai/auth/aws_signature.h"
#include "ai/auth/environment.h"
#include "ai/http/http_client.h"

namespace tau::ai {

/// What ~/.aws/credentials and ~/.aws/config say of one profile.
struct AwsProfile {
  std::optional<AwsKeys> keys;
  std::string region;
  std::string credential_process;
};

/// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name other files. A file that is missing has nothing to say.
AwsProfile read_aws_profile(const std::string& name, const Environment& environment);

/// Keys for one request: AWS_PROFILE's, else AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else the profile "default",
/// else a web identity, else the container's. The error says where was looked.
boost::asio::awaitable<std::expected<AwsKeys, std::string>> aws_keys(http::Client& client, Environment environment,
                                                                     std::string region, std::stop_token stop);

}  // namespace tau::ai
