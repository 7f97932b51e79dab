#include "coding/session/session.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ai/json_members.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "coding/roles/custom.h"
#include "coding/session/migration.h"
#include "coding/session/record_scanner.h"

namespace tau::coding {

namespace fs = std::filesystem;

json::object new_session_header(const fs::path& cwd, std::string id, const std::optional<fs::path>& parent) {
  json::object header{{"type", "session"},
                      {"version", kSessionVersion},
                      {"id", id.empty() ? uuid_v7() : std::move(id)},
                      {"timestamp", iso_time(now_milliseconds())},
                      {"cwd", cwd.string()}};
  if (parent) header.emplace("parentSession", parent->string());
  return header;
}

std::string session_file_name(const json::object& header) {
  std::string time = json::string_or(header, "timestamp");
  std::replace_if(time.begin(), time.end(), [](char c) { return c == ':' || c == '.'; }, '-');
  return fmt::format("{}_{}.jsonl", time, json::string_or(header, "id"));
}

std::string clean_session_name(std::string_view name) {
  return std::string(utf8::trim(printable_line(name)));
}

// ---- opening -----------------------------------------------------------------------------------------------------

void Session::adopt(LoadedSession loaded) {
  header_ = std::move(loaded.header);
  index_ = std::move(loaded.index);
  warnings_ = std::move(loaded.warnings);
  next_line_ = loaded.next_line;
  messages_.clear();
  // The last record is the leaf (SES-71); one without an id cannot be hung on and does not count (SES-72).
  leaf_.reset();
  for (std::size_t n = index_.size(); n-- > 0 && !leaf_;)
    leaf_ = index_.find(index_.head(static_cast<EntryNumber>(n)).id);
  tip_ = leaf_;
}

std::expected<std::shared_ptr<Session>, Error> Session::open(const fs::path& path, const fs::path& cwd,
                                                             SyncPolicy sync) {
  std::shared_ptr<Session> session(new Session(new_session_header(cwd, {})));
  session->cwd_ = cwd;
  session->file_ = std::make_unique<SessionFile>(path, sync);
  std::error_code ignored;
  if (!fs::exists(path, ignored) && !fs::is_symlink(path, ignored)) return session;  // SES-30

  SessionFile& file = *session->file_;
  if (auto opened = file.open(); !opened) return std::unexpected(std::move(opened.error()));
  if (::lseek(file.descriptor(), 0, SEEK_END) == 0) {  // SES-31
    auto written = file.append(json::to_text(session->header_));
    if (!written) return std::unexpected(std::move(written.error()));
    return session;
  }
  auto loaded = load_session(file.descriptor(), path);
  if (loaded && loaded->rewritten) {
    auto rewritten = file.rewrite(*loaded->rewritten);
    if (!rewritten) return std::unexpected(std::move(rewritten.error()));
    std::vector<std::string> warnings = std::move(loaded->warnings);
    loaded = load_session(file.descriptor(), path);
    if (loaded) loaded->warnings = std::move(warnings);
  }
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  file.set_known_end(loaded->end);
  // Where the line end cannot be written now it is written before the next record.
  if (!loaded->ends_with_newline && end_torn_line(path)) {
    file.set_known_end(loaded->end + 1);
    ++loaded->next_line;
  }
  session->adopt(*std::move(loaded));
  if (const auto stored = json::find_string(session->header_, "cwd"); stored && !stored->empty()) {
    session->cwd_ = std::string(*stored);
  }
  if (file.is_shared()) {
    session->sharing_reported_ = true;
    session->notice_ = fmt::format(
        "Another program has the session {} open. Both can go on; what each of them adds is a branch of its own.",
        path.string());
  }
  return session;
}

std::expected<std::shared_ptr<const Session>, Error> Session::view(const fs::path& path, const fs::path& cwd) {
  std::shared_ptr<Session> session(new Session(new_session_header(cwd, {})));
  session->cwd_ = cwd;
  session->file_ = std::make_unique<SessionFile>(path, SyncPolicy::kNever);
  SessionFile& file = *session->file_;
  if (auto opened = file.open(SessionFile::Purpose::kReading); !opened) {
    return std::unexpected(std::move(opened.error()));
  }
  if (::lseek(file.descriptor(), 0, SEEK_END) == 0) return session;
  auto loaded = load_session(file.descriptor(), path);
  if (loaded && loaded->rewritten) loaded = load_session_text(path);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  session->adopt(*std::move(loaded));
  if (const auto stored = json::find_string(session->header_, "cwd"); stored && !stored->empty()) {
    session->cwd_ = std::string(*stored);
  }
  return session;
}

std::shared_ptr<Session> Session::create(const fs::path& folder, const fs::path& cwd, std::string id, SyncPolicy sync,
                                         const std::optional<fs::path>& parent) {
  std::shared_ptr<Session> session(new Session(new_session_header(cwd, std::move(id), parent)));
  session->cwd_ = cwd;
  session->file_ = std::make_unique<SessionFile>(folder / session_file_name(session->header_), sync);
  return session;
}

std::shared_ptr<Session> Session::in_memory(const fs::path& cwd, std::string id) {
  std::shared_ptr<Session> session(new Session(new_session_header(cwd, std::move(id))));
  session->cwd_ = cwd;
  return session;
}

std::shared_ptr<Session> Session::from_records(json::object header, std::vector<std::string> records,
                                               const std::optional<fs::path>& file, SyncPolicy sync) {
  LoadedSession loaded;
  for (std::string& record : records) {
    if (const auto head = quick_head(record)) {
      loaded.index.add(*head, std::move(record));
      continue;
    }
    const Entry entry = entry_from(json::parse(record).value_or(nullptr));
    EntryHead head{entry.type, MessageRole::kNone, {}, {}, entry.timestamp};
    if (entry.id) head.id = *entry.id;
    if (entry.parent_id) head.parent = *entry.parent_id;
    if (entry.type == EntryType::kMessage) head.role = role_of(entry);
    loaded.index.add(head, std::move(record));
  }
  loaded.header = std::move(header);
  std::shared_ptr<Session> session(new Session({}));
  session->adopt(std::move(loaded));
  session->cwd_ = json::string_or(session->header_, "cwd");
  if (file) session->file_ = std::make_unique<SessionFile>(*file, sync);
  return session;
}

// ---- reading -----------------------------------------------------------------------------------------------------

std::string Session::id() const {
  return json::string_or(header_, "id");
}

fs::path Session::cwd() const {
  return cwd_;
}

std::optional<fs::path> Session::file() const {
  return file_ ? std::optional(file_->path()) : std::nullopt;
}

std::optional<std::string> Session::take_notice() {
  return std::exchange(notice_, std::nullopt);
}

std::optional<Entry> Session::find(std::string_view id) const {
  const auto number = index_.find(id);
  return number ? std::optional(index_.entry(*number)) : std::nullopt;
}

std::optional<std::string> Session::leaf() const {
  return leaf_ ? std::optional(std::string(index_.head(*leaf_).id)) : std::nullopt;
}

std::optional<std::string> Session::last_appended() const {
  return tip_ ? std::optional(std::string(index_.head(*tip_).id)) : std::nullopt;
}

std::vector<EntryNumber> Session::path() const {
  return leaf_ ? index_.path_to(*leaf_) : std::vector<EntryNumber>{};
}

SessionSettings Session::settings() const {
  return settings_of(index_, path());
}

std::size_t Session::message_count() const {
  return count_messages(index_, context_entries(index_, path()));
}

SessionContext Session::context() const {
  const std::vector<EntryNumber> whole = path();
  SessionContext context{settings_of(index_, whole), {}};
  const std::vector<EntryNumber> conversation = context_entries(index_, whole);
  std::unordered_map<EntryNumber, agent::AgentMessage> kept;
  kept.reserve(conversation.size());
  context.messages.reserve(conversation.size());
  for (const EntryNumber n : conversation) {
    if (const auto known = messages_.find(n); known != messages_.end()) {
      context.messages.push_back(known->second);
    } else if (auto message = message_of(index_.entry(n))) {
      context.messages.push_back(*std::move(message));
    } else {
      continue;
    }
    kept.emplace(n, context.messages.back());
  }
  messages_ = std::move(kept);
  return context;
}

// ---- writing -----------------------------------------------------------------------------------------------------

std::string Session::new_entry_id() const {
  for (int attempt = 0; attempt < 100; ++attempt) {  // SES-11
    std::string id = random_hex(8);
    if (!index_.find(id)) return id;
  }
  return uuid_v4();
}

std::expected<void, Error> Session::append(EntryType type, json::object members, KeyOrder order,
                                           const agent::AgentMessage* message) {
  EntryHead head;
  const std::string id = new_entry_id();
  const std::string time = iso_time(now_milliseconds());
  head.type = type;
  head.id = id;
  if (tip_) head.parent = index_.head(*tip_).id;
  head.timestamp = time;
  if (type == EntryType::kMessage) head.role = message_role_from(message->role());

  json::object o{{"type", to_string(type)}};
  const auto put_place = [&] {
    o.emplace("id", id);
    o.emplace("parentId", tip_ ? id_value(head.parent) : json::value(nullptr));
    o.emplace("timestamp", time);
  };
  if (order == KeyOrder::kPlaceFirst) put_place();
  for (auto& [key, member] : members)
    o.emplace(key, std::move(member));
  if (order == KeyOrder::kPlaceLast) put_place();

  std::string text = json::to_text(o);
  o = {};  // of a long answer not twice in memory while it is written
  const EntryNumber number = index_.add(head, std::move(text));
  if (message != nullptr) messages_.emplace(number, *message);
  tip_ = number;
  if (file_ && file_->exists()) {
    unwritten_.push_back(number);
    return write_unwritten();
  }
  leaf_ = number;
  const bool is_worth_a_file = head.role == MessageRole::kUser || head.role == MessageRole::kAssistant;
  return file_ && is_worth_a_file ? write_whole() : std::expected<void, Error>{};
}

std::expected<void, Error> Session::ensure_on_disk() {
  if (!file_) return {};
  return file_->exists() ? write_unwritten() : write_whole();
}

std::expected<void, Error> Session::write_whole() {
  std::string text = json::to_text(header_) + '\n';
  std::vector<std::pair<std::uint64_t, std::size_t>> places;  // offset and length
  places.reserve(index_.size());
  for (EntryNumber n = 0; n < index_.size(); ++n) {
    const std::string_view record = index_.text(n);
    places.emplace_back(text.size(), record.size());
    text += record;
    text += '\n';
  }
  if (auto created = file_->create(text); !created) return created;
  index_.read_from(file_->descriptor());
  for (EntryNumber n = 0; n < index_.size(); ++n)
    index_.is_in_file(n, places[n].first, places[n].second);
  next_line_ = static_cast<std::uint32_t>(index_.size()) + 2;
  if (!unwritten_.empty()) leaf_ = tip_;
  unwritten_.clear();
  return {};
}

std::expected<void, Error> Session::write_unwritten() {
  switch (file_->state()) {
    case SessionFile::State::kOurs:
      break;
    case SessionFile::State::kVanished:  // the descriptor still has the bytes
      return write_whole();
    case SessionFile::State::kReplaced:
    case SessionFile::State::kCut:
      if (auto reloaded = reload(); !reloaded) return reloaded;
  }
  while (!unwritten_.empty()) {
    const EntryNumber number = unwritten_.front();
    const std::string line(index_.text(number));
    const auto written = file_->append(line);
    if (!written) return std::unexpected(written.error());
    index_.is_in_file(number, written->offset, line.size());
    unwritten_.pop_front();
    const std::optional<EntryNumber> parent = index_.find(index_.head(number).parent);
    if (parent == leaf_) leaf_ = number;
    if (written->foreign_begin < written->foreign_end) read_foreign(written->foreign_begin, written->foreign_end);
    ++next_line_;
  }
  if (!sharing_reported_ && file_->is_shared()) {
    sharing_reported_ = true;
    notice_ = fmt::format("Another program has the session {} open too. What it adds is a branch of its own.",
                          file_->path().string());
  }
  return {};
}

void Session::read_foreign(std::uint64_t begin, std::uint64_t end) {
  TextReader reader(file_->descriptor());
  const std::string text(reader.read(begin, static_cast<std::uint32_t>(end - begin)));
  const std::size_t before = index_.size();
  RecordScanner scanner(
      [this](const ScannedRecord& record) {
        if (record.head.type != EntryType::kHeader) index_.add_from_file(record);
      },
      begin, next_line_);
  scanner.scan_text(text);
  next_line_ = scanner.next_line();
  for (std::string& warning : scanner.take_warnings())
    warnings_.push_back(std::move(warning));
  if (sharing_reported_ || index_.size() == before) return;
  sharing_reported_ = true;
  notice_ = fmt::format("Another program writes to the session {}. Its records and yours are branches of one tree.",
                        file_->path().string());
}

/// A message whose bytes are gone from the file, while the conversation still has it; else empty.
std::string Session::rebuilt_text(EntryNumber number) const {
  const auto known = messages_.find(number);
  const EntryHead& head = index_.head(number);
  if (known == messages_.end() || head.type != EntryType::kMessage) return {};
  json::object o{{"type", "message"}, {"id", id_value(head.id)}};
  o["parentId"] = head.parent.data() != nullptr ? id_value(head.parent) : json::value(nullptr);
  o["timestamp"] = head.timestamp;
  o["message"] = known->second.to_json();
  return json::to_text(o);
}

/// The file under our name is another one, or a part of it is gone. What is there now counts; of our own path what is
/// missing there is written again.
std::expected<void, Error> Session::reload() {
  const auto refuse = [&](std::string_view why) {
    return std::unexpected(
        error(fmt::format("the session file {} was replaced by another program and {}; this session "
                          "is kept in memory only",
                          file_->path().string(), why)));
  };
  auto file = std::make_unique<SessionFile>(file_->path(), file_->sync());
  if (auto opened = file->open(); !opened) return opened;
  auto loaded = load_session(file->descriptor(), file->path());
  if (!loaded) return refuse("is no session now");
  if (json::find_string(loaded->header, "id") != json::find_string(header_, "id")) return refuse("is another session");
  if (loaded->rewritten) return refuse("is of an old version");
  file->set_known_end(loaded->end);

  EntryIndex& index = loaded->index;
  std::deque<EntryNumber> unwritten;
  std::vector<EntryNumber> wanted = tip_ ? index_.path_to(*tip_) : std::vector<EntryNumber>{};
  wanted.insert(wanted.end(), unwritten_.begin(), unwritten_.end());
  std::unordered_map<std::string, std::string> moved;  // records whose text is gone -> what stands in for them
  for (const EntryNumber n : wanted) {
    EntryHead head = index_.head(n);
    if (index.find(head.id)) continue;
    std::string text(index_.text(n));
    if (!json::parse(text)) text = rebuilt_text(n);
    if (text.empty()) {
      const auto above = moved.find(std::string(head.parent));
      moved.emplace(head.id, above != moved.end() ? above->second : std::string(head.parent));
      continue;
    }
    if (const auto parent = moved.find(std::string(head.parent)); parent != moved.end()) {
      json::value record = *json::parse(text);
      head.parent = parent->second.empty() ? std::string_view() : std::string_view(parent->second);
      record.as_object()["parentId"] = parent->second.empty() ? json::value(nullptr) : id_value(parent->second);
      text = json::to_text(record);
    }
    unwritten.push_back(index.add(head, std::move(text)));
  }
  const auto again = [&](std::optional<EntryNumber> n) -> std::optional<EntryNumber> {
    if (!n) return std::nullopt;
    const auto stand_in = moved.find(std::string(index_.head(*n).id));
    return index.find(stand_in != moved.end() ? std::string_view(stand_in->second) : index_.head(*n).id);
  };
  const std::optional<EntryNumber> tip = again(tip_);
  std::optional<EntryNumber> leaf = again(leaf_);
  if (leaf && !unwritten.empty()) leaf = index.find(index.head(unwritten.front()).parent);
  index_ = std::move(index);
  file_ = std::move(file);
  tip_ = tip;
  leaf_ = leaf;
  unwritten_ = std::move(unwritten);
  next_line_ = loaded->next_line;
  messages_.clear();
  notice_ =
      fmt::format("The session file {} was changed by another program; it was read again.", file_->path().string());
  return {};
}

std::expected<void, Error> Session::append_message(const agent::AgentMessage& message) {
  if (const auto* custom = message.as<CustomMessage>()) {  // SE-2
    json::object stored = to_json(*custom);
    stored.stable_erase(stored.find("role"));
    stored.stable_erase(stored.find("timestamp"));
    return append(EntryType::kCustomMessage, std::move(stored), KeyOrder::kPlaceLast, &message);
  }
  json::object members;
  members.emplace("message", message.to_json());  // moved: a braced list would copy the whole message
  return append(EntryType::kMessage, std::move(members), KeyOrder::kPlaceFirst, &message);
}

std::expected<void, Error> Session::append_model_change(const ModelReference& model) {
  return append(EntryType::kModelChange, {{"provider", model.provider}, {"modelId", model.id}});
}

std::expected<void, Error> Session::append_thinking_level_change(ai::ThinkingLevel level) {
  return append(EntryType::kThinkingLevelChange, {{"thinkingLevel", ai::to_string(level)}});
}

std::expected<void, Error> Session::append_session_info(std::string_view name) {
  return append(EntryType::kSessionInfo, {{"name", clean_session_name(name)}});
}

std::expected<void, Error> Session::append_custom(std::string_view custom_type, std::optional<json::value> data) {
  json::object o{{"customType", custom_type}};
  ai::put(o, "data", data);
  return append(EntryType::kCustom, std::move(o), KeyOrder::kPlaceLast);
}

std::expected<void, Error> Session::append_compaction(const CompactionRecord& compaction) {
  json::object o{{"summary", compaction.summary},
                 {"firstKeptEntryId", id_value(compaction.first_kept_id)},
                 {"tokensBefore", json::number(compaction.tokens_before)}};
  ai::put(o, "details", compaction.details);
  if (compaction.usage) o.emplace("usage", ai::to_json(*compaction.usage));
  ai::put(o, "fromHook", compaction.from_hook);
  return append(EntryType::kCompaction, std::move(o));
}

std::expected<void, Error> Session::append_label(std::string_view target_id, std::string_view label) {
  if (!index_.find(target_id)) return std::unexpected(error(fmt::format("Entry {} not found", target_id)));
  json::object o{{"targetId", id_value(target_id)}};
  if (!label.empty()) o.emplace("label", label);  // SES-212
  return append(EntryType::kLabel, std::move(o));
}

std::expected<void, Error> Session::branch(std::string_view id) {
  const auto number = index_.find(id);
  if (!number) return std::unexpected(error(fmt::format("Entry {} not found", id)));
  leaf_ = tip_ = number;
  return {};
}

void Session::reset_leaf() {
  leaf_.reset();
  tip_.reset();
}

std::expected<void, Error> Session::branch_with_summary(const std::optional<std::string>& id,
                                                        const BranchSummaryRecord& summary) {
  json::value from("root");
  if (leaf_) from = id_value(index_.head(*leaf_).id);
  if (!id) {
    reset_leaf();
  } else if (auto moved = branch(*id); !moved) {
    return moved;
  }
  json::object o{{"fromId", std::move(from)}, {"summary", summary.summary}};
  ai::put(o, "details", summary.details);
  if (summary.usage) o.emplace("usage", ai::to_json(*summary.usage));
  ai::put(o, "fromHook", summary.from_hook);
  return append(EntryType::kBranchSummary, std::move(o));
}

}  // namespace tau::coding
