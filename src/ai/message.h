// Layer 1: the messages that a model can be sent and can answer (spec AI-10 to AI-14).
//
// Everything here is a plain value. Field names are the wire names in snake_case; JSON keeps camelCase. Each type has
// to_json and from_json beside it; members that a type does not know are kept in `extra` and written back, because a
// newer program may have put them there (AI-5).
//
// Opaque fields (signatures, response ids) belong to the provider that made them: nobody parses, trims or joins them.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ai/usage.h"
#include "base/error.h"
#include "base/json.h"

namespace tau::ai {

/// Unix time in milliseconds (AI-4).
using Milliseconds = std::int64_t;

// ---- content blocks (AI-10) --------------------------------------------------------------------------------------

struct TextContent {
  std::string text;
  std::optional<std::string> text_signature;  // opaque
  json::object extra;
};

struct ThinkingContent {
  std::string thinking;
  std::optional<std::string> thinking_signature;  // opaque; "" is a value of its own
  bool redacted = false;                          // the payload is in the signature, `thinking` is a placeholder
  json::object extra;
};

struct ImageContent {
  std::string data;  // base64, no data-URL prefix
  std::string mime_type;
  json::object extra;
};

struct ToolCall {
  std::string id;
  std::string name;
  json::value arguments = json::object{};        // an object, but a broken stream can leave any value (AI-44)
  std::optional<std::string> thought_signature;  // opaque
  std::optional<std::string> name_space;         // "namespace" in JSON
  json::object extra;
  /// The argument text as received, when it was not valid JSON: `arguments` then holds what a lenient reader found,
  /// for previews only, and the call must not run (FF-19). Never stored.
  std::optional<std::string> malformed_arguments;
};

/// A block of a type that this version does not know; kept as it came.
struct UnknownContent {
  json::object source;
};

using UserBlock = std::variant<TextContent, ImageContent, UnknownContent>;
using AssistantBlock = std::variant<TextContent, ThinkingContent, ToolCall, UnknownContent>;

// ---- messages (AI-11) --------------------------------------------------------------------------------------------

/// A user message holds a plain string or blocks; both forms are kept apart because files and requests do (SES-63).
using UserContent = std::variant<std::string, std::vector<UserBlock>>;

struct UserMessage {
  UserContent content;
  Milliseconds timestamp = 0;
  json::object extra;
};

/// Why a reply ended (AI-12). `pending` exists only while it streams and never leaves this layer as a result.
enum class StopReason { kPending, kStop, kLength, kToolUse, kError, kAborted, kDeferred };

std::string_view to_string(StopReason reason);
std::optional<StopReason> stop_reason_from(std::string_view text);

struct AssistantMessage {
  std::vector<AssistantBlock> content;
  std::string api;
  std::string provider;
  std::string model;                          // the id that was asked for (FF-3)
  std::optional<std::string> response_model;  // the id that the provider reported, when it differs
  std::optional<std::string> response_id;     // opaque
  std::optional<std::string> provider_thinking_level;
  std::optional<json::array> diagnostics;
  Usage usage;
  StopReason stop_reason = StopReason::kStop;
  std::optional<json::object> deferred;        // handle of an answer that comes later (AI-14)
  std::optional<std::string> error_message;    // for kError and kAborted
  std::optional<std::string> raw_stop_reason;  // the provider's own word
  std::optional<bool> end_turn;
  Milliseconds timestamp = 0;  // when the request was made
  json::object extra;
};

struct ToolResultMessage {
  std::string tool_call_id;
  std::string tool_name;
  std::vector<UserBlock> content;
  std::optional<json::value> details;         // for programs and screens; no provider sees it
  std::optional<Usage> usage;                 // work done by the tool itself
  std::vector<std::string> added_tool_names;  // tools that become available here
  bool is_error = false;
  Milliseconds timestamp = 0;
  json::object extra;
};

using Message = std::variant<UserMessage, AssistantMessage, ToolResultMessage>;

/// "user", "assistant" or "toolResult".
std::string_view role_of(const Message& message);

json::object to_json(const UserBlock& block);
json::object to_json(const AssistantBlock& block);
json::object to_json(const ToolCall& call);
json::object to_json(const UserMessage& message);
json::object to_json(const AssistantMessage& message);
json::object to_json(const ToolResultMessage& message);
json::object to_json(const Message& message);
json::array to_json(const std::vector<UserBlock>& blocks);

/// Lenient where files are old or hand-edited: content that is null or missing reads as [] (AI-7), a missing number as
/// 0. Fails when `o` has no role of this layer.
std::expected<Message, Error> message_from_json(const json::object& o);
std::vector<UserBlock> user_blocks_from_json(const json::array& blocks);
UserBlock user_block_from_json(const json::value& block);
AssistantBlock assistant_block_from_json(const json::value& block);

/// The string, or the text blocks joined with '\n' (AI-49).
std::string text_of(const UserContent& content);
std::string text_of(const std::vector<UserBlock>& blocks);
/// The text blocks, one after the other without a separator.
std::string text_of(const AssistantMessage& message);
bool has_image(const std::vector<UserBlock>& blocks);
/// In source order. The pointers live as long as the message.
std::vector<const ToolCall*> tool_calls_of(const AssistantMessage& message);

/// A handle to an immutable message: copying a transcript copies handles, not text.
using MessageRef = std::shared_ptr<const Message>;

template <class T>
MessageRef make_message(T message) {
  return std::make_shared<const Message>(std::move(message));
}

}  // namespace tau::ai
