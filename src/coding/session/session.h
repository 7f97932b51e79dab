// A session: the append-only tree of what happened, and what of it is the conversation now (SES sections 3 to 9).
//
// Every record hangs on the one before it (the leaf); going back and writing there makes a branch. Nothing is ever
// changed or removed. What the agent works with is derived from the path root -> leaf, each time, and not stored.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/agent_message.h"
#include "ai/model.h"
#include "base/error.h"
#include "coding/session/session_file.h"
#include "coding/session/session_reader.h"

namespace tau::coding {

struct ModelReference {
  std::string provider;
  std::string id;
};

/// What the active path says (SES-80 to SES-87).
struct SessionContext {
  std::vector<agent::AgentMessage> messages;
  std::optional<ModelReference> model;
  std::string thinking_level = "off";
  bool has_thinking_level = false;  // an entry on the path sets it
};

class Session {
 public:
  /// Opens a session file. An existing file that is no session is refused and stays as it is (FF-28); an empty or
  /// missing one becomes a new session at this path. `cwd` is used when the file does not say one.
  static std::expected<std::shared_ptr<Session>, Error> open(const std::filesystem::path& path,
                                                             const std::filesystem::path& cwd,
                                                             SyncPolicy sync = SyncPolicy::kNever);
  /// A new session that will have a file in `folder`; nothing is written yet. `id`: empty for a new one.
  static std::shared_ptr<Session> create(const std::filesystem::path& folder, const std::filesystem::path& cwd,
                                         std::string id = {}, SyncPolicy sync = SyncPolicy::kNever);
  /// A session without a file.
  static std::shared_ptr<Session> in_memory(const std::filesystem::path& cwd, std::string id = {});

  const json::object& header() const { return header_; }
  std::string id() const;
  std::filesystem::path cwd() const;
  /// Where it is or will be kept; nothing for a session in memory.
  std::optional<std::filesystem::path> file() const;
  /// What could not be read of the file, with line numbers.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// What was noticed of another writer since the last call (FF-110).
  std::optional<std::string> take_notice();

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view id) const;
  const std::optional<std::string>& leaf() const { return leaf_; }
  /// Root first. Ends at an unknown parent and at the first id that comes again (SES-73, SES-74).
  std::vector<const Entry*> path() const;
  SessionContext context() const;

  // Each append hangs the entry on the leaf and moves the leaf to it. Until the session has a message that makes it
  // worth a file (see ensure_on_disk) entries wait in memory. On failure the entry is kept and written before the next
  // one (FF-26): tell the user, go on.
  std::expected<void, Error> append_message(const agent::AgentMessage& message);
  std::expected<void, Error> append_model_change(const ModelReference& model);
  std::expected<void, Error> append_thinking_level_change(ai::ThinkingLevel level);
  std::expected<void, Error> append_session_info(std::string_view name);

  /// Puts header and entries on disk. Called before the first request leaves, so that a crash cannot lose the prompt
  /// (FF-27); a start without a prompt makes no file.
  std::expected<void, Error> ensure_on_disk();

  /// The last name given, trimmed; nothing when it is empty.
  std::optional<std::string> name() const;

 private:
  Session(json::object header, std::vector<Entry> entries);

  /// Where id, parentId and timestamp stand: pi writes entries of extensions with them last.
  enum class KeyOrder { kPlaceFirst, kPlaceLast };
  std::expected<void, Error> append(json::object members, KeyOrder order = KeyOrder::kPlaceFirst);
  std::expected<void, Error> write(const Entry& entry);
  void index(std::size_t position);
  std::string new_entry_id() const;

  json::object header_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> by_id_;
  std::optional<std::string> leaf_;
  std::vector<std::string> warnings_;
  std::unique_ptr<SessionFile> file_;  // null in memory
  bool must_rewrite_ = false;          // migrated, and not rewritten yet
};

/// One line, without control characters, trimmed (FF-32).
std::string clean_session_name(std::string_view name);

}  // namespace tau::coding
