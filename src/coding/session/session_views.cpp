#include "coding/session/session_views.h"

#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "ai/token_estimate.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "coding/roles/bash_execution.h"
#include "coding/roles/convert_to_llm.h"
#include "coding/roles/custom.h"

namespace tau::coding {

namespace {

constexpr std::size_t kTextLength = 60;  // code points

struct Decision {
  bool seen = false;
  std::string_view rule;
};

Decision on_screen(const Entry& entry, bool in_context) {
  if (!in_context) return {false, "before the compaction; the summary stands for it (SES-83)"};
  switch (entry.type) {
    case EntryType::kMessage:
      return entry.message() != nullptr ? Decision{true, "a message"} : Decision{false, "holds no message (SES-88)"};
    case EntryType::kCustomMessage:
      return json::bool_or(entry.source, "display") ? Decision{true, "display is true (PR-4)"}
                                                    : Decision{false, "display is not true (PR-4)"};
    case EntryType::kBranchSummary:
      return json::string_or(entry.source, "summary").empty() ? Decision{false, "the summary is empty (SES-86)"}
                                                              : Decision{true, "a summary"};
    case EntryType::kCompaction:
      return {true, "a summary"};
    case EntryType::kCustom:
      return {false, "state of an extension, which may show it (IV-5)"};
    case EntryType::kUnknown:
      return {false, "of a type that is not known here (SES-62)"};
    default:
      return {false, "a setting, in the tree only"};
  }
}

bool has_failed(const agent::AgentMessage& message) {
  const ai::AssistantMessage* reply = message.assistant();
  return reply != nullptr &&
         (reply->stop_reason == ai::StopReason::kError || reply->stop_reason == ai::StopReason::kAborted);
}

/// Decides for the entries of a conversation in their order: results share the lot of their reply.
class ModelReader {
 public:
  Decision look_at(const Entry& entry, const std::optional<agent::AgentMessage>& message) {
    if (!message) {
      const bool empty_summary = entry.type == EntryType::kBranchSummary;
      return {false, empty_summary ? "the summary is empty (SES-86)" : "not part of the conversation (SES-86)"};
    }
    if (has_failed(*message)) {
      for (const ai::ToolCall* call : ai::tool_calls_of(*message->assistant()))
        failed_calls_.insert(call->id);
      return {false, "the reply failed or was stopped (AI-72)"};
    }
    if (const ai::AssistantMessage* reply = message->assistant()) {
      for (const ai::ToolCall* call : ai::tool_calls_of(*reply))
        failed_calls_.erase(call->id);
    }
    if (const ai::ToolResultMessage* result = message->tool_result();
        result != nullptr && failed_calls_.contains(result->tool_call_id)) {
      return {false, "its call is in a reply that failed (FF-5)"};
    }
    if (message->projection().empty()) {
      return {false, message->as<BashExecution>() != nullptr ? "a !! command is kept from the model (SES-89)"
                                                             : "of a role that is not known here (SES-89)"};
    }
    if (entry.type == EntryType::kCompaction) return {true, "the summary stands for what was before (SES-82)"};
    if (message->standard() != nullptr) return {true, "a message, as it is (SES-89)"};
    return {true, "as a user message (SES-89)"};
  }

 private:
  std::unordered_set<std::string> failed_calls_;
};

std::string text_of_message(const json::object& message) {
  const json::value* content = message.if_contains("content");
  if (content == nullptr) return json::string_or(message, "command", json::string_or(message, "summary"));
  if (content->is_string()) return std::string(json::view(content->get_string()));
  const json::array* blocks = content->if_array();
  std::string out;
  for (std::size_t i = 0; blocks != nullptr && i < blocks->size(); ++i) {
    const json::object* block = (*blocks)[i].if_object();
    if (block == nullptr) continue;
    const std::string type = json::string_or(*block, "type");
    if (!out.empty()) out += ' ';
    if (type == "text") out += json::string_or(*block, "text");
    if (type == "thinking") out += "(thinking)";
    if (type == "image") out += "(image)";
    if (type == "toolCall") out += "[" + json::string_or(*block, "name") + "]";
    if (out.size() > 1000) break;
  }
  return out;
}

std::string whole_text(const Entry& entry) {
  const json::object& o = entry.source;
  switch (entry.type) {
    case EntryType::kMessage: {
      const json::object* message = entry.message();
      if (message == nullptr) return "message: none";
      std::string role = json::string_or(*message, "role", "?");
      if (role == "toolResult") role += " " + json::string_or(*message, "toolName");
      const std::string error = json::string_or(*message, "errorMessage");
      return role + ": " + text_of_message(*message) + (error.empty() ? "" : " (" + error + ")");
    }
    case EntryType::kModelChange:
      return fmt::format("model: {}/{}", json::string_or(o, "provider"), json::string_or(o, "modelId"));
    case EntryType::kThinkingLevelChange:
      return "thinking: " + json::string_or(o, "thinkingLevel");
    case EntryType::kCompaction:
      return "compaction: " + json::string_or(o, "summary");
    case EntryType::kBranchSummary:
      return "branch summary: " + json::string_or(o, "summary");
    case EntryType::kCustom:
      return "extension state: " + json::string_or(o, "customType");
    case EntryType::kCustomMessage:
      return json::string_or(o, "customType") + ": " + text_of_message(o);
    case EntryType::kLabel:
      return fmt::format("label {}: {}", json::string_or(o, "targetId"), json::string_or(o, "label", "(taken away)"));
    case EntryType::kSessionInfo:
      return "name: " + json::string_or(o, "name");
    default:
      return std::string(entry.type_name().empty() ? "(no entry)" : entry.type_name());
  }
}

}  // namespace

std::string entry_text(const Entry& entry, std::size_t length) {
  const std::string whole = whole_text(entry);
  // Cleaning is linear: of a long text only the beginning is looked at.
  const std::string line = printable_line(utf8::prefix(whole, length * 2));
  const std::string_view shown = utf8::prefix(line, length);
  return shown.size() < line.size() || line.size() < whole.size() / 2 ? std::string(shown) + "…" : line;
}

std::expected<PathViews, Error> views_of(const Session& session, const std::optional<std::string>& leaf_id) {
  const EntryIndex& index = session.index();
  std::vector<EntryNumber> path = session.path();
  if (leaf_id) {
    const auto leaf = index.find(*leaf_id);
    if (!leaf) return std::unexpected(error(fmt::format("Entry {} not found", *leaf_id)));
    path = index.path_to(*leaf);
  }
  PathViews views;
  const std::vector<EntryNumber> conversation = context_entries(index, path);
  const std::unordered_set<EntryNumber> in_context(conversation.begin(), conversation.end());
  static_cast<SessionSettings&>(views.context) = settings_of(index, path);

  // The model reads the conversation in its own order (the summary first), the person reads the path.
  std::unordered_map<EntryNumber, EntryView> seen;
  ModelReader model;
  for (const EntryNumber n : conversation) {
    const Entry entry = index.entry(n);
    const auto message = message_of(entry);
    EntryView view;
    const Decision decision = model.look_at(entry, message);
    view.for_model = decision.seen;
    view.model_rule = decision.rule;
    if (message) views.context.messages.push_back(*message);
    if (decision.seen) {
      for (const ai::MessageRef& projected : message->projection())
        view.tokens += ai::estimate_tokens(*projected);
    }
    views.tokens += view.tokens;
    seen.emplace(n, view);
  }
  for (const EntryNumber n : path) {
    const Entry entry = index.entry(n);
    EntryView view;
    if (const auto known = seen.find(n); known != seen.end()) {
      view = known->second;
    } else {
      view.model_rule = "before the compaction; the summary stands for it (SES-83)";
    }
    const Decision screen = on_screen(entry, in_context.contains(n));
    view.number = n;
    view.on_screen = screen.seen;
    view.screen_rule = screen.rule;
    view.text = entry_text(entry, kTextLength);
    views.entries.push_back(std::move(view));
  }
  return views;
}

}  // namespace tau::coding
