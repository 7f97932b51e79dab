#include "coding/config/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>

#include <fmt/format.h>

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

using std::chrono::milliseconds;

constexpr mode_t kMark = S_ISVTX;

enum class Attempt { kTaken, kHeld, kVanished };

/// Whether the path still leads to the folder that is open.
bool same_folder(const fs::path& folder, int descriptor) {
  struct stat opened{}, named{};
  return fstat(descriptor, &opened) == 0 && stat(folder.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

bool is_older_than(const struct stat& info, milliseconds age) {
  const auto modified = std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
  return std::chrono::system_clock::now().time_since_epoch() - modified > age;
}

/// Takes the flock of an existing folder of ours. Whoever has it, and is still at that path, owns the lock.
Attempt adopt(const fs::path& folder, int& descriptor) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return errno == ENOENT ? Attempt::kVanished : Attempt::kHeld;
  if (flock(opened, LOCK_EX | LOCK_NB) != 0) {
    close(opened);
    return Attempt::kHeld;
  }
  if (!same_folder(folder, opened)) {
    close(opened);
    return Attempt::kVanished;
  }
  futimens(opened, nullptr);
  descriptor = opened;
  return Attempt::kTaken;
}

Attempt take_existing(const fs::path& folder, milliseconds stale, int& descriptor) {
  struct stat info{};
  if (stat(folder.c_str(), &info) != 0) return Attempt::kVanished;
  if ((info.st_mode & kMark) != 0) return adopt(folder, descriptor);
  const bool removed = is_older_than(info, stale) && rmdir(folder.c_str()) == 0;
  return removed ? Attempt::kVanished : Attempt::kHeld;
}

}  // namespace

std::expected<FileLock, Error> FileLock::acquire(const fs::path& file, Options options) {
  std::error_code failed;
  fs::path real = fs::weakly_canonical(file, failed);
  if (failed) real = file;
  fs::path folder = real;
  folder += ".lock";

  const auto deadline = std::chrono::steady_clock::now() + options.wait;
  std::minstd_rand random(static_cast<unsigned>(getpid()));
  milliseconds longest{4};
  for (;;) {
    int descriptor = -1;
    Attempt attempt;
    if (mkdir(folder.c_str(), 0777 | kMark) == 0) {
      attempt = adopt(folder, descriptor);
    } else if (errno != EEXIST) {
      return std::unexpected(error(fmt::format("cannot lock {}: {}", real.string(), strerror(errno))));
    } else {
      attempt = take_existing(folder, options.stale, descriptor);
    }
    if (attempt == Attempt::kTaken) return FileLock(std::move(folder), descriptor);
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      return std::unexpected(error(fmt::format("{} is locked by another program (if none is running, remove {})",
                                               real.string(), folder.string())));
    }
    if (attempt == Attempt::kVanished) continue;
    // Irregular pauses: programs that were started together do not meet again and again.
    const milliseconds pause(std::uniform_int_distribution<int>(1, static_cast<int>(longest.count()))(random));
    std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(pause, deadline - now));
    longest = std::min(longest * 2, milliseconds(20));
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : folder_(std::move(other.folder_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  if (same_folder(folder_, descriptor_)) rmdir(folder_.c_str());
  close(descriptor_);
}

void FileLock::refresh() const {
  futimens(descriptor_, nullptr);
}

}  // namespace tau::coding
