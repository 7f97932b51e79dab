// From what a model sent as arguments to what a tool may rely on (AI-230 to AI-232).
//
// Models write "5" for 5 and null for "left out". Both are put right, as far as the tool's schema says how; the rest
// comes back to the model as an error that says what is wrong with which argument.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "ai/context.h"
#include "ai/message.h"

namespace tau::ai {

/// The arguments after null dropping and coercion, valid for `tool.parameters`; or the text of the error result, with
/// the arguments as they were received.
std::expected<json::object, std::string> validate_tool_arguments(const Tool& tool, const json::value& arguments);

/// The same, for the tool that the call names.
std::expected<json::object, std::string> validate_tool_call(const std::vector<Tool>& tools, const ToolCall& call);

/// `value` converted where `schema` asks for another type and the conversion loses nothing (AI-231); otherwise as it
/// is. `document` is the whole schema.
json::value coerce(const json::object& document, const json::value& schema, json::value value);

}  // namespace tau::ai
