// Running a coroutine from a test.
#pragma once

#include <chrono>
#include <future>
#include <stdexcept>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

namespace tau::test {

/// Runs the loop until `task` is over and returns its result; what it throws is thrown here. Throws when it takes
/// longer than `limit`.
template <class T>
T run(boost::asio::io_context& io, boost::asio::awaitable<T> task,
      std::chrono::milliseconds limit = std::chrono::seconds(30)) {
  std::future<T> result = boost::asio::co_spawn(io, std::move(task), boost::asio::use_future);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  io.restart();
  while (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (io.run_one_until(deadline) == 0)
      throw std::runtime_error("the coroutine did not end in time, or waits for nothing");
  }
  return result.get();
}

}  // namespace tau::test
