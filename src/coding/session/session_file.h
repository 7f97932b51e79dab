// Writing a session file so that nothing that was written is ever lost (SES-50 to SES-55, FF-23, FF-26, FF-110).
//
//   - One record is one write(2) of a whole line, in append mode: records of two programs never mix.
//   - Behind bytes that are not ours the file's last byte is looked at first: after a torn line comes a line end.
//   - A write that fails is taken back, unless somebody else could have written behind it.
//   - A second writer is noticed: by a lock on the file that this program holds while the session is open (pi takes
//   none
//     and is not disturbed; the lock of a dead process is gone), and by bytes in the file that are not ours.
//
// The file is opened by name for each record, as pi does, so that a file that was replaced is written to under its
// name. What was written survives a crash of the program at once; a crash of the machine only with
// SyncPolicy::kEachRecord, at the price of a wait for the disk at each record.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tau::coding {

enum class SyncPolicy { kNever, kEachRecord };

/// A file that is open for reading and carries the lock, or nothing.
class SessionDescriptor {
 public:
  SessionDescriptor() = default;
  explicit SessionDescriptor(int fd) : fd_(fd) {}
  SessionDescriptor(SessionDescriptor&& other) noexcept;
  SessionDescriptor& operator=(SessionDescriptor&& other) noexcept;
  ~SessionDescriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

class SessionFile {
 public:
  /// A file that does not exist yet.
  SessionFile(std::filesystem::path path, SyncPolicy sync) : path_(std::move(path)), sync_(sync) {}

  const std::filesystem::path& path() const { return path_; }
  SyncPolicy sync() const { return sync_; }
  bool exists() const { return static_cast<bool>(file_); }
  /// For reading; -1 before the file exists. Keeps the bytes reachable when the name is gone.
  int descriptor() const { return file_.get(); }

  /// A reader takes no lock and is no second writer.
  enum class Purpose { kWriting, kReading };
  /// Opens an existing file; a writer takes the lock. Folders and other things that are no files are refused.
  std::expected<void, Error> open(Purpose purpose = Purpose::kWriting);
  /// The file's bytes up to here are known.
  void set_known_end(std::uint64_t end) { known_end_ = end; }

  /// Creates the file with these bytes; never overwrites one (SES-51). Makes the folder.
  std::expected<void, Error> create(std::string_view bytes);

  /// Replaces the bytes of the file (SES-40) and opens it anew.
  std::expected<void, Error> rewrite(std::string_view bytes);

  /// What became of the file behind our back.
  enum class State { kOurs, kVanished, kReplaced, kCut };
  State state() const;

  struct Written {
    std::uint64_t offset = 0;         // of the line
    std::uint64_t foreign_begin = 0;  // bytes between are not ours; equal: none
    std::uint64_t foreign_end = 0;
  };
  /// Appends one record; `line` has no line end.
  std::expected<Written, Error> append(std::string_view line);

  /// Whether another tau has the session open too. Asks again when it was so the last time.
  bool is_shared();

 private:
  std::filesystem::path path_;
  SyncPolicy sync_;
  SessionDescriptor file_;
  std::uint64_t known_end_ = 0;
  bool locked_ = false;
};

/// Writes the line end that a file's torn last line lacks (SES-36).
std::expected<void, Error> end_torn_line(const std::filesystem::path& path);

}  // namespace tau::coding
