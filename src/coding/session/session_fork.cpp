#include "coding/session/session_fork.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "coding/session/migration.h"
#include "coding/session/new_file.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

/// Records on their way into another file, each made the child of the one before.
class Chain {
 public:
  explicit Chain(const EntryIndex& index) : index_(index) {}

  void add(EntryNumber number) {
    json::value record = index_.decode(number);
    json::object* o = record.if_object();
    if (o == nullptr) return;  // damaged in its middle: what hangs on it hangs on its parent now
    const EntryHead& head = index_.head(number);
    bool changed = false;
    const json::value new_parent = parent();
    if (const json::value* old = o->if_contains("parentId"); old == nullptr || *old != new_parent) {
      (*o)["parentId"] = new_parent;
      changed = true;
    }
    if (head.type == EntryType::kCompaction) {
      const auto kept = id_key(o->if_contains("firstKeptEntryId"));
      const auto moved = kept ? moved_.find(*kept) : moved_.end();
      if (moved != moved_.end()) {
        (*o)["firstKeptEntryId"] = id_value(moved->second);
        changed = true;
      }
    }
    take(head.id, changed ? json::to_text(record) : std::string(index_.text(number)));
  }

  /// A record that is left out; a compaction that kept from it on keeps from the next one on.
  void leave_out(EntryNumber number) { left_out_.emplace_back(index_.head(number).id); }

  void add_label(const std::string& target, const Label& label) {
    std::string id = random_hex(8);
    while (index_.find(id))
      id = random_hex(8);
    const json::object record{{"type", "label"},
                              {"id", id},
                              {"parentId", parent()},
                              {"timestamp", label.timestamp},
                              {"targetId", id_value(target)},
                              {"label", label.text}};
    take(id, json::to_text(record));
  }

  std::vector<std::string> take_records() { return std::move(records_); }

 private:
  json::value parent() const { return records_.empty() ? json::value(nullptr) : id_value(last_); }

  void take(std::string_view id, std::string text) {
    for (std::string& left_out : left_out_)
      moved_.emplace(std::move(left_out), id);
    left_out_.clear();
    last_ = id;
    records_.push_back(std::move(text));
  }

  const EntryIndex& index_;
  std::vector<std::string> records_;
  std::string last_;  // id of the last record
  std::vector<std::string> left_out_;
  std::unordered_map<std::string, std::string> moved_;
};

std::expected<std::shared_ptr<Session>, Error> make_fork(const Session& source, std::vector<std::string> records,
                                                         const fs::path& folder) {
  const auto parent = source.file();
  json::object header = new_session_header(source.cwd(), {}, parent);
  std::optional<fs::path> file;
  if (parent) file = folder / session_file_name(header);
  auto session = Session::from_records(std::move(header), std::move(records), file);
  const EntryIndex& index = session->index();
  bool has_reply = false;
  for (EntryNumber n = 0; n < index.size() && !has_reply; ++n)
    has_reply = index.head(n).role == MessageRole::kAssistant;
  if (has_reply) {
    if (auto written = session->ensure_on_disk(); !written) return std::unexpected(std::move(written.error()));
  }
  return session;
}

std::string text_of_user(const Entry& entry) {
  const auto message = message_of(entry);
  const ai::UserMessage* user = message ? message->user() : nullptr;
  if (user == nullptr) return {};
  if (const auto* text = std::get_if<std::string>(&user->content)) return *text;
  std::string out;
  for (const ai::UserBlock& block : std::get<std::vector<ai::UserBlock>>(user->content)) {
    if (const auto* text = std::get_if<ai::TextContent>(&block)) out += text->text;
  }
  return out;
}

}  // namespace

std::expected<std::shared_ptr<Session>, Error> fork_at(const Session& source, std::string_view leaf_id,
                                                       const fs::path& folder) {
  const EntryIndex& index = source.index();
  const auto leaf = index.find(leaf_id);
  if (!leaf) return std::unexpected(error(fmt::format("Entry {} not found", leaf_id)));
  Chain chain(index);
  std::vector<std::string_view> ids;
  for (const EntryNumber n : index.path_to(*leaf)) {
    if (index.head(n).type == EntryType::kLabel) {
      chain.leave_out(n);
    } else {
      chain.add(n);
      ids.push_back(index.head(n).id);
    }
  }
  std::sort(ids.begin(), ids.end());
  const Labels labels = source.labels();
  for (const std::string& target : labels.order) {
    if (std::binary_search(ids.begin(), ids.end(), target)) chain.add_label(target, labels.by_target.at(target));
  }
  return make_fork(source, chain.take_records(), folder);
}

std::expected<ForkBefore, Error> fork_before(const Session& source, std::string_view entry_id, const fs::path& folder) {
  const auto entry = source.find(entry_id);
  if (!entry || entry->type != EntryType::kMessage || role_of(*entry) != MessageRole::kUser) {
    return std::unexpected(error("Invalid entry ID for forking"));
  }
  auto session = entry->parent_id && source.index().find(*entry->parent_id) ? fork_at(source, *entry->parent_id, folder)
                                                                            : make_fork(source, {}, folder);
  if (!session) return std::unexpected(std::move(session.error()));
  return ForkBefore{*std::move(session), text_of_user(*entry)};
}

std::expected<std::shared_ptr<Session>, Error> fork_file(const fs::path& source, const fs::path& target_cwd,
                                                         const fs::path& folder, std::string id) {
  auto loaded = load_session_text(source);
  if (!loaded) {
    return std::unexpected(
        error(fmt::format("Cannot fork: source session file is empty or invalid: {}", source.string())));
  }
  std::vector<std::string> records;
  records.reserve(loaded->index.size());
  for (EntryNumber n = 0; n < loaded->index.size(); ++n)
    records.emplace_back(loaded->index.text(n));
  json::object header = new_session_header(target_cwd, std::move(id), fs::absolute(source).lexically_normal());
  const fs::path file = folder / session_file_name(header);
  auto session = Session::from_records(std::move(header), std::move(records), file);
  if (auto written = session->ensure_on_disk(); !written) return std::unexpected(std::move(written.error()));
  return session;
}

std::string export_jsonl(const Session& session) {
  const json::object header{{"type", "session"},
                            {"version", kSessionVersion},
                            {"id", session.id()},
                            {"timestamp", iso_time(now_milliseconds())},
                            {"cwd", session.cwd().string()}};
  std::string out = json::to_text(header) + '\n';
  Chain chain(session.index());
  for (const EntryNumber n : session.path())
    chain.add(n);
  for (const std::string& record : chain.take_records()) {
    out += record;
    out += '\n';
  }
  return out;
}

std::expected<fs::path, Error> import_session(const fs::path& file, const fs::path& folder) {
  fs::path source = fs::absolute(file).lexically_normal();
  std::error_code ignored;
  if (!fs::exists(source, ignored)) return std::unexpected(error(fmt::format("File not found: {}", source.string())));
  if (!read_session_header(source)) {
    return std::unexpected(error(fmt::format("Session file is not a valid pi session: {}", source.string())));
  }
  if (fs::equivalent(source.parent_path(), folder, ignored)) return source;
  const auto bytes = read_file(source);
  if (!bytes) return std::unexpected(bytes.error());
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return std::unexpected(error(fmt::format("cannot make {}: {}", folder.string(), failure.message())));
  return write_new_file(folder, source.filename(), *bytes);
}

}  // namespace tau::coding
