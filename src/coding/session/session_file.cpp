#include "coding/session/session_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"

namespace tau::coding {

namespace {

Error write_error(const std::filesystem::path& path, int code) {
  return error(fmt::format("cannot write the session file {}: {}", path.string(), std::strerror(code)));
}

/// One write; a short one counts as a failure (ENOSPC when the system gave no reason).
int write_once(int fd, std::string_view bytes) {
  ssize_t n = 0;
  do {
    n = ::write(fd, bytes.data(), bytes.size());
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(bytes.size())) return 0;
  return n < 0 ? errno : ENOSPC;
}

struct Closer {
  int fd;
  ~Closer() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

SessionFile::SessionFile(std::filesystem::path path, std::uint64_t size, bool exists,
                         std::function<std::string()> whole_text, SyncPolicy sync)
    : path_(std::move(path)), size_(size), exists_(exists), whole_text_(std::move(whole_text)), sync_(sync) {}

SessionFile::~SessionFile() {
  if (lock_ >= 0) ::close(lock_);
}

void SessionFile::take_lock() {
  if (lock_ >= 0) return;
  lock_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    notice_ = fmt::format("Another program has the session {} open. Both can write; what each adds becomes a branch.",
                          path_.string());
  }
}

std::expected<void, Error> SessionFile::create() {
  if (exists_) return {};
  std::error_code ignored;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), ignored);
  const std::string text = whole_text_();
  const Closer file{::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666)};
  if (file.fd < 0) return std::unexpected(write_error(path_, errno));
  if (const int failed = write_once(file.fd, text)) {
    ::unlink(path_.c_str());
    return std::unexpected(write_error(path_, failed));
  }
  if (sync_ == SyncPolicy::kEachRecord) ::fsync(file.fd);
  exists_ = true;
  size_ = text.size();
  waiting_.clear();  // the whole text has them
  take_lock();
  return {};
}

std::expected<void, Error> SessionFile::write_record(std::string_view line) {
  // Readable as well, for the look at the last byte.
  const Closer file{::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC)};
  if (file.fd < 0) return std::unexpected(write_error(path_, errno));
  take_lock();
  struct stat before{};
  if (::fstat(file.fd, &before) != 0) return std::unexpected(write_error(path_, errno));
  const auto size = static_cast<std::uint64_t>(before.st_size);
  if (size != size_ && !growth_reported_ && !notice_) {
    growth_reported_ = true;
    notice_ = fmt::format("The session file {} was {} by another program since it was read.", path_.string(),
                          size > size_ ? "added to" : "cut");
  }
  std::string bytes;
  char last = '\n';
  if (size > 0 && ::pread(file.fd, &last, 1, before.st_size - 1) == 1 && last != '\n') bytes += '\n';
  bytes += line;
  bytes += '\n';
  if (const int failed = write_once(file.fd, bytes)) {
    // Take a part of the record back, unless somebody has written behind it already.
    struct stat after{};
    if (::fstat(file.fd, &after) == 0 && after.st_size > before.st_size &&
        static_cast<std::uint64_t>(after.st_size) < size + bytes.size() && ::ftruncate(file.fd, before.st_size) != 0) {
      errno = 0;  // the torn record stays; the next append begins on a line of its own
    }
    return std::unexpected(write_error(path_, failed));
  }
  if (sync_ == SyncPolicy::kEachRecord && ::fsync(file.fd) != 0) return std::unexpected(write_error(path_, errno));
  size_ = size + bytes.size();
  return {};
}

std::expected<void, Error> SessionFile::write_waiting() {
  struct stat info{};
  if (exists_ && ::stat(path_.c_str(), &info) != 0 && errno == ENOENT) {
    exists_ = false;  // vanished under us: written anew, with everything that memory holds
    if (lock_ >= 0) ::close(std::exchange(lock_, -1));
    return create();
  }
  while (!waiting_.empty()) {
    auto written = write_record(waiting_.front());
    if (!written) return written;
    waiting_.pop_front();
  }
  return {};
}

std::expected<void, Error> SessionFile::append(std::string line) {
  waiting_.push_back(std::move(line));
  return write_waiting();
}

std::expected<void, Error> SessionFile::rewrite() {
  const std::string text = whole_text_();
  auto written = write_file_atomically(path_, text);
  if (!written) return written;
  size_ = text.size();
  exists_ = true;
  return {};
}

std::optional<std::string> SessionFile::take_notice() {
  return std::exchange(notice_, std::nullopt);
}

}  // namespace tau::coding
