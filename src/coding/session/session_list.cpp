#include "coding/session/session_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "ai/message.h"
#include "base/files.h"
#include "base/utf8.h"
#include "coding/session/entry_index.h"
#include "coding/session/session_file.h"
#include "coding/session/session_tree.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

constexpr unsigned kMaxReaders = 10;

/// A message's text as the list shows it: the string, or the text blocks joined by blanks.
std::string text_of_message(const json::object& message) {
  if (const auto text = json::find_string(message, "content")) return std::string(*text);
  std::string out;
  const json::array* content = json::find_array(message, "content");
  if (content == nullptr) return out;
  bool first = true;
  for (const json::value& block : *content) {
    const json::object* o = block.if_object();
    if (o == nullptr || json::find_string(*o, "type") != "text") continue;
    if (!first) out += ' ';
    first = false;
    utf8::append_wtf8(out, json::string_or(*o, "text"));
  }
  return out;
}

/// Gathers what a list shows of the records of one file.
class Summary {
 public:
  explicit Summary(SessionInfo& info) : info_(info) {}

  /// Returns whether the file can be a session.
  bool header(const Entry& entry) {
    if (entry.type != EntryType::kHeader) return false;
    info_.id = json::string_or(entry.source, "id");
    info_.cwd = json::string_or(entry.source, "cwd");
    if (const auto parent = json::find_string(entry.source, "parentSession"))
      info_.parent_session = std::string(*parent);
    info_.created = entry_time(entry.timestamp);
    return true;
  }

  void message(const Entry& entry) {
    const json::object* message = entry.message();
    const MessageRole role = role_of(entry);
    if (message == nullptr || (role != MessageRole::kUser && role != MessageRole::kAssistant)) return;
    std::string text = text_of_message(*message);
    if (role == MessageRole::kUser && info_.first_message.empty()) info_.first_message = text;
    const auto time = json::find_number(*message, "timestamp");
    const std::int64_t at = time ? static_cast<std::int64_t>(*time) : entry_time(entry.timestamp).value_or(0);
    newest_ = std::max(newest_, at);
    if (text.empty()) return;
    if (!info_.all_text.empty()) info_.all_text += ' ';
    info_.all_text += text;
  }

  void name(const Entry& entry) {
    const std::string_view name = utf8::trim(json::find_string(entry.source, "name").value_or(""));
    info_.name = name.empty() ? std::nullopt : std::optional(std::string(name));
  }

  void finish(const fs::path& file) {
    if (info_.first_message.empty()) info_.first_message = "(no messages)";
    struct stat status{};
    if (newest_ > 0) {
      info_.modified = newest_;
    } else if (info_.created) {
      info_.modified = *info_.created;
    } else if (::stat(file.c_str(), &status) == 0) {
      info_.modified = status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1'000'000;
    }
  }

 private:
  SessionInfo& info_;
  std::int64_t newest_ = 0;
};

std::optional<SessionInfo> read_full(const fs::path& file) {
  const auto bytes = read_file(file);
  if (!bytes) return std::nullopt;
  SessionInfo info;
  info.path = file;
  Summary summary(info);
  bool first = true;
  bool is_session = false;
  RecordScanner scanner([&](const ScannedRecord& record) {
    if (first) {
      is_session = summary.header(entry_from(json::parse(record.text).value_or(nullptr)));
      first = false;
    } else if (is_session && record.head.type == EntryType::kMessage) {
      ++info.message_count;
      summary.message(entry_from(json::parse(record.text).value_or(nullptr)));
    } else if (is_session && record.head.type == EntryType::kSessionInfo) {
      summary.name(entry_from(json::parse(record.text).value_or(nullptr)));
    }
  });
  // Unlike a session that is opened, one that is listed may have CR for its line ends (SES-95).
  if (bytes->find('\n') == std::string::npos && bytes->find('\r') != std::string::npos) {
    std::string text = *bytes;
    std::replace(text.begin(), text.end(), '\r', '\n');
    scanner.scan_text(text);
  } else {
    scanner.scan_text(*bytes);
  }
  if (!is_session) return std::nullopt;
  summary.finish(file);
  return info;
}

std::optional<SessionInfo> read_head(const fs::path& file) {
  constexpr int kLastMessages = 3;  // times go up nearly always: the newest is one of these
  const SessionDescriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!in) return std::nullopt;
  SessionInfo info;
  info.path = file;
  Summary summary(info);
  EntryIndex index;
  index.read_from(in.get());
  bool first = true;
  bool is_session = false;
  RecordScanner scanner([&](const ScannedRecord& record) {
    if (first) {
      is_session = summary.header(entry_from(json::parse(record.text).value_or(nullptr)));
      first = false;
    } else if (is_session) {
      index.add_from_file(record);
    }
  });
  if (!scanner.scan_file(in.get()) || !is_session) return std::nullopt;
  const auto count = static_cast<EntryNumber>(index.size());
  for (EntryNumber n = 0; n < count; ++n) {
    if (index.head(n).type != EntryType::kMessage) continue;
    ++info.message_count;
    if (info.first_message.empty() && index.head(n).role == MessageRole::kUser) summary.message(index.entry(n));
  }
  int left = kLastMessages;
  for (EntryNumber n = count; n-- > 0 && left > 0;) {
    const MessageRole role = index.head(n).role;
    if (role != MessageRole::kUser && role != MessageRole::kAssistant) continue;
    summary.message(index.entry(n));
    --left;
  }
  info.all_text.clear();
  info.name = name_of(index);
  summary.finish(file);
  return info;
}

std::vector<fs::path> session_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (auto it = fs::directory_iterator(folder, failed); !failed && it != fs::directory_iterator();
       it.increment(failed)) {
    if (it->path().filename().string().ends_with(".jsonl")) files.push_back(it->path());
  }
  return files;
}

std::vector<SessionInfo> read_all(const std::vector<fs::path>& files, const ListOptions& options) {
  std::vector<std::optional<SessionInfo>> found(files.size());
  std::atomic<std::size_t> next = 0;
  std::mutex reporting;
  std::size_t loaded = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      if (options.cancelled != nullptr && options.cancelled->load()) return;
      found[i] = read_session_info(files[i], options.detail);
      const std::lock_guard lock(reporting);
      ++loaded;
      if (options.progress) options.progress(loaded, files.size());
    }
  };
  const unsigned readers = std::clamp(std::thread::hardware_concurrency(), 1U, kMaxReaders);
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < readers && i < files.size(); ++i)
      others.emplace_back(work);
    work();
  }
  std::vector<SessionInfo*> order;
  for (std::optional<SessionInfo>& info : found) {
    if (!info) continue;
    if (options.only_cwd &&
        resolve_path(info->cwd, *options.only_cwd) != resolve_path(options.only_cwd->string(), "/")) {
      continue;
    }
    order.push_back(&*info);
  }
  // Of equal times the one that was found first: it stands before the other in `found`.
  std::sort(order.begin(), order.end(), [](const SessionInfo* a, const SessionInfo* b) {
    return a->modified != b->modified ? a->modified > b->modified : std::less<>()(a, b);
  });
  std::vector<SessionInfo> infos;
  infos.reserve(order.size());
  for (SessionInfo* info : order)
    infos.push_back(std::move(*info));
  return infos;
}

}  // namespace

std::optional<SessionInfo> read_session_info(const fs::path& file, InfoDetail detail) {
  return detail == InfoDetail::kFull ? read_full(file) : read_head(file);
}

std::vector<SessionInfo> list_sessions(const fs::path& folder, const ListOptions& options) {
  return read_all(session_files(folder), options);
}

std::vector<SessionInfo> list_all_sessions(const fs::path& root, const ListOptions& options) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (auto it = fs::directory_iterator(root, failed); !failed && it != fs::directory_iterator();
       it.increment(failed)) {
    std::error_code ignored;
    if (!it->is_directory(ignored)) continue;  // follows links
    std::vector<fs::path> more = session_files(it->path());
    files.insert(files.end(), more.begin(), more.end());
  }
  return read_all(files, options);
}

}  // namespace tau::coding
