#include "coding/tools/mutation_queue.h"

#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::coding {
namespace {

struct Log {
  std::vector<std::string> lines;
  MutationQueue queue;
};

/// Takes the file, lets everybody else run a few times, leaves it.
asio::awaitable<void> change(Log& log, std::filesystem::path path, std::string name) {
  const MutationQueue::Turn turn = co_await log.queue.enter(std::move(path));
  log.lines.push_back(name + " in");
  for (int i = 0; i < 5; ++i)
    co_await asio::post(asio::use_awaitable);
  log.lines.push_back(name + " out");
}

asio::awaitable<void> fail(Log& log, std::filesystem::path path) {
  const MutationQueue::Turn turn = co_await log.queue.enter(std::move(path));
  co_await asio::post(asio::use_awaitable);
  throw std::runtime_error("fails");
}

using Lines = std::vector<std::string>;

TEST(MutationQueue, ChangesOfOneFileRunInTheOrderOfTheirCalls) {  // CA-54, FF-70
  const test::TemporaryFolder folder;
  const auto file = folder.write("f", "x");
  std::filesystem::create_symlink(file, folder / "link");
  Log log;
  asio::io_context io;
  asio::co_spawn(io, change(log, file, "1"), asio::detached);
  asio::co_spawn(io, change(log, folder.path() / "." / "f", "2"), asio::detached);
  asio::co_spawn(io, change(log, folder / "link", "3"), asio::detached);
  io.run();
  EXPECT_EQ(log.lines, (Lines{"1 in", "1 out", "2 in", "2 out", "3 in", "3 out"}));
}

TEST(MutationQueue, AFileThatDoesNotExistYetHasOneName) {
  const test::TemporaryFolder folder;
  Log log;
  asio::io_context io;
  asio::co_spawn(io, change(log, folder / "new", "1"), asio::detached);
  asio::co_spawn(io, change(log, folder.path() / "a" / ".." / "new", "2"), asio::detached);
  io.run();
  EXPECT_EQ(log.lines, (Lines{"1 in", "1 out", "2 in", "2 out"}));
}

TEST(MutationQueue, DifferentFilesDoNotWaitForEachOther) {
  const test::TemporaryFolder folder;
  Log log;
  asio::io_context io;
  asio::co_spawn(io, change(log, folder / "a", "1"), asio::detached);
  asio::co_spawn(io, change(log, folder / "b", "2"), asio::detached);
  io.run();
  EXPECT_EQ(log.lines, (Lines{"1 in", "2 in", "1 out", "2 out"}));
}

TEST(MutationQueue, AFailureLeavesTheFileToTheNext) {
  const test::TemporaryFolder folder;
  Log log;
  asio::io_context io;
  std::exception_ptr failure;
  asio::co_spawn(io, fail(log, folder / "f"), [&](std::exception_ptr error) { failure = error; });
  asio::co_spawn(io, change(log, folder / "f", "2"), asio::detached);
  io.run();
  EXPECT_TRUE(failure);
  EXPECT_EQ(log.lines, (Lines{"2 in", "2 out"}));
}

TEST(MutationQueue, WhoIsCancelledWhileWaitingNeverGetsTheFile) {
  const test::TemporaryFolder folder;
  Log log;
  asio::io_context io;
  asio::cancellation_signal cancel;
  std::exception_ptr failure;
  asio::co_spawn(io, change(log, folder / "f", "1"), asio::detached);
  asio::co_spawn(io, change(log, folder / "f", "2"),
                 asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr error) { failure = error; }));
  asio::co_spawn(io, change(log, folder / "f", "3"), asio::detached);
  asio::post(io, [&] { cancel.emit(asio::cancellation_type::terminal); });
  io.run();
  EXPECT_TRUE(failure);
  EXPECT_EQ(log.lines, (Lines{"1 in", "1 out", "3 in", "3 out"}));
}

TEST(MutationQueue, AWaitThatIsDestroyedWithItsLoopIsHarmless) {
  const test::TemporaryFolder folder;
  Log log;
  {
    asio::io_context io;
    asio::co_spawn(io, change(log, folder / "f", "1"), asio::detached);
    asio::co_spawn(io, change(log, folder / "f", "2"), asio::detached);
    for (int i = 0; i < 4; ++i)
      io.poll_one();
  }
  asio::io_context io;
  asio::co_spawn(io, change(log, folder / "f", "3"), asio::detached);
  io.run();
  ASSERT_FALSE(log.lines.empty());
  EXPECT_EQ(log.lines.back(), "3 out");
}

}  // namespace
}  // namespace tau::coding
