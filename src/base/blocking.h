// Work that would hold up the event loop, done on another thread: reading a large file, walking a folder, decoding an
// image.
//
// The worker never touches the loop: it rings an eventfd, which the coroutine waits for like for any descriptor. A loop
// that is gone before the work is done therefore does no harm.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace tau {

namespace asio = boost::asio;

namespace detail {

/// Something to do on a worker thread. Must not throw.
class BlockingJob {
 public:
  virtual ~BlockingJob() = default;
  virtual void run() = 0;
};

/// Runs the job on a worker and waits for its end. Throws operation_aborted when the wait is cancelled; the job then
/// ends by itself.
asio::awaitable<void> run_job(std::shared_ptr<BlockingJob> job);

}  // namespace detail

/// What `work()` returns or throws. It runs on another thread, so it must own what it uses; on a cancelled wait its
/// result is dropped.
template <class Work>
asio::awaitable<std::invoke_result_t<Work&>> run_blocking(Work work) {
  using Result = std::invoke_result_t<Work&>;
  struct Job final : detail::BlockingJob {
    explicit Job(Work w) : work(std::move(w)) {}
    void run() override {
      try {
        result.emplace(work());
      } catch (...) {
        failure = std::current_exception();
      }
    }
    Work work;
    std::optional<Result> result;
    std::exception_ptr failure;
  };
  auto job = std::make_shared<Job>(std::move(work));
  co_await detail::run_job(job);
  if (job->failure) std::rethrow_exception(job->failure);
  co_return std::move(*job->result);
}

}  // namespace tau
