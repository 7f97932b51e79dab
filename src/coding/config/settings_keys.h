// The table of settings (CA-156): what may stand in settings.json, and what counts when it does not.
//
// Getters, warnings about values that cannot be used, and the table in docs/configuration.md all follow it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"

namespace tau::coding {

enum class SettingKind { kFlag, kNumber, kText, kChoice, kSwitch, kList, kObject, kDuration };

struct SettingKey {
  std::string_view path;  // "retry.provider.timeoutMs"
  SettingKind kind;
  std::variant<std::monostate, bool, double, std::string_view> fallback;  // nothing = unset
  std::string_view choices;  // for kChoice and kSwitch (which is also a flag), separated by blanks
  bool global_only = false;  // ignored in a project's file: it could harm (FF-105)
};

std::span<const SettingKey> setting_keys();
const SettingKey* find_setting(std::string_view path);

/// The member that a dotted path leads to; null when there is none.
const json::value* find_path(const json::object& settings, std::string_view path);

/// Whether a value can be used for a key. Null never can: it means "unset".
bool fits(const SettingKey& key, const json::value& v);

/// One line for each value that cannot be used: `"theme" must be a text; …`.
std::vector<std::string> misfits(const json::object& settings);

}  // namespace tau::coding
