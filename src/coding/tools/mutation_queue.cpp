#include "coding/tools/mutation_queue.h"

#include <algorithm>
#include <deque>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace tau::coding {

namespace {

struct Waiter {
  explicit Waiter(const asio::any_io_executor& executor) : timer(executor, asio::steady_timer::time_point::max()) {}
  asio::steady_timer timer;
  bool granted = false;
};

/// One name for all names of a file.
std::string real_name(const std::filesystem::path& path) {
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, failed);
  return failed ? path.lexically_normal().string() : real.string();
}

}  // namespace

struct MutationQueue::File {
  bool taken = false;
  std::deque<std::shared_ptr<Waiter>> waiting;  // in the order of their calls

  void release() {
    if (waiting.empty()) {
      taken = false;
      return;
    }
    const std::shared_ptr<Waiter> next = std::move(waiting.front());
    waiting.pop_front();
    next->granted = true;  // the file stays taken
    next->timer.cancel();
  }
};

namespace {

/// A place in the line that is given up, or handed on, when the coroutine that waits is ended.
template <class File>
struct PlaceInLine {
  std::shared_ptr<File> file;
  std::shared_ptr<Waiter> waiter;

  PlaceInLine(std::shared_ptr<File> of, std::shared_ptr<Waiter> who) : file(std::move(of)), waiter(std::move(who)) {
    file->waiting.push_back(waiter);
  }
  PlaceInLine(const PlaceInLine&) = delete;
  PlaceInLine& operator=(const PlaceInLine&) = delete;
  ~PlaceInLine() {
    if (!waiter) return;
    std::erase(file->waiting, waiter);
    if (waiter->granted) file->release();
  }
};

}  // namespace

MutationQueue::Turn::~Turn() {
  if (file_) file_->release();
}

asio::awaitable<MutationQueue::Turn> MutationQueue::enter(std::filesystem::path path) {
  std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<File>& slot = files_[real_name(path)];
  std::shared_ptr<File> file = slot.lock();
  if (!file) slot = file = std::make_shared<File>();
  if (file->taken) {
    const auto executor = co_await asio::this_coro::executor;
    PlaceInLine<File> place(file, std::make_shared<Waiter>(executor));
    boost::system::error_code woken;
    co_await place.waiter->timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    if (!place.waiter->granted) throw boost::system::system_error(asio::error::operation_aborted);
    place.waiter.reset();
  }
  file->taken = true;
  co_return Turn(std::move(file));
}

}  // namespace tau::coding
