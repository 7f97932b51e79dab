#include "coding/config/settings.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "coding/config/json_file.h"
#include "coding/config/paths.h"
#include "coding/config/settings_keys.h"

namespace tau::coding {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

/// Sets (or, for null, removes) the member at a dotted path. What stands in the way and is no object is replaced.
void put(json::object& object, std::string_view path, const json::value* v) {
  const std::size_t dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  if (dot == std::string_view::npos) {
    if (v == nullptr) {
      object.stable_erase(name);
    } else {
      object[name] = *v;
    }
    return;
  }
  json::value& inner = object[name];
  if (!inner.is_object()) inner = json::object{};
  put(inner.get_object(), path.substr(dot + 1), v);
}

/// A member under a new name, in its old place.
void rename(json::object& object, std::string_view name, std::string_view new_name, const json::value& v) {
  json::object renamed;
  for (auto& member : object) {
    if (member.key() == name) {
      renamed.emplace(new_name, v);
    } else {
      renamed.emplace(member.key(), std::move(member.value()));
    }
  }
  object = std::move(renamed);
}

milliseconds to_milliseconds(double number) {
  return milliseconds(static_cast<std::int64_t>(std::min(number, 9.0e15)));
}

bool environment_flag(const char* name) {
  const char* text = ::getenv(name);
  return text != nullptr && std::string_view(text) == "1";
}

}  // namespace

json::object merge_settings(json::object base, const json::object& over) {
  for (const auto& [key, v] : over) {
    json::value& into = base[key];
    if (into.is_object() && v.is_object()) {
      into = merge_settings(std::move(into.get_object()), v.get_object());
    } else {
      into = v;
    }
  }
  return base;
}

void migrate_settings(json::object& settings) {
  if (const json::value* mode = json::find(settings, "queueMode"); mode && !settings.contains("steeringMode")) {
    rename(settings, "queueMode", "steeringMode", json::value(*mode));
  }
  if (const auto flag = json::find_bool(settings, "websockets"); flag && !settings.contains("transport")) {
    rename(settings, "websockets", "transport", *flag ? "websocket" : "sse");
  }
  if (const json::object* found = json::find_object(settings, "skills")) {
    const json::object skills = *found;
    const json::value* folders = json::find(skills, "customDirectories");
    const bool has_folders = folders != nullptr && folders->is_array() && !folders->get_array().empty();
    if (has_folders) {
      settings["skills"] = *folders;
    } else {
      settings.stable_erase("skills");
    }
    if (const json::value* commands = json::find(skills, "enableSkillCommands");
        commands && !settings.contains("enableSkillCommands")) {
      settings["enableSkillCommands"] = *commands;
    }
  }
  if (const json::object* found = json::find_object(settings, "retry")) {
    if (const auto delay = json::find_number(*found, "maxDelayMs")) {
      json::object retry = *found;
      retry.stable_erase("maxDelayMs");
      json::value& provider = retry["provider"];
      if (!provider.is_object()) provider = json::object{};
      provider.get_object().emplace("maxRetryDelayMs", json::number(*delay));
      settings["retry"] = std::move(retry);
    }
  }
}

Settings Settings::load(fs::path agent_folder, const fs::path& cwd, bool project_trusted) {
  Settings settings;
  settings.agent_folder_ = std::move(agent_folder);
  settings.project_trusted_ = project_trusted;
  settings.global_.path = settings.agent_folder_ / kSettingsFile;
  settings.project_.path = project_folder(cwd) / kSettingsFile;
  settings.read(settings.global_);
  std::error_code failed;
  // In the home folder the project's folder may be the parent of the agent's, but never the same file twice.
  if (fs::equivalent(settings.global_.path, settings.project_.path, failed)) settings.project_.path.clear();
  if (project_trusted && !settings.project_.path.empty()) settings.read(settings.project_);
  settings.merge();
  return settings;
}

Settings Settings::in_memory(json::object values) {
  Settings settings;
  migrate_settings(values);
  settings.global_.values = std::move(values);
  settings.merge();
  return settings;
}

std::vector<std::string> Settings::take_warnings() {
  return std::exchange(warnings_, {});
}

void Settings::read(File& file) {
  auto object = read_json_object(file.path);
  if (!object) {
    file.broken = object.error().message;
    warnings_.push_back(fmt::format("Invalid settings file {}; {} used instead, and the file is left as it is",
                                    *file.broken, &file == &global_ ? "defaults are" : "the user's settings are"));
    return;
  }
  migrate_settings(*object);
  file.values = *std::move(object);
  for (const std::string& misfit : misfits(file.values)) {
    warnings_.push_back(fmt::format("Settings file {}: {}", file.path.string(), misfit));
  }
}

void Settings::merge() {
  effective_ = merge_settings(merge_settings(global_.values, project_.values), overrides_);
}

void Settings::override_with(const json::object& overrides) {
  overrides_ = merge_settings(std::move(overrides_), overrides);
  merge();
}

std::expected<void, Error> Settings::set(std::string_view path, const json::value& v, SettingsScope scope) {
  return change(path, &v, scope);
}

std::expected<void, Error> Settings::remove(std::string_view path, SettingsScope scope) {
  return change(path, nullptr, scope);
}

std::expected<void, Error> Settings::change(std::string_view path, const json::value* v, SettingsScope scope) {
  if (scope == SettingsScope::kProject && !project_trusted_) {  // CA-163
    return std::unexpected(error("the project is not trusted: its settings are not changed"));
  }
  File& file = scope == SettingsScope::kGlobal ? global_ : project_;
  put(file.values, path, v);
  merge();
  if (file.path.empty()) return {};
  if (file.broken) {
    return std::unexpected(
        error(fmt::format("the change lasts for this run only: {} (repair the file, then start again)", *file.broken)));
  }
  return update_json_object(file.path, {}, [&](json::object& object) -> std::expected<void, Error> {
    migrate_settings(object);
    put(object, path, v);
    return {};
  });
}

// ---- reading keys of the table ------------------------------------------------------------------------------------

const json::value* Settings::usable(std::string_view path) const {
  const SettingKey* key = find_setting(path);
  if (key == nullptr) throw std::logic_error("no such setting: " + std::string(path));
  const json::value* v = nullptr;
  if (key->global_only) {
    v = find_path(overrides_, path);
    if (v == nullptr) v = find_path(global_.values, path);
  } else {
    v = find_path(effective_, path);
  }
  return v != nullptr && fits(*key, *v) ? v : nullptr;
}

bool Settings::flag(std::string_view path) const {
  const json::value* v = usable(path);
  return v != nullptr ? v->get_bool() : std::get<bool>(find_setting(path)->fallback);
}

std::optional<double> Settings::number(std::string_view path) const {
  if (const json::value* v = usable(path)) return json::as_number(*v);
  const double* fallback = std::get_if<double>(&find_setting(path)->fallback);
  return fallback != nullptr ? std::optional(*fallback) : std::nullopt;
}

std::optional<std::string> Settings::text(std::string_view path) const {
  if (const json::value* v = usable(path)) {
    if (v->is_bool()) return v->get_bool() ? "true" : "false";  // a switch that is not left to tau
    return std::string(json::view(v->get_string()));
  }
  const auto* fallback = std::get_if<std::string_view>(&find_setting(path)->fallback);
  return fallback != nullptr ? std::optional(std::string(*fallback)) : std::nullopt;
}

std::vector<std::string> Settings::texts(std::string_view path) const {
  std::vector<std::string> out;
  if (const json::value* v = usable(path)) {
    for (const json::value& item : v->get_array()) {
      if (item.is_string()) out.emplace_back(json::view(item.get_string()));
    }
  }
  return out;
}

std::optional<double> Settings::duration(std::string_view path) const {
  const json::value* v = usable(path);
  if (v == nullptr) {
    const double* fallback = std::get_if<double>(&find_setting(path)->fallback);
    return fallback != nullptr ? std::optional(*fallback) : std::nullopt;
  }
  if (!v->is_string()) return json::as_number(*v);
  return ::strtod(v->get_string().c_str(), nullptr);  // "disabled" reads as 0, which means no limit
}

int Settings::whole(std::string_view path, int low, int high) const {
  return static_cast<int>(std::clamp(std::floor(number(path).value_or(low)), double(low), double(high)));
}

agent::QueueMode Settings::queue_mode(std::string_view path) const {
  return text(path) == "all" ? agent::QueueMode::kAll : agent::QueueMode::kOneAtATime;
}

const json::object& Settings::values(SettingsScope scope) const {
  return scope == SettingsScope::kGlobal ? global_.values : project_.values;
}

// ---- getters ------------------------------------------------------------------------------------------------------

std::optional<ai::ThinkingLevel> Settings::default_thinking_level() const {
  return ai::thinking_level_from(text("defaultThinkingLevel").value_or(""));
}

std::optional<ai::ThinkingLevel> Settings::thinking_level_of(std::string_view provider, std::string_view model) const {
  const json::value* levels = usable("modelThinkingLevels");
  if (levels == nullptr) return std::nullopt;
  return ai::thinking_level_from(json::string_or(levels->get_object(), fmt::format("{}/{}", provider, model)));
}

std::map<ai::ThinkingLevel, double> Settings::thinking_budgets() const {
  std::map<ai::ThinkingLevel, double> budgets;
  using enum ai::ThinkingLevel;
  for (const ai::ThinkingLevel level : {kMinimal, kLow, kMedium, kHigh}) {
    if (const auto tokens = number(fmt::format("thinkingBudgets.{}", ai::to_string(level)))) budgets[level] = *tokens;
  }
  return budgets;
}

Settings::Compaction Settings::compaction() const {
  return {flag("compaction.enabled"), *number("compaction.reserveTokens"), *number("compaction.keepRecentTokens")};
}

Settings::BranchSummary Settings::branch_summary() const {
  return {*number("branchSummary.reserveTokens"), flag("branchSummary.skipPrompt")};
}

Settings::Retry Settings::retry() const {
  return {flag("retry.enabled"), whole("retry.maxRetries", 0, 1000), to_milliseconds(*number("retry.baseDelayMs"))};
}

Settings::RequestRetry Settings::request_retry() const {
  RequestRetry retry{std::nullopt, std::nullopt, to_milliseconds(*number("retry.provider.maxRetryDelayMs"))};
  if (const auto timeout = number("retry.provider.timeoutMs")) retry.timeout = to_milliseconds(*timeout);
  if (number("retry.provider.maxRetries")) retry.max_retries = whole("retry.provider.maxRetries", 0, 1000);
  return retry;
}

milliseconds Settings::http_idle_timeout() const {
  return to_milliseconds(*duration("httpIdleTimeoutMs"));
}

std::optional<milliseconds> Settings::websocket_connect_timeout() const {
  const auto limit = duration("websocketConnectTimeoutMs");
  return limit ? std::optional(to_milliseconds(*limit)) : std::nullopt;
}

milliseconds Settings::request_timeout() const {
  if (const auto timeout = request_retry().timeout) return *timeout;
  const milliseconds idle = http_idle_timeout();
  return idle.count() > 0 ? idle : milliseconds(std::numeric_limits<std::int32_t>::max());
}

std::optional<std::vector<std::string>> Settings::default_tools() const {
  return usable("defaultTools") != nullptr ? std::optional(texts("defaultTools")) : std::nullopt;
}

std::vector<json::value> Settings::packages(SettingsScope scope) const {
  const json::array* list = json::find_array(values(scope), "packages");
  return list != nullptr ? std::vector<json::value>(list->begin(), list->end()) : std::vector<json::value>{};
}

std::vector<std::string> Settings::resource_entries(std::string_view kind, SettingsScope scope) const {
  std::vector<std::string> out;
  if (const json::array* list = json::find_array(values(scope), kind)) {
    for (const json::value& item : *list) {
      if (item.is_string()) out.emplace_back(json::view(item.get_string()));
    }
  }
  return out;
}

std::string Settings::external_editor() const {
  if (auto editor = text("externalEditor"); editor && !editor->empty()) return *editor;
  for (const char* name : {"VISUAL", "EDITOR"}) {
    const char* editor = ::getenv(name);
    if (editor != nullptr && *editor != '\0') return editor;
  }
  return "nano";
}

int Settings::editor_padding() const {
  return whole("editorPaddingX", 0, 3);
}

int Settings::output_padding() const {
  return whole("outputPad", 0, 1);
}

int Settings::autocomplete_max_visible() const {
  return whole("autocompleteMaxVisible", 3, 20);
}

bool Settings::show_hardware_cursor() const {
  return flag("showHardwareCursor") || environment_flag("PI_HARDWARE_CURSOR");
}

Settings::Terminal Settings::terminal() const {
  return {flag("terminal.showImages"),
          whole("terminal.imageWidthCells", 1, 10000),
          flag("terminal.clearOnShrink") || environment_flag("PI_CLEAR_ON_SHRINK"),
          flag("terminal.showTerminalProgress"),
          *text("terminal.hyperlinks"),
          *text("terminal.images"),
          *text("terminal.trueColor")};
}

}  // namespace tau::coding
