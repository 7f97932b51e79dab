// Tool schemas in the strict form that some APIs enforce while the model writes (AI-80 to AI-84).
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

/// A tool whose only argument is free text in a grammar (AI-84).
struct Grammar {
  std::string syntax;      // "lark" or "regex"
  std::string definition;  //
  std::string property;    // the argument that carries the text
};

/// Nothing when the tool does not ask for a grammar or the API has none; an error when it asks for one wrongly.
std::expected<std::optional<Grammar>, std::string> grammar_of(const Tool& tool, bool api_supports_grammars);

}  // namespace tau::ai
