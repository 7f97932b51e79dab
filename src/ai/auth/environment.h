// Keys that lie in the environment: what a provider can use without anything being stored (AI-242, AI-250).
//
// Lookups go through a function, so that values stored with a credential can come before the process environment and
// tests need not touch it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ai/model.h"

namespace tau::ai {

/// The value of a variable; nothing when it is not set or blank.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

/// The environment of this process.
Environment process_environment();
/// `first`, then `second`.
Environment layered(std::map<std::string, std::string> first, Environment second);

/// How requests to a provider authenticate.
struct RequestAuth {
  std::optional<std::string> api_key;
  Headers headers;                         // a header without value removes one that the encoder would send
  std::optional<std::string> base_url;     // replaces the model's
  std::map<std::string, std::string> env;  // variables that belong to the credential (region, account, proxy …)
  std::string source;                      // "stored credential", "OAuth" or the variable's name: for people
};

/// What the environment has for this provider; nothing when the provider is not built in or has nothing there. A
/// provider that signs requests itself (Bedrock, Vertex) may answer without a key. Runs nothing and reads no network.
std::optional<RequestAuth> environment_auth(std::string_view provider, const Environment& environment);

/// Dresses a key that was found elsewhere as this provider wants it (Cloudflare's gateway takes a header of its own).
/// Nothing when the provider needs variables that are not set, such as an account.
std::optional<RequestAuth> key_auth(std::string_view provider, std::string key, std::string source,
                                    const Environment& environment);

/// The variables that would make the provider usable, for messages.
std::vector<std::string> wanted_variables(std::string_view provider);

/// Replaces {CLOUDFLARE_ACCOUNT_ID} and {CLOUDFLARE_GATEWAY_ID}; a variable that is not set stays as it is.
std::string fill_base_url(std::string_view base_url, const Environment& environment);

}  // namespace tau::ai
