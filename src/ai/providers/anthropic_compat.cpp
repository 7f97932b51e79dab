#include "ai/providers/anthropic_compat.h"

#include <algorithm>
#include <charconv>

#include "ai/providers/anthropic_messages.h"

namespace tau::ai {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// A version that tool references need: claude-<family>-<major>[-<minor>], 4.5 at least (AI-110).
bool version_has_tool_references(std::string_view id) {
  constexpr std::string_view kFamilies[] = {"claude-opus-", "claude-sonnet-", "claude-fable-"};
  for (const std::string_view family : kFamilies) {
    const std::size_t at = id.find(family);
    if (at == std::string_view::npos) continue;
    std::string_view rest = id.substr(at + family.size());
    const auto read = [&rest](int& number) {
      const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      const auto length = static_cast<std::size_t>(end - rest.data());
      if (failure != std::errc() || length == 0) return std::size_t{0};
      rest.remove_prefix(length);
      return length;
    };
    int major = 0;
    if (read(major) == 0) return false;
    int minor = 0;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      if (read(minor) >= 8) minor = 0;  // a date
    }
    return major > 4 || (major == 4 && minor >= 5);
  }
  return false;
}

}  // namespace

AnthropicCompat::AnthropicCompat(const Model& model) {
  const json::object& c = model.compat;
  eager_tool_input = json::bool_or(c, "supportsEagerToolInputStreaming", true);
  long_cache_retention = json::bool_or(c, "supportsLongCacheRetention", true);
  session_affinity = json::bool_or(c, "sendSessionAffinityHeaders");
  cache_control_on_tools = json::bool_or(c, "supportsCacheControlOnTools", true);
  temperature = json::bool_or(c, "supportsTemperature", true);
  adaptive_thinking = json::bool_or(c, "forceAdaptiveThinking");
  empty_signature = json::bool_or(c, "allowEmptySignature");
  strict_tools = json::bool_or(c, "supportsStrictTools");
  mid_conversation_effort = json::bool_or(c, "supportsMidConvoEffort");
  const bool by_version = model.provider == "anthropic" && model.id.find("haiku") == std::string::npos &&
                          version_has_tool_references(model.id);
  tool_references = json::bool_or(c, "supportsToolReferences", by_version);
  if (const json::array* models = json::find_array(c, "allowedFallbackModels")) {
    for (const json::value& entry : *models) {
      const json::value* id = json::find(entry, "model");
      if (id != nullptr && id->is_string()) fallback_models.emplace_back(json::view(id->get_string()));
    }
  }
}

bool anthropic_thinks(const Model& model, const StreamOptions& options) {
  return model.reasoning && options.reasoning && *options.reasoning != ThinkingLevel::kOff;
}

std::string anthropic_effort_word(const Model& model, ThinkingLevel level) {
  const auto mapped = model.thinking_level_map.find(level);
  if (mapped != model.thinking_level_map.end() && mapped->second) return *mapped->second;
  if (level <= ThinkingLevel::kLow) return "low";
  return level == ThinkingLevel::kMedium ? "medium" : "high";
}

bool uses_anthropic_oauth(const Model& model, const StreamOptions& options) {
  return model.provider != "github-copilot" && options.api_key &&
         options.api_key->find("sk-ant-oat") != std::string::npos;
}

std::optional<std::string> anthropic_effort(const Model& model, const StreamOptions& options) {
  if (!AnthropicCompat(model).mid_conversation_effort) return std::nullopt;
  return anthropic_thinks(model, options) ? anthropic_effort_word(model, *options.reasoning) : "high";
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace tau::ai
