// From the api of a model to the code that speaks it.
//
// The table in api_registry.cpp is the list of wire APIs that this program knows; a new one is a row in it.
#pragma once

#include <string_view>
#include <vector>

#include "ai/http/http_client.h"
#include "ai/stream.h"

namespace tau::ai {

/// Makes one call in one wire API. Like a StreamFunction: it does not throw, failures are error events.
using ApiFunction = asio::awaitable<AssistantMessage> (*)(http::Client& client, Model model, Context context,
                                                          StreamOptions options, EventSink sink, std::stop_token stop);

/// Null for an api that is not in the table.
ApiFunction find_api(std::string_view api);
/// The names of all of them.
std::vector<std::string_view> known_apis();

/// Dispatches on model.api. An api that nobody implements ends in one error event that names it (AI-240), a call
/// without a key in one that names the provider (AI-18). `client` must outlive the function and its calls.
StreamFunction make_stream_function(http::Client& client);

}  // namespace tau::ai
