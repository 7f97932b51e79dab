#include "coding/config/settings_keys.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::coding {

namespace {

using enum SettingKind;
constexpr std::monostate kUnset;
constexpr std::string_view kLevels = "off minimal low medium high xhigh max";
constexpr std::string_view kQueueModes = "one-at-a-time all";

// clang-format off
constexpr SettingKey kKeys[] = {
    {"lastChangelogVersion", kText, kUnset, {}},
    {"defaultProvider", kText, kUnset, {}},
    {"defaultModel", kText, kUnset, {}},
    {"defaultThinkingLevel", kChoice, kUnset, kLevels},
    {"modelThinkingLevels", kObject, kUnset, {}},
    {"enabledModels", kList, kUnset, {}},
    {"transport", kChoice, "auto", "sse websocket websocket-cached auto"},
    {"steeringMode", kChoice, "one-at-a-time", kQueueModes},
    {"followUpMode", kChoice, "one-at-a-time", kQueueModes},
    {"thinkingBudgets.minimal", kNumber, kUnset, {}},
    {"thinkingBudgets.low", kNumber, kUnset, {}},
    {"thinkingBudgets.medium", kNumber, kUnset, {}},
    {"thinkingBudgets.high", kNumber, kUnset, {}},
    {"compaction.enabled", kFlag, true, {}},
    {"compaction.reserveTokens", kNumber, 16384.0, {}},
    {"compaction.keepRecentTokens", kNumber, 20000.0, {}},
    {"branchSummary.reserveTokens", kNumber, 16384.0, {}},
    {"branchSummary.skipPrompt", kFlag, false, {}},
    {"retry.enabled", kFlag, true, {}},
    {"retry.maxRetries", kNumber, 3.0, {}},
    {"retry.baseDelayMs", kNumber, 2000.0, {}},
    {"retry.provider.timeoutMs", kNumber, kUnset, {}},
    {"retry.provider.maxRetries", kNumber, kUnset, {}},
    {"retry.provider.maxRetryDelayMs", kNumber, 60000.0, {}},
    {"httpProxy", kText, kUnset, {}, true},
    {"httpIdleTimeoutMs", kDuration, 300000.0, {}},
    {"websocketConnectTimeoutMs", kDuration, kUnset, {}},
    {"sessionDir", kText, kUnset, {}},
    {"sessionSync", kChoice, "never", "never record"},
    {"defaultTools", kList, kUnset, {}},
    {"shellPath", kText, kUnset, {}},
    {"shellCommandPrefix", kText, kUnset, {}},
    {"npmCommand", kList, kUnset, {}},
    {"images.autoResize", kFlag, true, {}},
    {"images.blockImages", kFlag, false, {}},
    {"defaultProjectTrust", kChoice, "ask", "ask always never", true},
    {"packages", kList, kUnset, {}},
    {"extensions", kList, kUnset, {}},
    {"skills", kList, kUnset, {}},
    {"prompts", kList, kUnset, {}},
    {"themes", kList, kUnset, {}},
    {"enableSkillCommands", kFlag, true, {}},
    {"theme", kText, kUnset, {}},
    {"tuiMode", kChoice, "regular", "regular fullscreen"},
    {"fullscreenExitOutput", kChoice, "transcript", "transcript resume-hint"},
    {"fullscreenScrollbar", kText, "auto", {}},
    {"fullscreenCopyOnSelect", kFlag, true, {}},
    {"quietStartup", kFlag, false, {}},
    {"collapseChangelog", kFlag, false, {}},
    {"hideThinkingBlock", kFlag, false, {}},
    {"showCacheMissNotices", kFlag, false, {}},
    {"externalEditor", kText, kUnset, {}},
    {"doubleEscapeAction", kChoice, "tree", "fork tree none"},
    {"treeFilterMode", kChoice, "default", "default no-tools user-only labeled-only all"},
    {"editorPaddingX", kNumber, 0.0, {}},
    {"outputPad", kNumber, 1.0, {}},
    {"autocompleteMaxVisible", kNumber, 5.0, {}},
    {"showHardwareCursor", kFlag, false, {}},
    {"terminal.showImages", kFlag, true, {}},
    {"terminal.imageWidthCells", kNumber, 60.0, {}},
    {"terminal.clearOnShrink", kFlag, false, {}},
    {"terminal.showTerminalProgress", kFlag, false, {}},
    {"terminal.hyperlinks", kSwitch, "auto", "auto"},
    {"terminal.images", kSwitch, "auto", "auto kitty iterm2"},
    {"terminal.trueColor", kSwitch, "auto", "auto"},
    {"markdown.codeBlockIndent", kText, "  ", {}},
    {"markdown.mermaid", kChoice, "streaming", "off final streaming"},
    {"warnings.anthropicExtraUsage", kFlag, true, {}},
    {"enableInstallTelemetry", kFlag, true, {}},
    {"enableAnalytics", kFlag, false, {}},
    {"trackingId", kText, kUnset, {}},
};
// clang-format on

bool is_choice(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const std::size_t blank = choices.find(' ');
    if (choices.substr(0, blank) == text) return true;
    if (blank == std::string_view::npos) break;
    choices.remove_prefix(blank + 1);
  }
  return false;
}

std::string wanted(const SettingKey& key) {
  switch (key.kind) {
    case kFlag:
      return "true or false";
    case kNumber:
      return "a number that is not negative";
    case kText:
      return "a text";
    case kChoice:
    case kSwitch: {
      std::string list(key.kind == kSwitch ? "true false " + std::string(key.choices) : std::string(key.choices));
      for (std::size_t at = 0; (at = list.find(' ', at)) != std::string::npos; at += 2)
        list.replace(at, 1, ", ");
      return "one of " + list;
    }
    case kList:
      return "a list, [ … ]";
    case kObject:
      return "an object, { … }";
    case kDuration:
      return "a number of milliseconds or \"disabled\"";
  }
  std::unreachable();
}

std::string fallback_text(const SettingKey& key) {
  if (const bool* flag = std::get_if<bool>(&key.fallback)) return *flag ? "true" : "false";
  if (const double* number = std::get_if<double>(&key.fallback)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string_view>(&key.fallback)) return fmt::format("\"{}\"", *text);
  return {};
}

}  // namespace

std::span<const SettingKey> setting_keys() {
  return kKeys;
}

const SettingKey* find_setting(std::string_view path) {
  for (const SettingKey& key : kKeys) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

const json::value* find_path(const json::object& settings, std::string_view path) {
  const json::object* at = &settings;
  for (;;) {
    const std::size_t dot = path.find('.');
    const json::value* v = json::find(*at, path.substr(0, dot));
    if (v == nullptr || dot == std::string_view::npos) return v;
    at = v->if_object();
    if (at == nullptr) return nullptr;
    path.remove_prefix(dot + 1);
  }
}

bool fits(const SettingKey& key, const json::value& v) {
  switch (key.kind) {
    case kFlag:
      return v.is_bool();
    case kNumber:
      return json::as_number(v).value_or(-1) >= 0;
    case kText:
      return v.is_string();
    case kSwitch:
      if (v.is_bool()) return true;
      [[fallthrough]];
    case kChoice:
      return v.is_string() && is_choice(key.choices, json::view(v.get_string()));
    case kList:
      return v.is_array();
    case kObject:
      return v.is_object();
    case kDuration: {
      if (!v.is_string()) return json::as_number(v).value_or(-1) >= 0;
      const std::string text(utf8::trim(json::view(v.get_string())));
      if (text == "disabled") return true;
      return !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
    }
  }
  std::unreachable();
}

std::vector<std::string> misfits(const json::object& settings) {
  std::vector<std::string> out;
  for (const SettingKey& key : kKeys) {
    const json::value* v = find_path(settings, key.path);
    if (v == nullptr || v->is_null() || fits(key, *v)) continue;
    const std::string fallback = fallback_text(key);
    out.push_back(fmt::format("\"{}\" must be {}; {}", key.path, wanted(key),
                              fallback.empty() ? "it is ignored" : fallback + " is used instead"));
  }
  return out;
}

}  // namespace tau::coding
