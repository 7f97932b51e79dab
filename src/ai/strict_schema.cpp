#include "ai/strict_schema.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tau::ai {

namespace {

constexpr int kMaxDepth = 200;

constexpr std::string_view kUnsupported[] = {"$ref",
                                             "$defs",
                                             "definitions",
                                             "allOf",
                                             "oneOf",
                                             "not",
                                             "if",
                                             "then",
                                             "else",
                                             "patternProperties",
                                             "contains",
                                             "prefixItems",
                                             "dependencies",
                                             "dependentSchemas",
                                             "unevaluatedProperties",
                                             "propertyNames"};

using Result = std::expected<json::value, std::string>;

Result refuse(std::string reason) {
  return std::unexpected(std::move(reason));
}

bool names_type(const json::object& schema, std::string_view type) {
  const json::value* declared = json::find(schema, "type");
  if (declared == nullptr) return false;
  if (declared->is_string()) return json::view(declared->get_string()) == type;
  const json::array* types = declared->if_array();
  return types != nullptr && std::any_of(types->begin(), types->end(), [&](const json::value& t) {
           return t.is_string() && json::view(t.get_string()) == type;
         });
}

bool is_container(const json::object& schema) {
  return names_type(schema, "object") || names_type(schema, "array") || schema.contains("properties") ||
         schema.contains("items");
}

bool allows_null(const json::value& value) {
  const json::object* schema = value.if_object();
  if (schema == nullptr) return false;
  if (names_type(*schema, "null")) return true;
  if (const json::value* only = json::find(*schema, "const")) return only->is_null();
  const auto is_null = [](const json::value& v) { return v.is_null(); };
  if (const json::array* allowed = json::find_array(*schema, "enum")) {
    return std::any_of(allowed->begin(), allowed->end(), is_null);
  }
  const json::array* any = json::find_array(*schema, "anyOf");
  return any != nullptr && std::any_of(any->begin(), any->end(), allows_null);
}

Result strict(const json::value& value, int depth);

/// The names in "required", or why they cannot be had.
std::expected<std::vector<std::string_view>, std::string> required_names(const json::object& schema,
                                                                         const json::object& properties) {
  std::vector<std::string_view> names;
  const json::value* required = json::find(schema, "required");
  if (required == nullptr) return names;
  const json::array* list = required->if_array();
  if (list == nullptr) return std::unexpected("required must be a list of strings");
  for (const json::value& name : *list) {
    if (!name.is_string()) return std::unexpected("required must be a list of strings");
    names.push_back(json::view(name.get_string()));
    if (!properties.contains(names.back())) return std::unexpected("required contains an unknown property");
  }
  return names;
}

Result strict_object(json::object schema, int depth) {
  if (const json::value* additional = json::find(schema, "additionalProperties")) {
    if (!additional->is_bool() || additional->get_bool()) {
      return refuse("schema-valued or true additionalProperties is unsupported");
    }
  }
  json::object properties;
  if (const json::value* declared = json::find(schema, "properties")) {
    if (!declared->is_object()) return refuse("properties must be an object");
    properties = declared->get_object();
  }
  const auto required = required_names(schema, properties);
  if (!required) return refuse(required.error());
  json::array all_names;
  for (auto& [key, property] : properties) {
    const std::string_view name(key.data(), key.size());
    Result converted = strict(property, depth + 1);
    if (!converted) return converted;
    const bool optional = std::find(required->begin(), required->end(), name) == required->end();
    if (optional && !allows_null(*converted)) {
      property = json::object{{"anyOf", json::array{*std::move(converted), json::object{{"type", "null"}}}}};
    } else {
      property = *std::move(converted);
    }
    all_names.emplace_back(name);
  }
  if (schema.contains("properties")) schema["properties"] = std::move(properties);
  schema["required"] = std::move(all_names);
  schema["additionalProperties"] = false;
  return json::value(std::move(schema));
}

Result strict(const json::value& value, int depth) {
  if (value.is_bool()) return refuse("boolean schemas are unsupported");
  if (!value.is_object()) return refuse("schemas must be objects");
  if (depth > kMaxDepth) return refuse("the schema is nested too deeply");
  json::object schema = value.get_object();
  for (const std::string_view key : kUnsupported) {
    if (schema.contains(key)) return refuse(fmt::format("{} schemas are unsupported", key));
  }
  if (const json::value* any = json::find(schema, "anyOf")) {
    if (!any->is_array() || any->get_array().empty()) return refuse("anyOf must have at least one schema");
    json::array variants;
    for (const json::value& variant : any->get_array()) {
      if (const json::object* o = variant.if_object(); o != nullptr && is_container(*o)) {
        return refuse("object and array unions are unsupported");
      }
      Result converted = strict(variant, depth + 1);
      if (!converted) return converted;
      variants.push_back(*std::move(converted));
    }
    schema["anyOf"] = std::move(variants);
  }
  if (const json::value* items = json::find(schema, "items")) {
    if (items->is_array()) return refuse("tuple schemas are unsupported");
    Result converted = strict(*items, depth + 1);
    if (!converted) return converted;
    schema["items"] = *std::move(converted);
  }
  const bool is_object = json::find_string(schema, "type") == "object";
  if (is_object) return strict_object(std::move(schema), depth);
  if (schema.contains("properties")) return refuse("properties without type object are unsupported");
  if (names_type(schema, "object")) return refuse("object and array unions are unsupported");
  return json::value(std::move(schema));
}

std::string_view sampling_type(const Tool& tool) {
  if (!tool.constrained_sampling) return {};
  const json::object* sampling = tool.constrained_sampling->if_object();
  return sampling != nullptr ? json::find_string(*sampling, "type").value_or("") : std::string_view{};
}

}  // namespace

std::expected<json::object, std::string> to_strict_schema(const json::object& schema) {
  if (json::find_string(schema, "type") != "object") return std::unexpected("root schema must have type object");
  Result converted = strict(schema, 0);
  if (!converted) return std::unexpected(std::move(converted.error()));
  return std::move(converted->get_object());
}

std::expected<std::optional<json::object>, std::string> strict_parameters(const Tool& tool, bool api_supports_strict) {
  if (sampling_type(tool) != "json_schema") return std::nullopt;
  auto converted = api_supports_strict ? to_strict_schema(tool.parameters)
                                       : std::unexpected(std::string("strict tools are unsupported"));
  if (converted) return *std::move(converted);
  if (json::string_or(tool.constrained_sampling->get_object(), "strict") != "require") return std::nullopt;
  return std::unexpected(
      fmt::format("Tool \"{}\" requires JSON-schema constrained sampling, but {}.", tool.name, converted.error()));
}

}  // namespace tau::ai
