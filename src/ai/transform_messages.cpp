#include "ai/transform_messages.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ai/short_hash.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::string_view kUserImageOmitted = "(image omitted: model does not support images)";
constexpr std::string_view kToolImageOmitted = "(tool image omitted: model does not support images)";
constexpr std::string_view kNoResult = "No result provided";

// ---- pairing of calls and results (FF-5 to FF-7) -----------------------------------------------------------------

/// An assistant message with what became of its calls.
struct Reply {
  bool dropped = false;
  std::vector<const ToolCall*> calls;
  std::vector<std::string> ids;                              // of the calls, in the request
  std::vector<std::pair<std::size_t, std::size_t>> results;  // message index, call ordinal; in stored order
  std::vector<bool> answered;                                // by call ordinal
};

struct OpenCall {
  std::size_t message;
  std::size_t ordinal;
};

/// Finds the reply that each result belongs to: the nearest earlier one with an open call of that id (FF-7). Failed
/// replies take part, so that their results go with them and not to an older call of the same id (FF-5). Indexed like
/// the messages.
std::vector<Reply> pair_results(const std::vector<MessageRef>& messages) {
  std::vector<Reply> replies(messages.size());
  std::unordered_map<std::string_view, std::vector<OpenCall>> open;  // by id, oldest first
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (const auto* assistant = std::get_if<AssistantMessage>(messages[i].get())) {
      Reply& reply = replies[i];
      reply.dropped = assistant->stop_reason == StopReason::kError || assistant->stop_reason == StopReason::kAborted;
      reply.calls = tool_calls_of(*assistant);
      reply.answered.resize(reply.calls.size());
      for (std::size_t ordinal = 0; ordinal < reply.calls.size(); ++ordinal)
        open[reply.calls[ordinal]->id].push_back({i, ordinal});
    } else if (const auto* result = std::get_if<ToolResultMessage>(messages[i].get())) {
      const auto found = open.find(result->tool_call_id);
      if (found == open.end() || found->second.empty()) continue;  // nobody asked, or it was answered already
      std::vector<OpenCall>& calls = found->second;
      const std::size_t nearest = calls.back().message;
      const auto first =
          std::find_if(calls.begin(), calls.end(), [&](const OpenCall& call) { return call.message == nearest; });
      Reply& reply = replies[nearest];
      reply.results.emplace_back(i, first->ordinal);
      reply.answered[first->ordinal] = true;
      calls.erase(first);
    }
  }
  return replies;
}

// ---- ids (AI-69, AI-76, FF-7) ------------------------------------------------------------------------------------

std::string default_rename(const std::string& id, int attempt) {
  return "call_" + short_hash(id + ":" + std::to_string(attempt));
}

/// Ids of the Responses family are "<call id>|<item id>"; the API asks for unique call ids.
std::string unique_part(const std::string& id) {
  return id.substr(0, id.find('|'));
}

class IdTable {
 public:
  explicit IdTable(const TransformOptions& options) : options_(options) {}

  std::string id_for(const ToolCall& call, const AssistantMessage& source, bool same_model) {
    std::string id = !same_model && options_.normalize_id ? options_.normalize_id(call.id, source) : call.id;
    if (!options_.unique_ids) return id;
    std::string key = unique_part(id);
    if (!key.empty() && used_.insert(key).second) return id;
    // Each key counts its own attempts, so that the n-th use of an id is renamed at once.
    int& attempt = attempts_[key];
    std::string renamed;
    do {
      ++attempt;
      renamed = options_.rename_id ? options_.rename_id(key, attempt) : default_rename(key, attempt);
    } while (!used_.insert(unique_part(renamed)).second);
    return renamed;
  }

 private:
  const TransformOptions& options_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> attempts_;
};

// ---- content -----------------------------------------------------------------------------------------------------

bool is_blank_text(const UserBlock& block) {
  const auto* text = std::get_if<TextContent>(&block);
  return text != nullptr && utf8::is_blank(text->text);
}

bool is_set(const std::optional<std::string>& signature) {
  return signature && !signature->empty();
}

/// Each run of images becomes one placeholder (AI-63).
std::vector<UserBlock> without_images(const std::vector<UserBlock>& blocks, std::string_view placeholder) {
  std::vector<UserBlock> out;
  bool placed = false;
  for (const UserBlock& block : blocks) {
    if (std::holds_alternative<ImageContent>(block)) {
      if (!placed) out.emplace_back(TextContent{std::string(placeholder), {}, {}});
      placed = true;
    } else {
      const auto* text = std::get_if<TextContent>(&block);
      placed = text != nullptr && text->text == placeholder;
      out.push_back(block);
    }
  }
  return out;
}

/// The blocks for the request, or nothing when they can stay as they are.
std::optional<std::vector<UserBlock>> user_blocks_for(const std::vector<UserBlock>& blocks, const Model& target,
                                                      std::string_view placeholder) {
  std::optional<std::vector<UserBlock>> changed;
  if (!target.image_input && has_image(blocks)) changed = without_images(blocks, placeholder);
  const std::vector<UserBlock>& current = changed ? *changed : blocks;
  if (std::any_of(current.begin(), current.end(), is_blank_text) &&
      !std::all_of(current.begin(), current.end(), is_blank_text)) {
    if (!changed) changed = blocks;
    std::erase_if(*changed, is_blank_text);
  }
  return changed;
}

MessageRef user_for(const MessageRef& message, const Model& target) {
  const auto& user = std::get<UserMessage>(*message);
  const auto* blocks = std::get_if<std::vector<UserBlock>>(&user.content);
  if (blocks == nullptr) return message;
  auto changed = user_blocks_for(*blocks, target, kUserImageOmitted);
  if (!changed) return message;
  return make_message(UserMessage{*std::move(changed), user.timestamp, user.extra});
}

MessageRef result_for(const MessageRef& message, const Model& target, const std::string& id) {
  const auto& result = std::get<ToolResultMessage>(*message);
  // In a result the line breaks between text blocks mean something: blanks go only when they are all there is.
  std::optional<std::vector<UserBlock>> changed;
  if (!target.image_input && has_image(result.content)) changed = without_images(result.content, kToolImageOmitted);
  const std::vector<UserBlock>& current = changed ? *changed : result.content;
  const auto is_text = [](const UserBlock& block) { return std::holds_alternative<TextContent>(block); };
  if (std::any_of(current.begin(), current.end(), is_text) &&
      std::none_of(current.begin(), current.end(),
                   [&](const UserBlock& block) { return is_text(block) && !is_blank_text(block); })) {
    if (!changed) changed = result.content;
    std::erase_if(*changed, is_blank_text);
  }
  if (!changed && result.tool_call_id == id) return message;
  ToolResultMessage copy = result;
  copy.tool_call_id = id;
  if (changed) copy.content = *std::move(changed);
  return make_message(std::move(copy));
}

MessageRef missing_result(const ToolCall& call, const std::string& id, Milliseconds now) {
  ToolResultMessage result;
  result.tool_call_id = id;
  result.tool_name = call.name;
  result.content.emplace_back(TextContent{std::string(kNoResult), {}, {}});
  result.is_error = true;
  result.timestamp = now;
  return make_message(std::move(result));
}

/// Whether the block stays out of the request (AI-64 to AI-66, FF-9).
bool is_left_out(const AssistantBlock& block, bool same_model) {
  if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
    if (thinking->redacted) return !same_model;
    if (same_model && is_set(thinking->thinking_signature)) return false;
    return utf8::is_blank(thinking->thinking);
  }
  if (const auto* text = std::get_if<TextContent>(&block)) {
    return utf8::is_blank(text->text) && !(same_model && is_set(text->text_signature));
  }
  return false;
}

/// Whether the block, of another model, holds anything that must not be replayed (AI-67 to AI-69).
bool is_foreign(const AssistantBlock& block) {
  if (const auto* text = std::get_if<TextContent>(&block)) return text->text_signature || !text->extra.empty();
  if (const auto* call = std::get_if<ToolCall>(&block)) return call->thought_signature.has_value();
  return std::holds_alternative<ThinkingContent>(block);
}

AssistantBlock neutral(const AssistantBlock& block) {
  if (const auto* thinking = std::get_if<ThinkingContent>(&block)) return TextContent{thinking->thinking, {}, {}};
  if (const auto* text = std::get_if<TextContent>(&block)) return TextContent{text->text, {}, {}};
  AssistantBlock copy = block;
  if (auto* call = std::get_if<ToolCall>(&copy)) call->thought_signature.reset();
  return copy;
}

MessageRef assistant_for(const MessageRef& message, bool same_model, const std::vector<std::string>& ids) {
  const auto& assistant = std::get<AssistantMessage>(*message);
  bool changed = false;
  std::size_t ordinal = 0;
  for (const AssistantBlock& block : assistant.content) {
    changed = changed || is_left_out(block, same_model) || (!same_model && is_foreign(block));
    if (const auto* call = std::get_if<ToolCall>(&block)) changed = changed || call->id != ids[ordinal++];
  }
  if (!changed) return message;

  // Everything but the content, without copying the content first.
  AssistantMessage copy;
  copy.api = assistant.api;
  copy.provider = assistant.provider;
  copy.model = assistant.model;
  copy.response_model = assistant.response_model;
  copy.response_id = assistant.response_id;
  copy.provider_thinking_level = assistant.provider_thinking_level;
  copy.diagnostics = assistant.diagnostics;
  copy.usage = assistant.usage;
  copy.stop_reason = assistant.stop_reason;
  copy.deferred = assistant.deferred;
  copy.error_message = assistant.error_message;
  copy.raw_stop_reason = assistant.raw_stop_reason;
  copy.end_turn = assistant.end_turn;
  copy.timestamp = assistant.timestamp;
  copy.extra = assistant.extra;
  copy.content.reserve(assistant.content.size());
  ordinal = 0;
  for (const AssistantBlock& block : assistant.content) {
    if (is_left_out(block, same_model)) continue;
    copy.content.push_back(same_model ? block : neutral(block));
    if (auto* call = std::get_if<ToolCall>(&copy.content.back())) call->id = ids[ordinal++];
  }
  return make_message(std::move(copy));
}

}  // namespace

bool is_same_model(const AssistantMessage& message, const Model& target) {
  return message.provider == target.provider && message.api == target.api && message.model == target.id;
}

std::string plain_tool_call_id(const std::string& id) {
  constexpr std::size_t kLongest = 64;
  std::string out;
  // One '_' for each UTF-16 unit, as pi has it: ids of both programs must agree within a session.
  for (std::size_t at = 0; at < id.size() && out.size() < kLongest;) {
    const utf8::Decoded d = utf8::decode(std::string_view(id).substr(at));
    at += d.length;
    const char32_t c = d.code_point;
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    out += plain ? static_cast<char>(c) : '_';
    if (c >= 0x10000 && out.size() < kLongest) out += '_';
  }
  return out;
}

std::vector<MessageRef> transform_messages(const std::vector<MessageRef>& messages, const Model& target,
                                           const TransformOptions& options) {
  std::vector<Reply> replies = pair_results(messages);
  IdTable ids(options);
  std::vector<MessageRef> out;
  out.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (std::holds_alternative<UserMessage>(*messages[i])) {
      out.push_back(user_for(messages[i], target));
      continue;
    }
    const auto* assistant = std::get_if<AssistantMessage>(messages[i].get());
    if (assistant == nullptr) continue;  // results follow their reply
    Reply& reply = replies[i];
    if (reply.dropped) continue;
    const bool same_model = is_same_model(*assistant, target);
    for (const ToolCall* call : reply.calls)
      reply.ids.push_back(ids.id_for(*call, *assistant, same_model));
    out.push_back(assistant_for(messages[i], same_model, reply.ids));

    std::vector<std::pair<std::size_t, MessageRef>> results;  // by call ordinal
    results.reserve(reply.calls.size());
    for (const auto& [index, ordinal] : reply.results)
      results.emplace_back(ordinal, result_for(messages[index], target, reply.ids[ordinal]));
    for (std::size_t ordinal = 0; ordinal < reply.calls.size(); ++ordinal) {
      if (reply.answered[ordinal]) continue;
      const Milliseconds now = options.now ? options.now() : now_milliseconds();
      results.emplace_back(ordinal, missing_result(*reply.calls[ordinal], reply.ids[ordinal], now));
    }
    if (options.results_in_call_order) {
      std::sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    for (auto& [ordinal, result] : results)
      out.push_back(std::move(result));
  }
  return out;
}

}  // namespace tau::ai
