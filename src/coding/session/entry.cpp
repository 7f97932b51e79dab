#include "coding/session/entry.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace tau::coding {

namespace {

constexpr char kNoText = '\xFF';  // in no UTF-8 text, nor in our WTF-8

constexpr std::pair<std::string_view, EntryType> kTypes[] = {
    {"message", EntryType::kMessage},
    {"model_change", EntryType::kModelChange},
    {"thinking_level_change", EntryType::kThinkingLevelChange},
    {"compaction", EntryType::kCompaction},
    {"branch_summary", EntryType::kBranchSummary},
    {"custom", EntryType::kCustom},
    {"custom_message", EntryType::kCustomMessage},
    {"label", EntryType::kLabel},
    {"session_info", EntryType::kSessionInfo},
    {"session", EntryType::kHeader},
};

}  // namespace

EntryType entry_type_from(std::string_view text) {
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.first == text; });
  return found != std::end(kTypes) ? found->second : EntryType::kUnknown;
}

std::string_view to_string(EntryType type) {
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.second == type; });
  return found != std::end(kTypes) ? found->first : std::string_view{};
}

MessageRole message_role_from(std::string_view text) {
  if (text == "user") return MessageRole::kUser;
  if (text == "assistant") return MessageRole::kAssistant;
  if (text == "toolResult") return MessageRole::kToolResult;
  return MessageRole::kOther;
}

bool is_falsy(const json::value& v) {
  if (v.is_null()) return true;
  if (const bool* b = v.if_bool()) return !*b;
  if (const auto number = json::as_number(v)) return *number == 0;
  return v.is_string() && v.get_string().empty();
}

std::optional<std::string> id_key(const json::value* id) {
  if (id == nullptr || id->is_null()) return std::nullopt;
  if (id->is_string()) return std::string(json::view(id->get_string()));
  return kNoText + json::to_text(*id);
}

json::value id_value(std::string_view key) {
  if (!key.starts_with(kNoText)) return json::value(key);
  return json::parse(key.substr(1)).value_or(nullptr);
}

Entry entry_from(json::value source) {
  json::object* o = source.if_object();
  Entry entry{o != nullptr ? json::object(std::move(*o)) : json::object(), EntryType::kUnknown, {}, {}, {}};
  entry.type = entry_type_from(entry.type_name());
  entry.id = id_key(entry.source.if_contains("id"));
  const json::value* parent = entry.source.if_contains("parentId");
  if (parent != nullptr && !is_falsy(*parent)) entry.parent_id = id_key(parent);
  entry.timestamp = json::string_or(entry.source, "timestamp");
  return entry;
}

MessageRole role_of(const Entry& entry) {
  const json::object* message = entry.message();
  return message != nullptr ? message_role_from(json::find_string(*message, "role").value_or("")) : MessageRole::kNone;
}

std::optional<std::int64_t> entry_time(std::string_view timestamp) {
  return parse_iso_time(timestamp);
}

}  // namespace tau::coding
