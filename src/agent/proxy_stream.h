// A stream function that sends its calls through a server (PX-3 to PX-8): for programs that must not hold provider
// keys.
//
// The server has the keys and calls the provider. What comes back are stream events without the partial message, which
// would cost a copy of the whole reply with every delta; the message is built again here.
#pragma once

#include <string>

#include "ai/http/http_client.h"
#include "ai/stream.h"

namespace tau::agent {

struct ProxyServer {
  std::string url;         // requests go to <url>/api/stream
  std::string auth_token;  // sent as a bearer token
};

/// The body of a request: model, context and the options that are a server's business. Keys, callbacks and timeouts
/// stay here (PX-3).
json::object proxy_request_body(const ai::Model& model, const ai::Context& context, const ai::StreamOptions& options);

/// `client` must outlive the function and every call of it.
ai::StreamFunction make_proxy_stream(ai::http::Client& client, ProxyServer server);

}  // namespace tau::agent
