// The lock that pi and tau take before they change a shared file (CA-154, CA-390, FF-111, FF-112): a folder
// `<real path of the file>.lock`, made by whoever holds the lock and removed at the end.
//
// pi takes such a folder over once it has not been touched for ten seconds. A program that was killed would hold
// everybody up for so long, so tau's own lock folders also carry an flock (2) of their inode, which dies with its
// process, and are marked by their sticky bit: a marked folder whose flock can be had has no living owner and is taken
// over at once. Nothing is put into the folder, because pi removes stale ones with rmdir.
#pragma once

#include <chrono>
#include <expected>
#include <filesystem>

#include "base/error.h"

namespace tau::coding {

class FileLock {
 public:
  struct Options {
    std::chrono::milliseconds wait{5000};    // how long to try
    std::chrono::milliseconds stale{10000};  // age at which another program's lock counts as left behind
  };

  /// Blocks for at most `options.wait`. The file need not exist, its folder must. Links are followed: two names of one
  /// file have one lock. Never hold it across a wait for the network without calling `refresh` every five seconds.
  static std::expected<FileLock, Error> acquire(const std::filesystem::path& file, Options options);
  static std::expected<FileLock, Error> acquire(const std::filesystem::path& file) { return acquire(file, Options{}); }

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  /// Touches the folder, so that pi does not take it for a stale one.
  void refresh() const;

 private:
  FileLock(std::filesystem::path folder, int descriptor) : folder_(std::move(folder)), descriptor_(descriptor) {}
  std::filesystem::path folder_;
  int descriptor_;  // of the folder, flocked; -1 after a move
};

}  // namespace tau::coding
