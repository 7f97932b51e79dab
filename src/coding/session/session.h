// A session: the append-only tree of what happened, and what of it is the conversation now (SES sections 3 to 9).
//
// Every record hangs on the one before it (the leaf); going back and writing there makes a branch. Nothing is ever
// changed or removed. What the agent works with is derived from the path root -> leaf, each time, and not stored.
//
// A session that is opened costs its index (entry_index.h); records are decoded when they are asked for. Messages that
// were appended or decoded are kept as long as they are part of the conversation, so a rebuilt context shares them with
// the one before.
#pragma once

#include <cstdint>
#include <deque>
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
#include "ai/usage.h"
#include "base/error.h"
#include "coding/session/entry_index.h"
#include "coding/session/session_context.h"
#include "coding/session/session_file.h"
#include "coding/session/session_loader.h"
#include "coding/session/session_tree.h"

namespace tau::coding {

/// What a compaction stored (SES section 6). `from_hook`: an extension made it; nothing: not said.
struct CompactionRecord {
  std::string summary;
  std::string first_kept_id;
  double tokens_before = 0;
  std::optional<json::value> details;
  std::optional<ai::Usage> usage;
  std::optional<bool> from_hook;
};

struct BranchSummaryRecord {
  std::string summary;
  std::optional<json::value> details;
  std::optional<ai::Usage> usage;
  std::optional<bool> from_hook;
};

class Session {
 public:
  /// Opens a session file, mends its end (SES-36) and brings an old one to version 3 (SES-40). An existing file that is
  /// no session is refused and stays as it is (FF-28); an empty or missing one becomes a new session at this path.
  /// `cwd` is used when the file does not say one. Of two sessions on one file in one process the second is told that
  /// it is not alone: let go of the first one before.
  static std::expected<std::shared_ptr<Session>, Error> open(const std::filesystem::path& path,
                                                             const std::filesystem::path& cwd,
                                                             SyncPolicy sync = SyncPolicy::kNever);
  /// A session file as it is, for reading: nothing is mended, no lock is taken, an old version is brought to version 3
  /// in memory only. What `open` would refuse is refused.
  static std::expected<std::shared_ptr<const Session>, Error> view(const std::filesystem::path& path,
                                                                   const std::filesystem::path& cwd);
  /// A new session that will have a file in `folder`; nothing is written yet. `id`: empty for a new one. `parent`: the
  /// file that it was made from.
  static std::shared_ptr<Session> create(const std::filesystem::path& folder, const std::filesystem::path& cwd,
                                         std::string id = {}, SyncPolicy sync = SyncPolicy::kNever,
                                         const std::optional<std::filesystem::path>& parent = {});
  /// A session without a file.
  static std::shared_ptr<Session> in_memory(const std::filesystem::path& cwd, std::string id = {});

  /// A session of these records (JSON texts, in file order), at `file` or in memory. Nothing is written yet.
  static std::shared_ptr<Session> from_records(json::object header, std::vector<std::string> records,
                                               const std::optional<std::filesystem::path>& file,
                                               SyncPolicy sync = SyncPolicy::kNever);

  const json::object& header() const { return header_; }
  std::string id() const;
  std::filesystem::path cwd() const;
  /// Works in another folder than the header says; the header stays (SES-101, SES-102).
  void override_cwd(std::filesystem::path cwd) { cwd_ = std::move(cwd); }
  /// Where it is or will be kept; nothing for a session in memory.
  std::optional<std::filesystem::path> file() const;
  /// Whether the file is there already.
  bool is_on_disk() const { return file_ && file_->exists(); }
  /// What could not be read of the file, with line numbers.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// What was noticed of another writer since the last call, in words for a person (FF-110).
  std::optional<std::string> take_notice();

  // ---- reading -------------------------------------------------------------------------------------------------

  /// All records, in file order. Numbers are valid until the next append.
  const EntryIndex& index() const { return index_; }
  /// The record with this id, decoded.
  std::optional<Entry> find(std::string_view id) const;
  /// What the next record hangs on: the id of the last record written or moved to; nothing before the first one.
  std::optional<std::string> leaf() const;
  std::optional<EntryNumber> leaf_number() const { return leaf_; }
  /// The id of the record appended last, also when it could not be written yet.
  std::optional<std::string> last_appended() const;
  /// Root to leaf.
  std::vector<EntryNumber> path() const;

  /// The conversation: decodes its part of the path.
  SessionContext context() const;
  /// The same without the messages, and how many they are: next to nothing is decoded.
  SessionSettings settings() const;
  std::size_t message_count() const;

  std::optional<std::string> name() const { return name_of(index_); }
  Labels labels() const { return labels_of(index_); }
  SessionTree tree() const { return tree_of(index_); }

  // ---- writing -------------------------------------------------------------------------------------------------
  // Each append hangs a record on the leaf and moves the leaf to it. The file is made by the first user or assistant
  // message (FF-27); until then records wait in memory. When a write fails the leaf stays, the record is kept, later
  // ones hang on it, and it is written before the next one (FF-26): tell the user, go on.

  std::expected<void, Error> append_message(const agent::AgentMessage& message);
  std::expected<void, Error> append_model_change(const ModelReference& model);
  std::expected<void, Error> append_thinking_level_change(ai::ThinkingLevel level);
  std::expected<void, Error> append_session_info(std::string_view name);
  /// The state of an extension: not part of the conversation.
  std::expected<void, Error> append_custom(std::string_view custom_type, std::optional<json::value> data);
  std::expected<void, Error> append_compaction(const CompactionRecord& compaction);
  /// An empty label clears. Fails for an unknown target, with nothing written (SES-78).
  std::expected<void, Error> append_label(std::string_view target_id, std::string_view label);

  /// Puts header and records on disk, and what could not be written before. Called before the first request leaves.
  std::expected<void, Error> ensure_on_disk();

  /// Moves the leaf; nothing is written (SES-79a). Fails for an unknown id.
  std::expected<void, Error> branch(std::string_view id);
  /// The next record is a new root.
  void reset_leaf();
  /// Moves the leaf to `id` (nothing: before the first record) and says there what was done on the branch that is left
  /// (SES-79b).
  std::expected<void, Error> branch_with_summary(const std::optional<std::string>& id,
                                                 const BranchSummaryRecord& summary);

 private:
  explicit Session(json::object header) : header_(std::move(header)) {}

  void adopt(LoadedSession loaded);
  /// Where id, parentId and timestamp stand: records of extensions have them last (SES-210).
  enum class KeyOrder { kPlaceFirst, kPlaceLast };
  std::expected<void, Error> append(EntryType type, json::object members, KeyOrder order = KeyOrder::kPlaceFirst,
                                    const agent::AgentMessage* message = nullptr);
  std::expected<void, Error> write_unwritten();
  std::expected<void, Error> write_whole();
  std::expected<void, Error> reload();
  void read_foreign(std::uint64_t begin, std::uint64_t end);
  std::string rebuilt_text(EntryNumber number) const;
  std::string new_entry_id() const;

  json::object header_;
  std::filesystem::path cwd_;
  std::unique_ptr<SessionFile> file_;  // null in memory; outlives the index's use of its descriptor
  EntryIndex index_;
  std::optional<EntryNumber> leaf_;
  std::optional<EntryNumber> tip_;     // what the next record hangs on: the leaf, or a record that waits
  std::deque<EntryNumber> unwritten_;  // whose write failed
  std::uint32_t next_line_ = 2;
  std::vector<std::string> warnings_;
  std::optional<std::string> notice_;
  bool sharing_reported_ = false;
  mutable std::unordered_map<EntryNumber, agent::AgentMessage> messages_;  // of the conversation
};

/// One line, without control characters, trimmed (FF-32).
std::string clean_session_name(std::string_view name);

/// A header of version 3 (SES-20).
json::object new_session_header(const std::filesystem::path& cwd, std::string id,
                                const std::optional<std::filesystem::path>& parent = {});

/// "2026-02-03T09-00-00-000Z_ID.jsonl" (SES-7).
std::string session_file_name(const json::object& header);

}  // namespace tau::coding
