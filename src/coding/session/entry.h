// One record of a session: what it is called, and where it stands in the tree (SES section 6).
//
// Records are plain JSON objects and stay so: a member or a type that this version does not know is carried along
// untouched (SES-37, SES-62). What the tree needs of a record is its head: type, id, parent and time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace tau::coding {

enum class EntryType : std::uint8_t {
  kMessage,
  kModelChange,
  kThinkingLevelChange,
  kCompaction,
  kBranchSummary,
  kCustom,
  kCustomMessage,
  kLabel,
  kSessionInfo,
  kHeader,   // "session": the first record; a second one is not part of the tree (SES-23)
  kUnknown,  // any other type, or none
};

EntryType entry_type_from(std::string_view text);
std::string_view to_string(EntryType type);  // "" for kUnknown

/// Whose message a message record holds. `kUnread`: the head did not tell, the record has to be decoded.
enum class MessageRole : std::uint8_t { kNone, kUser, kAssistant, kToolResult, kOther, kUnread };

MessageRole message_role_from(std::string_view text);

/// The head of a record. A view without data means that the record has no such member.
///
/// Ids are compared as JSON values: the number 5 is not the string "5" (SES-73). `id` and `parent` are therefore keys:
/// a string's own text, or a byte that no text holds and then the JSON of another value. id_value turns them back.
struct EntryHead {
  EntryType type = EntryType::kUnknown;
  MessageRole role = MessageRole::kNone;
  std::string_view id;
  std::string_view parent;  // no data: null, missing, or a value that JavaScript counts as false
  std::string_view timestamp;
};

std::optional<std::string> id_key(const json::value* id);
json::value id_value(std::string_view key);

/// A decoded record.
struct Entry {
  json::object source;  // empty when the record is no object
  EntryType type = EntryType::kUnknown;
  std::optional<std::string> id;         // key, see EntryHead
  std::optional<std::string> parent_id;  // key
  std::string timestamp;

  /// "message", or what an unknown type calls itself.
  std::string_view type_name() const { return json::find_string(source, "type").value_or(""); }
  /// The message object of a message record; null when it has none.
  const json::object* message() const { return json::find_object(source, "message"); }
};

Entry entry_from(json::value source);

/// Whose message a decoded message record holds.
MessageRole role_of(const Entry& entry);

/// Unix milliseconds of a record's time; nothing when it cannot be read.
std::optional<std::int64_t> entry_time(std::string_view timestamp);

/// Values that JavaScript counts as false: a line that holds only such a value is no record (SES-35).
bool is_falsy(const json::value& v);

}  // namespace tau::coding
