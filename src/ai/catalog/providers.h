// The providers that tau knows by name, and which of their models to take when nobody has chosen one.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace tau::ai {

struct ProviderInfo {
  std::string_view id;
  std::string_view name;  // for people
  /// Variables of the environment that may hold the key; the first that is not blank counts (AI-242).
  std::array<std::string_view, 3> key_variables;
};

/// In the order of registration, which is the order of listings and of "the first provider that has it" (AI-255).
std::span<const ProviderInfo> built_in_providers();
/// Null for a provider that is not built in.
const ProviderInfo* find_provider(std::string_view id);

struct DefaultModel {
  std::string_view provider;
  std::string_view model;
};

/// In the order in which a start without any choice looks for a usable provider (CA-341).
std::span<const DefaultModel> default_models();
/// Empty when there is none.
std::string_view default_model(std::string_view provider);

}  // namespace tau::ai
