#include "base/blocking.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace tau::detail {

namespace {

constexpr std::size_t kWorkers = 4;

/// Started at the first use and never destroyed: the end of the program must not wait for a disk that does not answer.
asio::thread_pool& workers() {
  static auto* const kPool = new asio::thread_pool(kWorkers);
  return *kPool;
}

class Bell {
 public:
  Bell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw boost::system::system_error(errno, boost::system::system_category(), "eventfd");
  }
  ~Bell() { ::close(fd_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() {
    const std::uint64_t one = 1;
    while (::write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  int duplicate() const { return ::fcntl(fd_, F_DUPFD_CLOEXEC, 0); }

 private:
  int fd_;
};

}  // namespace

asio::awaitable<void> run_job(std::shared_ptr<BlockingJob> job) {
  const auto executor = co_await asio::this_coro::executor;
  const auto bell = std::make_shared<Bell>();
  asio::posix::stream_descriptor rung(executor, bell->duplicate());
  asio::post(workers(), [job, bell] {
    job->run();
    bell->ring();
  });
  co_await rung.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
}

}  // namespace tau::detail
