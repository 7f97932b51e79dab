#include "coding/session/session_loader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "coding/session/migration.h"
#include "coding/session/record_scanner.h"
#include "coding/session/session_file.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

/// Takes the records of a scan: the first one must be a header.
class Collector {
 public:
  Collector(LoadedSession& session, bool keep_texts) : session_(session), keep_texts_(keep_texts) {}

  void operator()(const ScannedRecord& record) {
    if (first_) {
      first_ = false;
      auto header = json::parse(record.text);
      json::object* o = header ? header->if_object() : nullptr;
      if (o == nullptr || record.head.type != EntryType::kHeader || !json::find_string(*o, "id")) return;
      session_.header = std::move(*o);
      is_session_ = true;
      return;
    }
    if (!is_session_ || record.head.type == EntryType::kHeader) return;  // SES-23
    if (keep_texts_) {
      session_.index.add(record.head, std::string(record.text));
    } else {
      session_.index.add_from_file(record);
    }
  }

  bool is_session() const { return is_session_; }

 private:
  LoadedSession& session_;
  bool keep_texts_;
  bool first_ = true;
  bool is_session_ = false;
};

/// Everything again, decoded: old files are migrated as a whole, second headers included.
std::expected<void, Error> migrate(int descriptor, LoadedSession& session) {
  std::vector<json::value> records;
  bool first = true;
  RecordScanner scanner([&](const ScannedRecord& record) {
    if (!std::exchange(first, false)) records.push_back(json::parse(record.text).value_or(nullptr));
  });
  if (auto scanned = scanner.scan_file(descriptor); !scanned) return scanned;
  std::erase_if(records, [](const json::value& v) { return v.is_null(); });  // damaged in their middle
  migrate_session(session.header, records);
  std::string text = json::to_text(session.header) + '\n';
  for (const json::value& record : records) {
    json::write(text, record);
    text += '\n';
  }
  session.rewritten = std::move(text);
  return {};
}

std::expected<LoadedSession, Error> load(int descriptor, const fs::path& path, bool keep_texts) {
  LoadedSession session;
  Collector collector(session, keep_texts);
  RecordScanner scanner(std::ref(collector));
  if (auto scanned = scanner.scan_file(descriptor); !scanned) {
    return std::unexpected(error(fmt::format("cannot read {}: {}", path.string(), scanned.error().message)));
  }
  if (!collector.is_session()) {
    return std::unexpected(error(fmt::format("Session file is not a valid pi session: {}", path.string())));
  }
  session.index.read_from(descriptor);
  session.warnings = scanner.take_warnings();
  session.ends_with_newline = scanner.ends_with_newline();
  session.end = scanner.end();
  session.next_line = scanner.next_line();
  if (session_version(session.header) < kSessionVersion) {
    if (auto migrated = migrate(descriptor, session); !migrated) return std::unexpected(migrated.error());
  }
  return session;
}

SessionDescriptor open_for_reading(const fs::path& path) {
  return SessionDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace

std::expected<LoadedSession, Error> load_session(int descriptor, const fs::path& path) {
  return load(descriptor, path, false);
}

std::expected<LoadedSession, Error> load_session_text(const fs::path& path) {
  const SessionDescriptor file = open_for_reading(path);
  if (!file) return std::unexpected(error(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno))));
  auto session = load(file.get(), path, true);
  if (!session) return session;
  session->index.read_from(-1);
  if (session->rewritten) {
    LoadedSession migrated;
    Collector collector(migrated, true);
    RecordScanner scanner(std::ref(collector));
    scanner.scan_text(*session->rewritten);
    migrated.warnings = std::move(session->warnings);
    return migrated;
  }
  return session;
}

std::optional<json::object> read_session_header(const fs::path& path) {
  const SessionDescriptor file = open_for_reading(path);
  if (!file) return std::nullopt;
  LoadedSession session;
  Collector collector(session, true);
  RecordScanner scanner(std::ref(collector));
  if (!scanner.scan_first_record(file.get()) || !collector.is_session()) return std::nullopt;
  return std::move(session.header);
}

}  // namespace tau::coding
