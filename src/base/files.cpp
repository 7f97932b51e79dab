#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"

namespace tau {

namespace fs = std::filesystem;

namespace {

Error io_error(std::string_view doing, const fs::path& path, int code) {
  return error(fmt::format("cannot {} {}: {}", doing, path.string(), std::strerror(code)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// Makes a rename in this folder survive a power loss. Best effort: some file systems refuse to sync a folder.
void sync_folder(const fs::path& folder) {
  const Descriptor d(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (d.get() >= 0) ::fsync(d.get());
}

}  // namespace

std::expected<std::string, Error> read_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return std::unexpected(io_error("read", path, errno));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return std::unexpected(io_error("read", path, errno));
  if (S_ISDIR(info.st_mode)) return std::unexpected(io_error("read", path, EISDIR));
  std::string bytes;
  bytes.resize(S_ISREG(info.st_mode) ? static_cast<std::size_t>(info.st_size) + 1 : std::size_t{65536});
  std::size_t used = 0;
  while (true) {
    if (used == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t n = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::unexpected(io_error("read", path, errno));
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
  }
  bytes.resize(used);
  return bytes;
}

std::expected<void, Error> write_file_atomically(const fs::path& path, std::string_view bytes, mode_t mode) {
  std::error_code ignored;
  fs::path target = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
  if (target.empty()) target = path;

  struct stat before{};
  const bool exists = ::stat(target.c_str(), &before) == 0;
  if (exists && S_ISDIR(before.st_mode)) return std::unexpected(io_error("write", path, EISDIR));
  if (exists && !S_ISREG(before.st_mode)) {  // a device or a pipe cannot be replaced: write into it
    const Descriptor out(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    if (out.get() < 0 || !write_all(out.get(), bytes)) return std::unexpected(io_error("write", path, errno));
    return {};
  }
  if (exists && ::access(target.c_str(), W_OK) != 0) return std::unexpected(io_error("write", path, errno));

  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const fs::path temporary = folder / fmt::format(".{}.{}.tmp", target.filename().string(), random_hex(8));
  Descriptor out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, exists ? 0600 : mode));
  if (out.get() < 0) return std::unexpected(io_error("write", path, errno));
  bool ok = write_all(out.get(), bytes);
  if (ok && exists) {
    // The owner first: changing it may clear mode bits. Without the right to do so the mode alone is kept.
    if (before.st_uid != ::geteuid() || before.st_gid != ::getegid()) {
      if (::fchown(out.get(), before.st_uid, before.st_gid) != 0) errno = 0;
    }
    ok = ::fchmod(out.get(), before.st_mode & 07777) == 0;
  }
  ok = ok && ::fsync(out.get()) == 0 && out.close() && ::rename(temporary.c_str(), target.c_str()) == 0;
  if (!ok) {
    const int code = errno;
    ::unlink(temporary.c_str());
    return std::unexpected(io_error("write", path, code));
  }
  sync_folder(folder);
  return {};
}

fs::path expand_home(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return path;
  path.remove_prefix(std::min(path.find_first_not_of('/', 1), path.size()));  // "~//x" is below the home folder too
  return path.empty() ? fs::path(home) : fs::path(home) / path;
}

fs::path resolve_path(std::string_view path, const fs::path& base) {
  fs::path resolved = (base / expand_home(path)).lexically_normal();
  if (!resolved.has_filename() && resolved.has_relative_path()) resolved = resolved.parent_path();
  return resolved;
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace tau
