#include "coding/session/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "coding/session/session_file.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::expected<fs::path, Error> write_new_file(const fs::path& folder, const fs::path& name, std::string_view bytes) {
  fs::path path = folder / name;
  int fd = -1;
  for (int n = 1;; ++n) {
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) break;
    path.replace_filename(fmt::format("{}-{}{}", name.stem().string(), n, name.extension().string()));
  }
  const SessionDescriptor file(fd);
  if (file && write_all(file.get(), bytes)) return path;
  const int code = errno;
  if (file) ::unlink(path.c_str());
  return std::unexpected(error(fmt::format("cannot write {}: {}", path.string(), std::strerror(code))));
}

}  // namespace tau::coding
