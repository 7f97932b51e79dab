#include "ai/message.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ai/json_members.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

json::object text_to_json(const TextContent& block) {
  json::object o{{"type", "text"}, {"text", block.text}};
  put(o, "textSignature", block.text_signature);
  put_unknown(o, block.extra);
  return o;
}

TextContent text_from_json(const json::object& o) {
  return {json::string_or(o, "text"), optional_string(o, "textSignature"),
          unknown_members(o, {"type", "text", "textSignature"})};
}

Milliseconds time_from_json(const json::object& o) {
  constexpr double kLargestTime = 8.64e15;  // of JavaScript's Date
  const double time = json::number_or(o, "timestamp");
  return std::abs(time) <= kLargestTime ? static_cast<Milliseconds>(time) : 0;
}

template <class Variant>
std::string join_text(const std::vector<Variant>& blocks, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const Variant& block : blocks) {
    const auto* text = std::get_if<TextContent>(&block);
    if (text == nullptr) continue;
    if (!first) out += separator;
    first = false;
    utf8::append_wtf8(out, text->text);
  }
  return out;
}

}  // namespace

std::optional<std::string> optional_string(const json::object& o, std::string_view key) {
  const auto text = json::find_string(o, key);
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

json::object unknown_members(const json::object& o, std::initializer_list<std::string_view> known) {
  json::object rest;
  for (const auto& [key, member] : o) {
    const std::string_view name(key.data(), key.size());
    if (std::find(known.begin(), known.end(), name) == known.end()) rest.emplace(name, member);
  }
  return rest;
}

void put_unknown(json::object& o, const json::object& extra) {
  for (const auto& [key, member] : extra)
    o.emplace(key, member);
}

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kPending:
      return "pending";
    case StopReason::kStop:
      return "stop";
    case StopReason::kLength:
      return "length";
    case StopReason::kToolUse:
      return "toolUse";
    case StopReason::kError:
      return "error";
    case StopReason::kAborted:
      return "aborted";
    case StopReason::kDeferred:
      return "deferred";
  }
  std::unreachable();
}

std::optional<StopReason> stop_reason_from(std::string_view text) {
  for (const StopReason reason : {StopReason::kPending, StopReason::kStop, StopReason::kLength, StopReason::kToolUse,
                                  StopReason::kError, StopReason::kAborted, StopReason::kDeferred}) {
    if (to_string(reason) == text) return reason;
  }
  return std::nullopt;
}

json::object to_json(const Usage& usage) {
  json::object o{{"input", json::number(usage.input)},
                 {"output", json::number(usage.output)},
                 {"cacheRead", json::number(usage.cache_read)},
                 {"cacheWrite", json::number(usage.cache_write)},
                 {"totalTokens", json::number(usage.total_tokens)},
                 {"cost",
                  {{"input", json::number(usage.cost.input)},
                   {"output", json::number(usage.cost.output)},
                   {"cacheRead", json::number(usage.cost.cache_read)},
                   {"cacheWrite", json::number(usage.cost.cache_write)},
                   {"total", json::number(usage.cost.total)}}}};
  if (usage.cache_write_1h) o.emplace("cacheWrite1h", json::number(*usage.cache_write_1h));
  if (usage.reasoning) o.emplace("reasoning", json::number(*usage.reasoning));
  put_unknown(o, usage.extra);
  return o;
}

Usage usage_from_json(const json::object& o) {
  Usage usage;
  usage.input = json::number_or(o, "input");
  usage.output = json::number_or(o, "output");
  usage.cache_read = json::number_or(o, "cacheRead");
  usage.cache_write = json::number_or(o, "cacheWrite");
  usage.total_tokens = json::number_or(o, "totalTokens");
  if (const json::object* cost = json::find_object(o, "cost")) {
    usage.cost = {json::number_or(*cost, "input"), json::number_or(*cost, "output"),
                  json::number_or(*cost, "cacheRead"), json::number_or(*cost, "cacheWrite"),
                  json::number_or(*cost, "total")};
  }
  usage.cache_write_1h = json::find_number(o, "cacheWrite1h");
  usage.reasoning = json::find_number(o, "reasoning");
  usage.extra = unknown_members(
      o, {"input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost", "cacheWrite1h", "reasoning"});
  return usage;
}

std::string_view role_of(const Message& message) {
  constexpr std::string_view kRoles[] = {"user", "assistant", "toolResult"};
  return kRoles[message.index()];
}

json::object to_json(const UserBlock& block) {
  if (const auto* text = std::get_if<TextContent>(&block)) return text_to_json(*text);
  if (const auto* image = std::get_if<ImageContent>(&block)) {
    json::object o{{"type", "image"}, {"data", image->data}, {"mimeType", image->mime_type}};
    put_unknown(o, image->extra);
    return o;
  }
  return std::get<UnknownContent>(block).source;
}

json::object to_json(const ToolCall& call) {
  json::object o{{"type", "toolCall"}, {"id", call.id}, {"name", call.name}, {"arguments", call.arguments}};
  put(o, "thoughtSignature", call.thought_signature);
  put(o, "namespace", call.name_space);
  put_unknown(o, call.extra);
  return o;
}

json::object to_json(const AssistantBlock& block) {
  if (const auto* text = std::get_if<TextContent>(&block)) return text_to_json(*text);
  if (const auto* call = std::get_if<ToolCall>(&block)) return to_json(*call);
  if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
    json::object o{{"type", "thinking"}, {"thinking", thinking->thinking}};
    put(o, "thinkingSignature", thinking->thinking_signature);
    if (thinking->redacted) o.emplace("redacted", true);
    put_unknown(o, thinking->extra);
    return o;
  }
  return std::get<UnknownContent>(block).source;
}

json::array to_json(const std::vector<UserBlock>& blocks) {
  json::array a;
  a.reserve(blocks.size());
  for (const UserBlock& block : blocks)
    a.emplace_back(to_json(block));
  return a;
}

json::object to_json(const UserMessage& message) {
  json::object o{{"role", "user"}};
  if (const auto* text = std::get_if<std::string>(&message.content)) {
    o.emplace("content", *text);
  } else {
    o.emplace("content", to_json(std::get<std::vector<UserBlock>>(message.content)));
  }
  o.emplace("timestamp", message.timestamp);
  put_unknown(o, message.extra);
  return o;
}

json::object to_json(const AssistantMessage& message) {
  json::array content;
  content.reserve(message.content.size());
  for (const AssistantBlock& block : message.content)
    content.emplace_back(to_json(block));
  json::object o{{"role", "assistant"}};
  o.emplace("content", std::move(content));
  o.emplace("api", message.api);
  o.emplace("provider", message.provider);
  o.emplace("model", message.model);
  o.emplace("usage", to_json(message.usage));
  o.emplace("stopReason", to_string(message.stop_reason));
  o.emplace("timestamp", message.timestamp);
  put(o, "responseId", message.response_id);
  put(o, "responseModel", message.response_model);
  put(o, "providerThinkingLevel", message.provider_thinking_level);
  put(o, "rawStopReason", message.raw_stop_reason);
  put(o, "endTurn", message.end_turn);
  put(o, "diagnostics", message.diagnostics);
  put(o, "deferred", message.deferred);
  put(o, "errorMessage", message.error_message);
  put_unknown(o, message.extra);
  return o;
}

json::object to_json(const ToolResultMessage& message) {
  json::object o{{"role", "toolResult"}, {"toolCallId", message.tool_call_id}, {"toolName", message.tool_name}};
  o.emplace("content", to_json(message.content));
  put(o, "details", message.details);
  if (message.usage) o.emplace("usage", to_json(*message.usage));
  if (!message.added_tool_names.empty()) {
    o.emplace("addedToolNames", json::array(message.added_tool_names.begin(), message.added_tool_names.end()));
  }
  o.emplace("isError", message.is_error);
  o.emplace("timestamp", message.timestamp);
  put_unknown(o, message.extra);
  return o;
}

json::object to_json(const Message& message) {
  return std::visit([](const auto& m) { return to_json(m); }, message);
}

UserBlock user_block_from_json(const json::value& v) {
  const json::object* o = v.if_object();
  if (o == nullptr) return UnknownContent{};
  const std::string_view type = json::find_string(*o, "type").value_or("");
  if (type == "text") return text_from_json(*o);
  if (type == "image") {
    return ImageContent{json::string_or(*o, "data"), json::string_or(*o, "mimeType"),
                        unknown_members(*o, {"type", "data", "mimeType"})};
  }
  return UnknownContent{*o};
}

AssistantBlock assistant_block_from_json(const json::value& v) {
  const json::object* o = v.if_object();
  if (o == nullptr) return UnknownContent{};
  const std::string_view type = json::find_string(*o, "type").value_or("");
  if (type == "text") return text_from_json(*o);
  if (type == "thinking") {
    return ThinkingContent{json::string_or(*o, "thinking"), optional_string(*o, "thinkingSignature"),
                           json::bool_or(*o, "redacted"),
                           unknown_members(*o, {"type", "thinking", "thinkingSignature", "redacted"})};
  }
  if (type == "toolCall") {
    ToolCall call;
    call.id = json::string_or(*o, "id");
    call.name = json::string_or(*o, "name");
    if (const json::value* arguments = json::find(*o, "arguments")) call.arguments = *arguments;
    call.thought_signature = optional_string(*o, "thoughtSignature");
    call.name_space = optional_string(*o, "namespace");
    call.extra = unknown_members(*o, {"type", "id", "name", "arguments", "thoughtSignature", "namespace"});
    return call;
  }
  return UnknownContent{*o};
}

std::vector<UserBlock> user_blocks_from_json(const json::array& blocks) {
  std::vector<UserBlock> out;
  out.reserve(blocks.size());
  for (const json::value& block : blocks)
    out.push_back(user_block_from_json(block));
  return out;
}

namespace {

UserMessage user_from_json(const json::object& o) {
  UserMessage m;
  const json::value* content = json::find(o, "content");
  if (content != nullptr && content->is_string()) {
    m.content = std::string(json::view(content->get_string()));
  } else if (content != nullptr && content->is_array()) {
    m.content = user_blocks_from_json(content->get_array());
  } else {
    m.content = std::vector<UserBlock>{};  // AI-7
  }
  m.timestamp = time_from_json(o);
  m.extra = unknown_members(o, {"role", "content", "timestamp"});
  return m;
}

AssistantMessage assistant_from_json(const json::object& o) {
  AssistantMessage m;
  if (const json::array* blocks = json::find_array(o, "content")) {
    m.content.reserve(blocks->size());
    for (const json::value& block : *blocks)
      m.content.push_back(assistant_block_from_json(block));
  } else if (const auto text = json::find_string(o, "content")) {
    m.content.emplace_back(TextContent{std::string(*text), {}, {}});
  }
  m.api = json::string_or(o, "api");
  m.provider = json::string_or(o, "provider");
  m.model = json::string_or(o, "model");
  m.response_model = optional_string(o, "responseModel");
  m.response_id = optional_string(o, "responseId");
  m.provider_thinking_level = optional_string(o, "providerThinkingLevel");
  if (const json::array* diagnostics = json::find_array(o, "diagnostics")) m.diagnostics = *diagnostics;
  if (const json::object* usage = json::find_object(o, "usage")) m.usage = usage_from_json(*usage);
  m.stop_reason = stop_reason_from(json::string_or(o, "stopReason", "stop")).value_or(StopReason::kStop);
  if (const json::object* deferred = json::find_object(o, "deferred")) m.deferred = *deferred;
  m.error_message = optional_string(o, "errorMessage");
  m.raw_stop_reason = optional_string(o, "rawStopReason");
  m.end_turn = json::find_bool(o, "endTurn");
  m.timestamp = time_from_json(o);
  m.extra = unknown_members(
      o, {"role", "content", "api", "provider", "model", "responseModel", "responseId", "providerThinkingLevel",
          "diagnostics", "usage", "stopReason", "deferred", "errorMessage", "rawStopReason", "endTurn", "timestamp"});
  return m;
}

ToolResultMessage tool_result_from_json(const json::object& o) {
  ToolResultMessage m;
  m.tool_call_id = json::string_or(o, "toolCallId");
  m.tool_name = json::string_or(o, "toolName");
  if (const json::array* blocks = json::find_array(o, "content")) {
    m.content = user_blocks_from_json(*blocks);
  } else if (const auto text = json::find_string(o, "content")) {
    m.content.emplace_back(TextContent{std::string(*text), {}, {}});
  }
  if (const json::value* details = json::find(o, "details")) m.details = *details;
  if (const json::object* usage = json::find_object(o, "usage")) m.usage = usage_from_json(*usage);
  if (const json::array* names = json::find_array(o, "addedToolNames")) {
    for (const json::value& name : *names) {
      if (name.is_string()) m.added_tool_names.emplace_back(json::view(name.get_string()));
    }
  }
  m.is_error = json::bool_or(o, "isError");
  m.timestamp = time_from_json(o);
  m.extra = unknown_members(
      o, {"role", "toolCallId", "toolName", "content", "details", "usage", "addedToolNames", "isError", "timestamp"});
  return m;
}

}  // namespace

std::expected<Message, Error> message_from_json(const json::object& o) {
  const std::string_view role = json::find_string(o, "role").value_or("");
  if (role == "user") return user_from_json(o);
  if (role == "assistant") return assistant_from_json(o);
  if (role == "toolResult") return tool_result_from_json(o);
  return std::unexpected(
      error("a message needs the role user, assistant or toolResult, not '" + std::string(role) + "'"));
}

std::string text_of(const std::vector<UserBlock>& blocks) {
  return join_text(blocks, "\n");
}

std::string text_of(const UserContent& content) {
  if (const auto* text = std::get_if<std::string>(&content)) return *text;
  return text_of(std::get<std::vector<UserBlock>>(content));
}

std::string text_of(const AssistantMessage& message) {
  return join_text(message.content, "");
}

bool has_image(const std::vector<UserBlock>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(),
                     [](const UserBlock& block) { return std::holds_alternative<ImageContent>(block); });
}

std::vector<const ToolCall*> tool_calls_of(const AssistantMessage& message) {
  std::vector<const ToolCall*> calls;
  for (const AssistantBlock& block : message.content) {
    if (const auto* call = std::get_if<ToolCall>(&block)) calls.push_back(call);
  }
  return calls;
}

}  // namespace tau::ai
