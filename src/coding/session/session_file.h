// Appending to a session file so that nothing that was written is ever lost (SES-50 to SES-55, FF-23, FF-26, FF-110).
//
//   - One record is one write(2) of a whole line, in append mode: records of two programs never mix.
//   - Before a record the file's last byte is looked at: behind a torn line a line end comes first.
//   - A write that fails is taken back if nobody wrote behind it; its record waits and is written before the next one.
//   - A file that has vanished is written anew from memory.
//   - A second writer is noticed: by a lock that this program holds on the file while it has it open (pi takes none and
//     is not disturbed; the lock of a dead process is gone), and by growth that is not ours.
//
// The descriptor is opened for each record and closed again, as pi does, so that a file that was replaced is written to
// under its name. Records are not synced to the disk one by one unless asked to (SyncPolicy): what was written survives
// a crash of the program at once, and a crash of the machine after the kernel's usual delay.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tau::coding {

enum class SyncPolicy { kNever, kEachRecord };

class SessionFile {
 public:
  /// `size`: bytes of the file as it was read; 0 for one that does not exist yet.
  /// `whole_text`: the bytes of the complete file, for when it is created.
  SessionFile(std::filesystem::path path, std::uint64_t size, bool exists, std::function<std::string()> whole_text,
              SyncPolicy sync);
  ~SessionFile();
  SessionFile(const SessionFile&) = delete;
  SessionFile& operator=(const SessionFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool exists() const { return exists_; }

  /// Creates the file with everything so far in it; does nothing when it exists. Never overwrites a file of this name.
  std::expected<void, Error> create();

  /// Writes one record, without its line end; records that failed before come first.
  std::expected<void, Error> append(std::string line);
  /// Tries again to write what failed.
  std::expected<void, Error> write_waiting();
  std::size_t waiting() const { return waiting_.size(); }

  /// Replaces the bytes (after a migration).
  std::expected<void, Error> rewrite();

  /// What was noticed of another writer since the last call.
  std::optional<std::string> take_notice();

 private:
  std::expected<void, Error> write_record(std::string_view line);
  void take_lock();

  std::filesystem::path path_;
  std::uint64_t size_;  // as we left it
  bool exists_;
  std::function<std::string()> whole_text_;
  SyncPolicy sync_;
  std::deque<std::string> waiting_;
  std::optional<std::string> notice_;
  int lock_ = -1;
  bool growth_reported_ = false;
};

}  // namespace tau::coding
