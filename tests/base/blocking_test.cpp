#include "base/blocking.h"

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "support/run.h"

namespace tau {
namespace {

TEST(Blocking, WorkRunsOnAnotherThreadAndItsResultComesBack) {
  boost::asio::io_context io;
  const auto here = std::this_thread::get_id();
  const auto there = test::run(io, run_blocking([] { return std::this_thread::get_id(); }));
  EXPECT_NE(here, there);
  EXPECT_EQ(test::run(io, run_blocking([text = std::string("moved")] { return text; })), "moved");
}

TEST(Blocking, WhatTheWorkThrowsIsThrownHere) {
  boost::asio::io_context io;
  const auto fail = []() -> int { throw std::runtime_error("no"); };
  EXPECT_THROW(test::run(io, run_blocking(fail)), std::runtime_error);
}

TEST(Blocking, ALoopThatIsGoneBeforeTheWorkIsDoneDoesNoHarm) {
  std::promise<void> go;
  auto gone = go.get_future().share();
  auto finished = std::make_shared<std::promise<int>>();
  {
    boost::asio::io_context io;
    auto work = [gone, finished] {
      gone.wait();
      finished->set_value(7);
      return 7;
    };
    boost::asio::co_spawn(io, run_blocking(work), boost::asio::detached);
    io.poll();
  }
  go.set_value();
  EXPECT_EQ(finished->get_future().get(), 7);
}

}  // namespace
}  // namespace tau
