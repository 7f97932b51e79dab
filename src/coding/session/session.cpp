#include "coding/session/session.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "coding/roles/branch_summary.h"
#include "coding/roles/compaction_summary.h"
#include "coding/roles/convert_to_llm.h"
#include "coding/roles/custom.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

json::object new_header(const fs::path& cwd, std::string id) {
  return {{"type", "session"},
          {"version", 3},
          {"id", id.empty() ? uuid_v7() : std::move(id)},
          {"timestamp", iso_time(now_milliseconds())},
          {"cwd", cwd.string()}};
}

ai::Milliseconds time_of(const Entry& entry) {
  return parse_iso_time(json::string_or(entry.object(), "timestamp")).value_or(0);
}

/// Messages that one entry contributes to the conversation (SES-86).
void add_messages(const Entry& entry, std::vector<agent::AgentMessage>& out) {
  const json::object& o = entry.object();
  if (entry.type == "message") {
    const json::object* message = json::find_object(o, "message");
    if (message != nullptr) out.push_back(coding_roles().read(*message));  // a null message is skipped (SES-88)
  } else if (entry.type == "custom_message") {
    CustomMessage message;
    message.custom_type = json::string_or(o, "customType");
    if (const auto text = json::find_string(o, "content")) {
      message.content = std::string(*text);
    } else if (const json::array* blocks = json::find_array(o, "content")) {
      message.content = ai::user_blocks_from_json(*blocks);
    }
    message.display = json::bool_or(o, "display");
    if (const json::value* details = json::find(o, "details")) message.details = *details;
    message.timestamp = time_of(entry);
    out.push_back(agent::AgentMessage::of(std::move(message)));
  } else if (entry.type == "branch_summary") {
    BranchSummary message;
    message.summary = json::string_or(o, "summary");
    if (message.summary.empty()) return;
    if (const auto from = json::find_string(o, "fromId")) message.from_id = std::string(*from);
    message.timestamp = time_of(entry);
    out.push_back(agent::AgentMessage::of(std::move(message)));
  } else if (entry.type == "compaction") {
    CompactionSummary message;
    message.summary = json::string_or(o, "summary");
    message.tokens_before = json::number_or(o, "tokensBefore");
    message.timestamp = time_of(entry);
    out.push_back(agent::AgentMessage::of(std::move(message)));
  }
}

/// Entries that make up the context: all of the path, or from the latest compaction on, with what it kept (SES-82,
/// SES-83).
std::vector<const Entry*> context_entries(const std::vector<const Entry*>& path) {
  const auto last = std::find_if(path.rbegin(), path.rend(), [](const Entry* e) { return e->type == "compaction"; });
  if (last == path.rend()) return path;
  const auto compaction = std::prev(last.base());
  std::vector<const Entry*> out{*compaction};
  const std::string first_kept = json::string_or((*compaction)->object(), "firstKeptEntryId");
  const auto kept =
      std::find_if(path.begin(), compaction, [&](const Entry* e) { return e->id && *e->id == first_kept; });
  out.insert(out.end(), kept, compaction);
  out.insert(out.end(), std::next(compaction), path.end());
  return out;
}

}  // namespace

Session::Session(json::object header, std::vector<Entry> entries)
    : header_(std::move(header)), entries_(std::move(entries)) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].type != "session") index(i);
  }
}

void Session::index(std::size_t position) {
  const Entry& entry = entries_[position];
  if (!entry.id) return;
  by_id_[*entry.id] = position;  // of equal ids the later one counts (SES-70)
  leaf_ = *entry.id;             // the last entry of the file is the leaf (SES-71)
}

std::expected<std::shared_ptr<Session>, Error> Session::open(const fs::path& path, const fs::path& cwd,
                                                             SyncPolicy sync) {
  std::error_code failed;
  const bool exists = fs::exists(path, failed);
  std::shared_ptr<Session> session;
  std::uint64_t size = 0;
  if (exists) {
    auto bytes = read_file(path);
    if (!bytes) return std::unexpected(std::move(bytes.error()));
    size = bytes->size();
    if (size > 0) {
      auto text = read_session(*bytes);
      if (!text) {
        return std::unexpected(error(
            fmt::format("{} is not a session file: {}. It was left as it is.", path.string(), text.error().message)));
      }
      session.reset(new Session(std::move(text->header), std::move(text->entries)));
      session->warnings_ = std::move(text->warnings);
      session->must_rewrite_ = text->migrated;
    }
  }
  const bool is_new = !session;
  if (is_new) session.reset(new Session(new_header(cwd, {}), {}));
  Session* raw = session.get();
  session->file_ = std::make_unique<SessionFile>(
      path, size, exists, [raw] { return write_session(raw->header_, raw->entries_); }, sync);
  // An empty file becomes a session with the first record: it is rewritten then.
  if (exists && is_new) session->must_rewrite_ = true;
  return session;
}

std::shared_ptr<Session> Session::create(const fs::path& folder, const fs::path& cwd, std::string id, SyncPolicy sync) {
  std::shared_ptr<Session> session(new Session(new_header(cwd, std::move(id)), {}));
  std::string time = json::string_or(session->header_, "timestamp");
  std::replace_if(time.begin(), time.end(), [](char c) { return c == ':' || c == '.'; }, '-');
  Session* raw = session.get();
  session->file_ = std::make_unique<SessionFile>(
      folder / fmt::format("{}_{}.jsonl", time, session->id()), 0, false,
      [raw] { return write_session(raw->header_, raw->entries_); }, sync);
  return session;
}

std::shared_ptr<Session> Session::in_memory(const fs::path& cwd, std::string id) {
  return std::shared_ptr<Session>(new Session(new_header(cwd, std::move(id)), {}));
}

std::string Session::id() const {
  return json::string_or(header_, "id");
}
fs::path Session::cwd() const {
  return json::string_or(header_, "cwd");
}

std::optional<fs::path> Session::file() const {
  return file_ ? std::optional(file_->path()) : std::nullopt;
}
std::optional<std::string> Session::take_notice() {
  return file_ ? file_->take_notice() : std::nullopt;
}

const Entry* Session::find(std::string_view id) const {
  const auto it = by_id_.find(std::string(id));
  return it != by_id_.end() ? &entries_[it->second] : nullptr;
}

std::vector<const Entry*> Session::path() const {
  std::vector<const Entry*> path;
  std::unordered_set<std::string_view> seen;
  std::optional<std::string_view> at = leaf_;
  while (at && seen.insert(*at).second) {
    const Entry* entry = find(*at);
    if (entry == nullptr) break;
    path.push_back(entry);
    at = entry->parent_id;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

SessionContext Session::context() const {
  SessionContext context;
  const std::vector<const Entry*> whole = path();
  for (const Entry* entry : whole) {  // settings come from all of the path (SES-81)
    const json::object& o = entry->object();
    if (entry->type == "thinking_level_change") {
      context.thinking_level = json::string_or(o, "thinkingLevel", "off");
      context.has_thinking_level = true;
    } else if (entry->type == "model_change") {
      context.model = {json::string_or(o, "provider"), json::string_or(o, "modelId")};
    } else if (entry->type == "message") {
      const json::object* message = json::find_object(o, "message");
      if (message != nullptr && json::string_or(*message, "role") == "assistant") {
        context.model = {json::string_or(*message, "provider"), json::string_or(*message, "model")};
      }
    }
  }
  for (const Entry* entry : context_entries(whole))
    add_messages(*entry, context.messages);
  return context;
}

std::string Session::new_entry_id() const {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string id = random_hex(8);
    if (!by_id_.contains(id)) return id;
  }
  return uuid_v4();
}

std::expected<void, Error> Session::append(json::object members, KeyOrder order) {
  const auto put_place = [this](json::object& o) {
    o.emplace("id", new_entry_id());
    o.emplace("parentId", leaf_ ? json::value(*leaf_) : json::value(nullptr));
    o.emplace("timestamp", iso_time(now_milliseconds()));
  };
  json::object o{{"type", members.at("type")}};
  if (order == KeyOrder::kPlaceFirst) put_place(o);
  for (auto& [key, member] : members) o.emplace(key, std::move(member));
  if (order == KeyOrder::kPlaceLast) put_place(o);
  entries_.push_back(make_entry(std::move(o)));
  // A record whose write failed is written before the next one, so the next may hang on it (FF-26).
  index(entries_.size() - 1);
  return write(entries_.back());
}

std::expected<void, Error> Session::write(const Entry& entry) {
  if (!file_) return {};
  if (must_rewrite_) {
    auto rewritten = file_->rewrite();
    if (rewritten) must_rewrite_ = false;
    return rewritten;
  }
  if (!file_->exists()) return {};  // waits for ensure_on_disk
  return file_->append(json::to_text(entry.source));
}

std::expected<void, Error> Session::ensure_on_disk() {
  if (!file_) return {};
  if (file_->exists()) return file_->write_waiting();
  return file_->create();
}

std::expected<void, Error> Session::append_message(const agent::AgentMessage& message) {
  if (const auto* custom = message.as<CustomMessage>()) {
    json::object stored = to_json(*custom);
    json::object o{{"type", "custom_message"}};
    for (const char* key : {"customType", "content", "display", "details"}) {
      if (json::value* member = stored.if_contains(key)) o.emplace(key, std::move(*member));
    }
    return append(std::move(o), KeyOrder::kPlaceLast);
  }
  return append({{"type", "message"}, {"message", message.to_json()}});
}

std::expected<void, Error> Session::append_model_change(const ModelReference& model) {
  return append({{"type", "model_change"}, {"provider", model.provider}, {"modelId", model.id}});
}

std::expected<void, Error> Session::append_thinking_level_change(ai::ThinkingLevel level) {
  return append({{"type", "thinking_level_change"}, {"thinkingLevel", ai::to_string(level)}});
}

std::expected<void, Error> Session::append_session_info(std::string_view name) {
  return append({{"type", "session_info"}, {"name", clean_session_name(name)}});
}

std::optional<std::string> Session::name() const {
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) {
    if (it->type != "session_info") continue;
    const std::string name(utf8::trim(json::string_or(it->object(), "name")));
    return name.empty() ? std::nullopt : std::optional(name);
  }
  return std::nullopt;
}

std::string clean_session_name(std::string_view name) {
  return std::string(utf8::trim(printable_line(name)));
}

}  // namespace tau::coding
