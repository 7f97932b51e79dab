#include "coding/session/session_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"

namespace tau::coding {

namespace {

std::unexpected<Error> failed(std::string_view doing, const std::filesystem::path& path, int code) {
  return std::unexpected(
      error(fmt::format("cannot {} the session file {}: {}", doing, path.string(), std::strerror(code))));
}

/// `lead`, the record and its line end in one system call, without a copy of the record. A short write counts as a
/// failure: the disk is full when the system gives no reason. Returns errno or 0.
int write_once(int fd, std::string_view lead, std::string_view record, std::size_t& written) {
  const auto part = [](std::string_view bytes) {
    return iovec{const_cast<char*>(bytes.data()), bytes.size()};  // NOLINT: writev does not change what it writes
  };
  const std::array<iovec, 3> parts{part(lead), part(record), part("\n")};
  ssize_t n = 0;
  do {
    n = ::writev(fd, parts.data(), static_cast<int>(parts.size()));
  } while (n < 0 && errno == EINTR);
  written = n > 0 ? static_cast<std::size_t>(n) : 0;
  if (written == lead.size() + record.size() + 1) return 0;
  return n < 0 ? errno : ENOSPC;
}

/// As many writes as it takes: a new file of a long fork can be larger than one write moves. Returns errno or 0.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

SessionDescriptor::SessionDescriptor(SessionDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

SessionDescriptor& SessionDescriptor::operator=(SessionDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

SessionDescriptor::~SessionDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::expected<void, Error> SessionFile::open(Purpose purpose) {
  SessionDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return failed("open", path_, errno);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return failed("open", path_, errno);
  if (S_ISDIR(info.st_mode)) return failed("open", path_, EISDIR);
  if (!S_ISREG(info.st_mode)) return failed("open", path_, EINVAL);
  file_ = std::move(file);
  locked_ = purpose == Purpose::kWriting && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
  return {};
}

bool SessionFile::is_shared() {
  if (!file_ || locked_) return false;
  locked_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
  return !locked_ && errno == EWOULDBLOCK;
}

std::expected<void, Error> SessionFile::create(std::string_view bytes) {
  std::error_code failure;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), failure);
  if (failure) return failed("create", path_, failure.value());
  const SessionDescriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return failed("create", path_, errno);
  int code = write_all(file.get(), bytes);
  if (code == 0 && sync_ == SyncPolicy::kEachRecord && ::fsync(file.get()) != 0) code = errno;
  if (code != 0) {
    ::unlink(path_.c_str());
    return failed("create", path_, code);
  }
  known_end_ = bytes.size();
  return open();
}

std::expected<void, Error> SessionFile::rewrite(std::string_view bytes) {
  if (auto written = write_file_atomically(path_, bytes); !written) return written;
  known_end_ = bytes.size();
  return open();
}

SessionFile::State SessionFile::state() const {
  struct stat ours{};
  struct stat named{};
  if (::fstat(file_.get(), &ours) != 0) return State::kOurs;
  if (::stat(path_.c_str(), &named) != 0) return errno == ENOENT || errno == ENOTDIR ? State::kVanished : State::kOurs;
  if (!same_file(ours, named)) return State::kReplaced;
  return static_cast<std::uint64_t>(named.st_size) < known_end_ ? State::kCut : State::kOurs;
}

std::expected<SessionFile::Written, Error> SessionFile::append(std::string_view line) {
  // Readable as well, for the look at the last byte.
  const SessionDescriptor file(::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!file) return failed("write", path_, errno);
  struct stat before{};
  if (::fstat(file.get(), &before) != 0) return failed("write", path_, errno);
  const auto size = static_cast<std::uint64_t>(before.st_size);
  std::string_view lead;
  if (size > 0) {
    char last = '\n';
    if (::pread(file.get(), &last, 1, before.st_size - 1) == 1 && last != '\n') lead = "\n";  // FF-23
  }
  const std::size_t length = lead.size() + line.size() + 1;
  std::size_t count = 0;
  if (const int code = write_once(file.get(), lead, line, count)) {
    // The piece is taken back while it is still the last of the file. One that stays is closed by the next append and
    // left out by readers.
    struct stat after{};
    if (count > 0 && ::fstat(file.get(), &after) == 0 && after.st_size == before.st_size + static_cast<off_t>(count)) {
      std::ignore = ::ftruncate(file.get(), before.st_size);
    }
    return failed("write", path_, code);
  }
  if (sync_ == SyncPolicy::kEachRecord && ::fdatasync(file.get()) != 0) return failed("write", path_, errno);
  // In append mode the position is behind what was written, wherever the end of the file was by then.
  const off_t end = ::lseek(file.get(), 0, SEEK_CUR);
  const std::uint64_t begin = static_cast<std::uint64_t>(end) - length;
  Written written{begin + lead.size(), std::exchange(known_end_, begin + length), begin};
  if (written.foreign_begin > written.foreign_end) written.foreign_begin = written.foreign_end;
  return written;
}

std::expected<void, Error> end_torn_line(const std::filesystem::path& path) {
  const SessionDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file) return failed("write", path, errno);
  if (const int code = write_all(file.get(), "\n")) return failed("write", path, code);
  return {};
}

}  // namespace tau::coding
