#include "ai/json_schema.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include <boost/regex.hpp>
#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr int kMaxDepth = 400;  // of schemas inside schemas; a $ref to itself ends here

std::string text_of_number(double number) {
  std::string out;
  json::write_number(out, number);
  return out;
}

/// "must be number" or "must be either number or null"
std::string type_message(const json::value& type) {
  if (type.is_string()) return "must be " + std::string(json::view(type.get_string()));
  std::string names;
  for (const json::value& t : type.get_array()) {
    if (!t.is_string()) continue;
    if (!names.empty()) names += " or ";
    names += json::view(t.get_string());
  }
  return "must be either " + names;
}

/// Nothing when the expression is none, or may mean something else to our engine than to JavaScript's.
std::optional<bool> matches_pattern(const std::string& pattern, std::string_view text) {
  const bool bytes_differ = std::any_of(pattern.begin(), pattern.end(), [](char c) { return (c & 0x80) != 0; }) &&
                            pattern.find('[') != std::string::npos;
  if (bytes_differ || pattern.find("\\u") != std::string::npos || pattern.find("\\p") != std::string::npos ||
      pattern.find("\\P") != std::string::npos) {
    return std::nullopt;
  }
  try {
    const boost::regex expression(pattern, boost::regex::perl);
    return boost::regex_search(text.begin(), text.end(), expression,
                               boost::match_single_line | boost::match_not_dot_newline);
  } catch (const std::runtime_error&) {
    return std::nullopt;  // not an expression, or too costly to match
  }
}

class Checker {
 public:
  /// Without `errors` only the verdict counts and checking ends at the first error.
  Checker(const json::object& document, std::vector<SchemaError>* errors) : document_(document), errors_(errors) {}

  bool check(const json::value& schema, const json::value& instance, const std::string& path) {
    if (schema.is_bool()) return schema.get_bool() || fail(path, "must not be there");
    const json::object* o = schema.if_object();
    if (o == nullptr || depth_ >= kMaxDepth) return true;
    ++depth_;
    const bool fits = check_object(*o, instance, path);
    --depth_;
    return fits;
  }

 private:
  bool fail(std::string path, std::string message) {
    if (errors_ != nullptr) errors_->push_back({std::move(path), std::move(message)});
    return false;
  }

  bool quietly_accepts(const json::value& schema, const json::value& instance) {
    Checker quiet(document_, nullptr);
    quiet.depth_ = depth_;
    return quiet.check(schema, instance, {});
  }

  /// False when checking may end: a verdict is all that is asked for and it is there.
  bool more(bool fits) const { return fits || errors_ != nullptr; }

  bool check_object(const json::object& schema, const json::value& instance, const std::string& path) {
    bool fits = true;
    if (const auto reference = json::find_string(schema, "$ref")) {
      const json::value* target = resolve_reference(document_, *reference);
      if (target != nullptr) fits = check(*target, instance, path);
    }
    if (more(fits)) fits = check_any_type(schema, instance, path) && fits;
    if (more(fits)) {
      if (const auto number = json::as_number(instance)) fits = check_number(schema, *number, path) && fits;
      if (instance.is_string()) fits = check_string(schema, json::view(instance.get_string()), path) && fits;
      if (const json::array* items = instance.if_array()) fits = check_array(schema, *items, path) && fits;
      if (const json::object* members = instance.if_object()) fits = check_members(schema, *members, path) && fits;
    }
    if (more(fits)) fits = check_combinations(schema, instance, path) && fits;
    return fits;
  }

  bool check_any_type(const json::object& schema, const json::value& instance, const std::string& path) {
    bool fits = true;
    if (const json::value* type = json::find(schema, "type")) {
      bool found = !type->is_string() && !type->is_array();
      if (type->is_string()) found = has_type(instance, json::view(type->get_string()));
      if (const json::array* types = type->if_array()) {
        found = std::any_of(types->begin(), types->end(), [&](const json::value& t) {
          return t.is_string() && has_type(instance, json::view(t.get_string()));
        });
      }
      if (!found) fits = fail(path, type_message(*type));
    }
    if (const json::value* expected = json::find(schema, "const"); expected && !json::equal(*expected, instance)) {
      fits = fail(path, "must be equal to constant");
    }
    if (const json::array* allowed = json::find_array(schema, "enum")) {
      if (std::none_of(allowed->begin(), allowed->end(),
                       [&](const json::value& v) { return json::equal(v, instance); })) {
        fits = fail(path, "must be equal to one of the allowed values");
      }
    }
    return fits;
  }

  bool check_number(const json::object& schema, double number, const std::string& path) {
    bool fits = true;
    const auto limit = [&](std::string_view key, std::string_view sign, auto holds) {
      const auto bound = json::find_number(schema, key);
      if (bound && !holds(number, *bound))
        fits = fail(path, fmt::format("must be {} {}", sign, text_of_number(*bound)));
    };
    limit("minimum", ">=", [](double n, double bound) { return n >= bound; });
    limit("maximum", "<=", [](double n, double bound) { return n <= bound; });
    limit("exclusiveMinimum", ">", [](double n, double bound) { return n > bound; });
    limit("exclusiveMaximum", "<", [](double n, double bound) { return n < bound; });
    if (const auto step = json::find_number(schema, "multipleOf"); step && *step > 0) {
      const double steps = number / *step;
      constexpr double kRounding = 1e-9;
      if (std::abs(steps - std::round(steps)) > kRounding * std::max(1.0, std::abs(steps))) {
        fits = fail(path, "must be multiple of " + text_of_number(*step));
      }
    }
    return fits;
  }

  bool check_count(const json::object& schema, std::size_t count, std::string_view least, std::string_view most,
                   std::string_view what, const std::string& path) {
    bool fits = true;
    const auto n = static_cast<double>(count);
    if (const auto bound = json::find_number(schema, least); bound && n < *bound) {
      fits = fail(path, fmt::format("must not have fewer than {} {}", text_of_number(*bound), what));
    }
    if (const auto bound = json::find_number(schema, most); bound && n > *bound) {
      fits = fail(path, fmt::format("must not have more than {} {}", text_of_number(*bound), what));
    }
    return fits;
  }

  bool check_string(const json::object& schema, std::string_view text, const std::string& path) {
    bool fits = check_count(schema, utf8::length(text), "minLength", "maxLength", "characters", path);
    if (const auto pattern = json::find_string(schema, "pattern")) {
      if (!matches_pattern(std::string(*pattern), text).value_or(true)) {
        fits = fail(path, fmt::format("must match pattern \"{}\"", *pattern));
      }
    }
    return fits;
  }

  bool check_array(const json::object& schema, const json::array& items, const std::string& path) {
    bool fits = check_count(schema, items.size(), "minItems", "maxItems", "items", path);
    if (json::bool_or(schema, "uniqueItems")) {
      for (std::size_t i = 1; i < items.size(); ++i) {
        if (std::any_of(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const json::value& earlier) { return json::equal(earlier, items[i]); })) {
          fits = fail(path, "must not have duplicate items");
          break;
        }
      }
    }
    // A list of schemas stands for the first items: "prefixItems" now, "items" in older drafts.
    const json::value* rest = json::find(schema, "items");
    const json::array* first = json::find_array(schema, "prefixItems");
    if (rest != nullptr && rest->is_array()) {
      first = &rest->get_array();
      rest = json::find(schema, "additionalItems");
    }
    for (std::size_t i = 0; i < items.size() && more(fits); ++i) {
      const json::value* item_schema = first != nullptr && i < first->size() ? &(*first)[i] : rest;
      if (item_schema != nullptr) fits = check(*item_schema, items[i], join(path, std::to_string(i))) && fits;
    }
    if (const json::value* wanted = json::find(schema, "contains")) {
      if (std::none_of(items.begin(), items.end(),
                       [&](const json::value& item) { return quietly_accepts(*wanted, item); })) {
        fits = fail(path, "must contain at least 1 valid item");
      }
    }
    return fits;
  }

  bool check_members(const json::object& schema, const json::object& members, const std::string& path) {
    bool fits = check_required(schema, members, path);
    const json::object* properties = json::find_object(schema, "properties");
    const json::object* patterns = json::find_object(schema, "patternProperties");
    const json::value* additional = json::find(schema, "additionalProperties");
    const auto is_known = [&](std::string_view name) {
      return (properties != nullptr && properties->contains(name)) ||
             (patterns != nullptr && std::any_of(patterns->begin(), patterns->end(), [&](const auto& pattern) {
                return matches_pattern(std::string(pattern.key()), name).value_or(false);
              }));
    };
    if (additional != nullptr && additional->is_bool() && !additional->get_bool() &&
        !std::all_of(members.begin(), members.end(), [&](const auto& member) { return is_known(member.key()); })) {
      fits = fail(path, "must not have additional properties");
    }
    fits = check_count(schema, members.size(), "minProperties", "maxProperties", "properties", path) && fits;
    if (const json::value* names = json::find(schema, "propertyNames")) {
      for (const auto& [key, member] : members) {
        if (!quietly_accepts(*names, json::value(key))) {
          fits = fail(path, fmt::format("property name {} is invalid", std::string_view(key)));
        }
      }
    }
    for (std::size_t i = 0; properties != nullptr && i < properties->size() && more(fits); ++i) {
      const auto& [key, property] = *(properties->begin() + i);
      if (const json::value* member = members.if_contains(key))
        fits = check(property, *member, join(path, key)) && fits;
    }
    for (const auto& [key, member] : members) {
      if (!more(fits)) return false;
      for (std::size_t i = 0; patterns != nullptr && i < patterns->size(); ++i) {
        const auto& [pattern, property] = *(patterns->begin() + i);
        if (!matches_pattern(std::string(pattern), key).value_or(false)) continue;
        fits = check(property, member, join(path, key)) && fits;
      }
      if (additional != nullptr && additional->is_object() && !is_known(key)) {
        fits = check(*additional, member, join(path, key)) && fits;
      }
    }
    return fits;
  }

  bool check_required(const json::object& schema, const json::object& members, const std::string& path) {
    const json::array* required = json::find_array(schema, "required");
    if (required == nullptr) return true;
    std::string missing;
    std::string_view first;
    for (const json::value& name : *required) {
      if (!name.is_string() || members.contains(name.get_string())) continue;
      if (missing.empty()) {
        first = json::view(name.get_string());
      } else {
        missing += ", ";
      }
      missing += json::view(name.get_string());
    }
    return missing.empty() || fail(join(path, first), "must have required properties " + missing);
  }

  bool check_combinations(const json::object& schema, const json::value& instance, const std::string& path) {
    bool fits = true;
    if (const json::array* all = json::find_array(schema, "allOf")) {
      for (const json::value& part : *all)
        fits = check(part, instance, path) && fits;
    }
    if (const json::array* any = json::find_array(schema, "anyOf")) {
      if (std::none_of(any->begin(), any->end(), [&](const json::value& v) { return quietly_accepts(v, instance); })) {
        fits = fail_variants(*any, instance, path, "must match a schema in anyOf");
      }
    }
    if (const json::array* one = json::find_array(schema, "oneOf")) {
      const auto matching =
          std::count_if(one->begin(), one->end(), [&](const json::value& v) { return quietly_accepts(v, instance); });
      constexpr std::string_view kMessage = "must match exactly one schema in oneOf";
      if (matching == 0) {
        fits = fail_variants(*one, instance, path, kMessage);
      } else if (matching > 1) {
        fits = fail(path, std::string(kMessage));
      }
    }
    if (const json::value* unwanted = json::find(schema, "not"); unwanted && quietly_accepts(*unwanted, instance)) {
      fits = fail(path, "must not be valid");
    }
    if (const json::value* condition = json::find(schema, "if")) {
      const char* branch = quietly_accepts(*condition, instance) ? "then" : "else";
      if (const json::value* then = json::find(schema, branch)) fits = check(*then, instance, path) && fits;
    }
    return fits;
  }

  /// The errors of every variant, then that none fits (AI-232).
  bool fail_variants(const json::array& variants, const json::value& instance, const std::string& path,
                     std::string_view message) {
    if (errors_ == nullptr) return false;
    for (const json::value& variant : variants)
      check(variant, instance, path);
    return fail(path, std::string(message));
  }

  static std::string join(const std::string& path, std::string_view name) {
    std::string out = path;
    if (!out.empty()) out += '.';
    out += name;
    return out;
  }

  const json::object& document_;
  std::vector<SchemaError>* errors_;
  int depth_ = 0;
};

}  // namespace

bool has_type(const json::value& instance, std::string_view type) {
  if (type == "string") return instance.is_string();
  if (type == "number") return instance.is_number();
  if (type == "integer") {
    const auto number = json::as_number(instance);
    return number && std::trunc(*number) == *number && std::isfinite(*number);
  }
  if (type == "boolean") return instance.is_bool();
  if (type == "null") return instance.is_null();
  if (type == "array") return instance.is_array();
  if (type == "object") return instance.is_object();
  return true;
}

const json::value* resolve_reference(const json::object& document, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  reference.remove_prefix(2);
  const json::object* at = &document;
  const json::value* found = nullptr;
  while (true) {
    const std::size_t slash = reference.find('/');
    std::string key(reference.substr(0, slash));
    for (const auto& [escape, character] : {std::pair{"~1", "/"}, std::pair{"~0", "~"}}) {
      for (std::size_t i = key.find(escape); i != std::string::npos; i = key.find(escape, i + 1))
        key.replace(i, 2, character);
    }
    found = at != nullptr ? at->if_contains(key) : nullptr;
    if (found == nullptr || slash == std::string_view::npos) return found;
    at = found->if_object();
    reference.remove_prefix(slash + 1);
  }
}

std::vector<SchemaError> check_schema(const json::object& schema, const json::value& instance) {
  std::vector<SchemaError> errors;
  Checker(schema, &errors).check(schema, instance, {});
  return errors;
}

bool accepts(const json::object& document, const json::value& schema, const json::value& instance) {
  return Checker(document, nullptr).check(schema, instance, {});
}

}  // namespace tau::ai
