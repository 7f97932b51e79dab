// Tool schemas in the strict form that some APIs enforce while the model writes (AI-80 to AI-83).
//
// In strict form every property is required and nothing else is allowed; an optional property is one that may be null.
// drop_nulls in tool_arguments.cpp is the way back.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "ai/context.h"

namespace tau::ai {

/// The strict form of a schema of an object, or why there is none ("oneOf schemas are unsupported").
std::expected<json::object, std::string> to_strict_schema(const json::object& schema);

/// The strict parameters to send for a tool that asks for json_schema sampling; nothing when it is to be sent as a
/// normal tool; an error when the tool requires what cannot be had, and the request must fail (AI-80).
std::expected<std::optional<json::object>, std::string> strict_parameters(const Tool& tool, bool api_supports_strict);

}  // namespace tau::ai
