#include "coding/session/session_context.h"

#include <algorithm>

#include "coding/roles/branch_summary.h"
#include "coding/roles/compaction_summary.h"
#include "coding/roles/convert_to_llm.h"
#include "coding/roles/custom.h"

namespace tau::coding {

namespace {

ai::Milliseconds time_of(const Entry& entry) {
  return entry_time(entry.timestamp).value_or(0);
}

CustomMessage custom_message_of(const Entry& entry) {
  json::object o = entry.source;
  o["timestamp"] = time_of(entry);
  auto message = from_json(std::type_identity<CustomMessage>{}, o);
  if (!message) return {};
  for (const char* key : {"type", "id", "parentId"}) {
    if (const auto place = message->extra.find(key); place != message->extra.end()) {
      message->extra.stable_erase(place);
    }
  }
  return *std::move(message);
}

/// Whether an assistant message is what `number` holds.
bool is_assistant(const EntryIndex& index, EntryNumber number) {
  const EntryHead& head = index.head(number);
  if (head.type != EntryType::kMessage) return false;
  if (head.role != MessageRole::kUnread) return head.role == MessageRole::kAssistant;
  const Entry entry = index.entry(number);
  const json::object* message = entry.message();
  return message != nullptr && json::find_string(*message, "role") == "assistant";
}

}  // namespace

std::vector<EntryNumber> context_entries(const EntryIndex& index, const std::vector<EntryNumber>& path) {
  const auto last = std::find_if(path.rbegin(), path.rend(),
                                 [&](EntryNumber n) { return index.head(n).type == EntryType::kCompaction; });
  if (last == path.rend()) return path;
  const auto compaction = std::prev(last.base());
  std::vector<EntryNumber> out{*compaction};
  const Entry entry = index.entry(*compaction);
  if (const auto first_kept = id_key(entry.source.if_contains("firstKeptEntryId"))) {
    const auto kept =
        std::find_if(path.begin(), compaction, [&](EntryNumber n) { return index.head(n).id == *first_kept; });
    out.insert(out.end(), kept, compaction);
  }
  out.insert(out.end(), std::next(compaction), path.end());
  return out;
}

SessionSettings settings_of(const EntryIndex& index, const std::vector<EntryNumber>& path) {
  SessionSettings settings;
  for (auto it = path.rbegin(); it != path.rend() && !(settings.model && settings.has_thinking_level); ++it) {
    const EntryType type = index.head(*it).type;
    if (type == EntryType::kThinkingLevelChange && !settings.has_thinking_level) {
      settings.thinking_level = json::string_or(index.entry(*it).source, "thinkingLevel", "off");
      settings.has_thinking_level = true;
    } else if (type == EntryType::kModelChange && !settings.model) {
      const Entry entry = index.entry(*it);
      settings.model = {json::string_or(entry.source, "provider"), json::string_or(entry.source, "modelId")};
    } else if (!settings.model && is_assistant(index, *it)) {
      const Entry entry = index.entry(*it);
      const json::object* message = entry.message();
      if (message == nullptr) continue;
      settings.model = {json::string_or(*message, "provider"), json::string_or(*message, "model")};
    }
  }
  return settings;
}

std::optional<agent::AgentMessage> message_of(const Entry& entry) {
  const json::object& o = entry.source;
  switch (entry.type) {
    case EntryType::kMessage: {
      const json::object* message = entry.message();
      if (message == nullptr) return std::nullopt;  // SES-88
      return coding_roles().read(*message);
    }
    case EntryType::kCustomMessage:
      return agent::AgentMessage::of(custom_message_of(entry));
    case EntryType::kBranchSummary: {
      BranchSummary summary{json::string_or(o, "summary"), {}, time_of(entry), {}};
      if (summary.summary.empty()) return std::nullopt;
      if (const auto from = json::find_string(o, "fromId")) summary.from_id = std::string(*from);
      return agent::AgentMessage::of(std::move(summary));
    }
    case EntryType::kCompaction:
      return agent::AgentMessage::of(
          CompactionSummary{json::string_or(o, "summary"), json::number_or(o, "tokensBefore"), time_of(entry), {}});
    default:
      return std::nullopt;
  }
}

std::size_t count_messages(const EntryIndex& index, const std::vector<EntryNumber>& entries) {
  return static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), [&](EntryNumber n) {
    const EntryHead& head = index.head(n);
    switch (head.type) {
      case EntryType::kMessage:
        return head.role == MessageRole::kUnread ? index.entry(n).message() != nullptr
                                                 : head.role != MessageRole::kNone;
      case EntryType::kBranchSummary:
        return !json::string_or(index.entry(n).source, "summary").empty();
      default:
        return head.type == EntryType::kCustomMessage || head.type == EntryType::kCompaction;
    }
  }));
}

}  // namespace tau::coding
