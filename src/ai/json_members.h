// Helpers of the codecs in this layer and above: write optional members, and collect the members nobody read.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace tau::ai {

/// Optional members are left out when absent, never written as null (AI-1).
template <class T>
void put(json::object& o, std::string_view key, const std::optional<T>& v) {
  if (v) o.emplace(key, *v);
}

std::optional<std::string> optional_string(const json::object& o, std::string_view key);

/// The members of `o` whose keys are not in `known`, in their order.
json::object unknown_members(const json::object& o, std::initializer_list<std::string_view> known);
void put_unknown(json::object& o, const json::object& extra);

}  // namespace tau::ai
