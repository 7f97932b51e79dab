// The bytes that a conversation would send, without sending them.
#pragma once

#include <expected>
#include <string>

#include "app/session_command/session_command.h"
#include "base/error.h"
#include "coding/session/session_context.h"

namespace tau::app {

/// The body of the request to the API `--wire`, for the model `--model` or the session's own, with this user's system
/// prompt and tools. The code that makes real requests makes it, against a client that keeps the body and answers
/// nothing. A model of another API is taken as if it spoke this one. No key is read.
std::expected<std::string, Error> request_body(const SessionCommand& command, const coding::Session& session,
                                               const coding::SessionContext& context);

}  // namespace tau::app
