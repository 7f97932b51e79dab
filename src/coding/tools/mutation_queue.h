// Changes of one file run one after the other, in the order of the calls (CA-54, FF-70).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

namespace tau::coding {

namespace asio = boost::asio;

/// For one executor. Two names of one file (links, `./`) count as the same file; different files do not wait for each
/// other.
class MutationQueue {
  struct File;

 public:
  /// While it lives, nobody else changes the file.
  class Turn {
   public:
    Turn(Turn&& other) noexcept = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    friend class MutationQueue;
    explicit Turn(std::shared_ptr<File> file) : file_(std::move(file)) {}
    std::shared_ptr<File> file_;
  };

  /// Waits for everybody who asked for the same file before. Throws operation_aborted when the wait is cancelled.
  asio::awaitable<Turn> enter(std::filesystem::path path);

 private:
  std::map<std::string, std::weak_ptr<File>> files_;
};

}  // namespace tau::coding
