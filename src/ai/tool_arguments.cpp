#include "ai/tool_arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "ai/json_schema.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr int kMaxDepth = 400;  // schemas may refer to themselves

bool is_required(const json::object& schema, std::string_view name) {
  const json::array* required = json::find_array(schema, "required");
  return required != nullptr && std::any_of(required->begin(), required->end(), [&](const json::value& v) {
           return v.is_string() && json::view(v.get_string()) == name;
         });
}

/// The schema that `schema` refers to, or itself.
const json::value& dereferenced(const json::object& document, const json::value& schema) {
  const json::value* at = &schema;
  for (int hops = 0; hops < kMaxDepth; ++hops) {
    const json::object* o = at->if_object();
    const auto reference = o != nullptr ? json::find_string(*o, "$ref") : std::nullopt;
    const json::value* target = reference ? resolve_reference(document, *reference) : nullptr;
    if (target == nullptr) break;
    at = target;
  }
  return *at;
}

/// Removes nulls that stand for an optional property left out.
void drop_nulls(const json::object& document, const json::value& schema_or_reference, json::value& value, int depth) {
  const json::object* schema = dereferenced(document, schema_or_reference).if_object();
  if (schema == nullptr || depth >= kMaxDepth) return;
  if (json::array* items = value.if_array()) {
    if (const json::value* item_schema = json::find(*schema, "items"); item_schema && item_schema->is_object()) {
      for (json::value& item : *items)
        drop_nulls(document, *item_schema, item, depth + 1);
    }
    return;
  }
  json::object* members = value.if_object();
  const json::object* properties = json::find_object(*schema, "properties");
  if (members == nullptr || properties == nullptr) return;
  json::object kept;  // erasing would change the order
  kept.reserve(members->size());
  for (auto& [key, member] : *members) {
    const std::string_view name(key.data(), key.size());
    if (const json::value* property = properties->if_contains(name)) {
      if (member.is_null() && !is_required(*schema, name) && !accepts(document, *property, member)) continue;
      drop_nulls(document, *property, member, depth + 1);
    }
    kept.emplace(name, std::move(member));
  }
  *members = std::move(kept);
}

/// A number as JavaScript's Number() reads it, but not the empty text.
std::optional<double> number_in(std::string_view text) {
  text = utf8::trim(text);
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) {
    std::uint64_t number = 0;
    const auto [end, ec] = std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return static_cast<double>(number);
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  double number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || ec != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<json::value> to_number(const json::value& value, bool whole) {
  std::optional<double> number;
  if (value.is_string()) number = number_in(json::view(value.get_string()));
  if (value.is_bool()) number = value.get_bool() ? 1 : 0;
  if (value.is_null()) number = 0;
  if (!number || (whole && std::trunc(*number) != *number)) return std::nullopt;
  return json::number(*number);
}

std::optional<json::value> to_boolean(const json::value& value) {
  if (value.is_null()) return false;
  if (value.is_string() && value.get_string() == "true") return true;
  if (value.is_string() && value.get_string() == "false") return false;
  const auto number = json::as_number(value);
  if (number == 1.0) return true;
  if (number == 0.0) return false;
  return std::nullopt;
}

std::optional<json::value> to_string_value(const json::value& value) {
  if (value.is_null()) return json::value("");
  if (value.is_bool() || value.is_number()) return json::value(json::to_text(value));
  return std::nullopt;
}

std::optional<json::value> to_null(const json::value& value) {
  const bool empty = (value.is_string() && value.get_string().empty()) || (value.is_bool() && !value.get_bool()) ||
                     json::as_number(value) == 0.0;
  return empty ? std::optional<json::value>(nullptr) : std::nullopt;
}

/// The value as one of this type, when it is not one already and can be.
std::optional<json::value> converted(const json::value& value, std::string_view type) {
  if (has_type(value, type)) return std::nullopt;
  if (type == "number" || type == "integer") return to_number(value, type == "integer");
  if (type == "boolean") return to_boolean(value);
  if (type == "string") return to_string_value(value);
  if (type == "null") return to_null(value);
  return std::nullopt;
}

void convert_type(const json::value& type, json::value& value) {
  if (type.is_string()) {
    if (auto other = converted(value, json::view(type.get_string()))) value = *std::move(other);
    return;
  }
  const json::array* types = type.if_array();
  if (types == nullptr) return;
  for (const json::value& t : *types) {
    if (t.is_string() && has_type(value, json::view(t.get_string()))) return;
  }
  for (const json::value& t : *types) {
    if (!t.is_string()) continue;
    if (auto other = converted(value, json::view(t.get_string()))) {
      value = *std::move(other);
      return;
    }
  }
}

json::value coerce_at(const json::object& document, const json::value& schema, json::value value, int depth);

void choose_variant(const json::object& document, const json::array& variants, json::value& value, int depth) {
  for (const json::value& variant : variants) {
    if (accepts(document, variant, value)) return;
  }
  for (const json::value& variant : variants) {
    json::value candidate = coerce_at(document, variant, value, depth + 1);
    if (accepts(document, variant, candidate)) {
      value = std::move(candidate);
      return;
    }
  }
}

json::value coerce_at(const json::object& document, const json::value& schema_or_reference, json::value value,
                      int depth) {
  const json::object* schema = dereferenced(document, schema_or_reference).if_object();
  if (schema == nullptr || depth >= kMaxDepth) return value;
  if (const json::array* all = json::find_array(*schema, "allOf")) {
    for (const json::value& part : *all)
      value = coerce_at(document, part, std::move(value), depth + 1);
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    if (const json::array* variants = json::find_array(*schema, key)) choose_variant(document, *variants, value, depth);
  }
  if (const json::value* type = json::find(*schema, "type")) convert_type(*type, value);

  if (json::array* items = value.if_array()) {
    const json::value* item_schema = json::find(*schema, "items");
    for (std::size_t i = 0; item_schema != nullptr && i < items->size(); ++i) {
      const json::value* each = item_schema;
      if (const json::array* tuple = item_schema->if_array()) each = i < tuple->size() ? &(*tuple)[i] : nullptr;
      if (each != nullptr) (*items)[i] = coerce_at(document, *each, std::move((*items)[i]), depth + 1);
    }
  } else if (json::object* members = value.if_object()) {
    const json::object* properties = json::find_object(*schema, "properties");
    const json::value* additional = json::find(*schema, "additionalProperties");
    for (auto& [key, member] : *members) {
      const json::value* property = properties != nullptr ? properties->if_contains(key) : nullptr;
      if (property == nullptr && additional != nullptr && additional->is_object()) property = additional;
      if (property != nullptr) member = coerce_at(document, *property, std::move(member), depth + 1);
    }
  }
  return value;
}

}  // namespace

json::value coerce(const json::object& document, const json::value& schema, json::value value) {
  return coerce_at(document, schema, std::move(value), 0);
}

std::expected<json::object, std::string> validate_tool_arguments(const Tool& tool, const json::value& arguments) {
  const json::value schema(tool.parameters);
  json::value value = arguments;
  drop_nulls(tool.parameters, schema, value, 0);
  value = coerce(tool.parameters, schema, std::move(value));
  std::vector<SchemaError> errors = check_schema(tool.parameters, value);
  if (errors.empty() && !value.is_object()) errors.push_back({"", "must be object"});
  if (errors.empty()) return std::move(value.get_object());

  std::string text = fmt::format("Validation failed for tool \"{}\":\n", tool.name);
  for (const SchemaError& e : errors)
    text += fmt::format("  - {}: {}\n", e.path.empty() ? "root" : e.path, e.message);
  text += "\nReceived arguments:\n" + json::to_text(arguments, 2);
  return std::unexpected(std::move(text));
}

std::expected<json::object, std::string> validate_tool_call(const std::vector<Tool>& tools, const ToolCall& call) {
  const auto tool = std::find_if(tools.begin(), tools.end(), [&](const Tool& t) { return t.name == call.name; });
  if (tool == tools.end()) return std::unexpected(fmt::format("Tool \"{}\" not found", call.name));
  return validate_tool_arguments(*tool, call.arguments);
}

}  // namespace tau::ai
