// Checking a value against a JSON Schema: the part of the language that tool definitions use.
//
// Covered: boolean schemas, type, enum, const, the limits of numbers, strings, arrays and objects, pattern, properties,
// patternProperties, additionalProperties, propertyNames, required, items, prefixItems, contains, uniqueItems, anyOf,
// oneOf, allOf, not, if/then/else, and $ref inside the same document. Everything else counts as an annotation and is
// not enforced (format, too). A schema that cannot be understood never refuses a value: the model cannot repair it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tau::ai {

struct SchemaError {
  std::string path;     // keys and indexes from the root, joined with '.'; empty for the root itself
  std::string message;  // "must be number" (AI-232)
};

/// All errors, in the order of the schema's keywords; empty when `instance` fits. For a missing property the path is
/// that of the first missing one (AI-230).
std::vector<SchemaError> check_schema(const json::object& schema, const json::value& instance);

/// Whether `instance` fits `schema`, which is part of `document` ($ref points into that).
bool accepts(const json::object& document, const json::value& schema, const json::value& instance);

/// What "#/a/b" points at; null when there is nothing.
const json::value* resolve_reference(const json::object& document, std::string_view reference);

/// Whether `instance` is of the type that this word names; a whole double is an integer. Unknown words fit anything.
bool has_type(const json::value& instance, std::string_view type);

}  // namespace tau::ai
