#include "coding/session/raw_records.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "coding/session/record_scanner.h"
#include "coding/session/session_file.h"

namespace tau::coding {

std::expected<RawRecords, Error> read_raw_records(const std::filesystem::path& file) {
  const SessionDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor) {
    return std::unexpected(error(fmt::format("cannot read {}: {}", file.string(), std::strerror(errno))));
  }
  RawRecords found;
  bool first = true;
  bool is_session = false;
  RecordScanner scanner([&](const ScannedRecord& scanned) {
    if (!first && !is_session) return;
    const EntryHead& head = scanned.head;
    RawRecord record{scanned.line,
                     head.type,
                     std::string(head.id),
                     std::string(head.parent),
                     head.id.data() != nullptr,
                     head.parent.data() != nullptr,
                     std::string(scanned.text)};
    if (std::exchange(first, false)) {
      const auto header = json::parse(record.text);
      is_session = head.type == EntryType::kHeader && header && header->is_object() &&
                   json::find_string(header->get_object(), "id");
      found.header = std::move(record);
      return;
    }
    if (record.has_id && record.type != EntryType::kHeader) found.by_id[record.id].push_back(found.records.size());
    found.records.push_back(std::move(record));
  });
  scanner.keep_all_warnings();
  if (auto scanned = scanner.scan_file(descriptor.get()); !scanned) {
    return std::unexpected(error(fmt::format("cannot read {}: {}", file.string(), scanned.error().message)));
  }
  if (!is_session) {
    return std::unexpected(error(fmt::format("Session file is not a valid pi session: {}", file.string())));
  }
  found.warnings = scanner.take_warnings();
  found.ends_with_newline = scanner.ends_with_newline();
  found.last_line = scanner.next_line() - (found.ends_with_newline ? 1 : 0);
  return found;
}

}  // namespace tau::coding
