#include "base/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "support/fixture.h"
#include "support/run.h"

namespace tau {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Outcome {
  std::expected<ProcessExit, Error> exit;
  std::string output;
  std::chrono::milliseconds wall;
};

Outcome run_shell(const std::string& command, std::optional<std::chrono::milliseconds> timeout = {},
                  std::optional<std::chrono::milliseconds> stop_after = {},
                  std::map<std::string, std::optional<std::string>> environment = {}) {
  boost::asio::io_context io;
  std::string output;
  std::stop_source stop;
  ProcessOptions options;
  options.argv = {"/bin/bash", "-c", command};
  options.timeout = timeout;
  options.environment = std::move(environment);
  std::jthread stopper([&](const std::stop_token& end) {
    const auto at = Clock::now() + stop_after.value_or(1h);
    while (!end.stop_requested() && Clock::now() < at)
      std::this_thread::sleep_for(5ms);
    if (stop_after) stop.request_stop();
  });
  const auto start = Clock::now();
  auto exit = test::run(io, run_process(options, [&](std::string_view bytes) { output += bytes; }, stop.get_token()));
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  stopper.request_stop();
  return {std::move(exit), output, wall};
}

/// Processes whose environment holds the text.
int count_marked(const std::string& text) {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    try {
      if (test::read_file(entry.path() / "environ").find(text) != std::string::npos) ++n;
    } catch (const std::exception&) {
    }
  }
  return n;
}

TEST(Process, OutputAndErrorsComeInTheOrderOfWriting) {
  const Outcome o = run_shell("echo out; echo err >&2; echo out2; exit 7");
  ASSERT_TRUE(o.exit);
  EXPECT_EQ(o.exit->code, 7);
  EXPECT_EQ(o.output, "out\nerr\nout2\n");
}

TEST(Process, ADeathBySignalIsNamed) {  // FF-59
  const Outcome o = run_shell("echo part; kill -SEGV $$");
  EXPECT_EQ(o.exit->signal, 11);
  EXPECT_EQ(o.exit->code, 139);
  EXPECT_EQ(signal_name(11), "SIGSEGV");
  EXPECT_EQ(o.output, "part\n");
}

TEST(Process, AProgramThatDoesNotExistIsAnError) {
  boost::asio::io_context io;
  ProcessOptions options;
  options.argv = {"no-such-program-here"};
  const auto exit = test::run(io, run_process(options, [](std::string_view) {}, {}));
  ASSERT_FALSE(exit);
  EXPECT_NE(exit.error().message.find("no-such-program-here"), std::string::npos);
}

TEST(Process, TheTimeoutEndsTheWholeTreeAlsoWhatMadeASessionOfItsOwn) {  // FF-55
  const std::string mark = "tau_test_mark=" + std::to_string(getpid()) + "t";
  const Outcome o = run_shell(
      "for i in 1 2 3; do (while :; do sleep 0.2; done) & done; setsid sleep 300 & (setsid setsid sleep 301 &) ; "
      "yes > /dev/null & sleep 60",
      300ms, {}, {{"tau_test_mark", std::to_string(getpid()) + "t"}});
  EXPECT_TRUE(o.exit->timed_out);
  EXPECT_LT(o.wall, 1500ms);
  EXPECT_EQ(count_marked(mark), 0);
}

TEST(Process, TrapHandlersGetTheirChance) {
  const Outcome o = run_shell("trap 'echo bye; exit 3' TERM; echo on; while :; do sleep 0.05; done", 200ms);
  EXPECT_TRUE(o.exit->timed_out);
  EXPECT_TRUE(o.output.starts_with("on\n") && o.output.ends_with("bye\n")) << o.output;
}

TEST(Process, AProcessThatIgnoresTermIsKilled) {
  const Outcome o = run_shell("trap '' TERM; while :; do sleep 0.05; done", {}, 100ms);
  EXPECT_TRUE(o.exit->aborted);
  EXPECT_LT(o.wall, 1100ms);
}

TEST(Process, AfterAnAbortNoLaterCommandOfTheListStarts) {  // FF-64
  const test::TemporaryFolder folder;
  for (int i = 0; i < 5; ++i) {
    const std::string file = (folder / ("marker" + std::to_string(i))).string();
    run_shell("sleep 5; touch " + file, {}, std::chrono::milliseconds(20 + 17 * i));
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

TEST(Process, ABackgroundChildDoesNotHoldTheCall) {  // FF-56
  for (const char* command : {"sleep 25 & echo hi", "setsid sleep 25 & echo hi"}) {
    const Outcome o = run_shell(command);
    EXPECT_EQ(o.exit->code, 0);
    EXPECT_EQ(o.output, "hi\n");
    EXPECT_LT(o.wall, 2000ms);
  }
  end_all_processes();
}

TEST(Process, NothingThatWasStartedOutlivesEndAllProcesses) {  // FF-63
  const std::string mark = std::to_string(getpid()) + "e";
  run_shell("sleep 40 & (setsid sleep 41 &) ; echo hi", {}, {}, {{"tau_test_mark", mark}});
  EXPECT_GT(count_marked("tau_test_mark=" + mark), 0);
  end_all_processes();
  EXPECT_EQ(count_marked("tau_test_mark=" + mark), 0);
}

TEST(Process, SignalsOfTheCommandDoNotReachUs) {  // FF-57
  EXPECT_EQ(run_shell("kill -TERM 0").exit->signal, 15);
  EXPECT_EQ(run_shell("kill -INT -- -$$; sleep 1").exit->signal, 2);
}

TEST(Process, ThereIsNoTerminalAndStdinIsEmpty) {  // FF-62
  EXPECT_EQ(run_shell("cat; read x </dev/tty; echo rc=$?").output.substr(0, 9), "/bin/bash");
  EXPECT_LT(run_shell("cat").wall, 1000ms);
}

TEST(Process, EnvironmentChangesReplaceAndRemove) {
  setenv("TAU_TEST_REMOVED", "x", 1);
  const Outcome o = run_shell("echo \"[$TAU_TEST_SET][$TAU_TEST_REMOVED]\"", {}, {},
                              {{"TAU_TEST_SET", "a b"}, {"TAU_TEST_REMOVED", std::nullopt}});
  EXPECT_EQ(o.output, "[a b][]\n");
}

TEST(Process, AProgramWhoseFirstThreadEndsEarlyIsWaitedFor) {
  const Outcome o = run_shell(
      "exec python3 -c 'import threading, time, os, ctypes\n"
      "threading.Thread(target=lambda: (time.sleep(0.3), os.write(1, b\"late\"), os._exit(5))).start()\n"
      "ctypes.CDLL(None).pthread_exit(None)'");
  EXPECT_EQ(o.exit->code, 5);
  EXPECT_EQ(o.output, "late");
}

TEST(Process, ErrorsCanBeKeptApart) {
  boost::asio::io_context io;
  std::string output;
  std::string errors;
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", "echo out; echo err >&2"};
  options.on_errors = [&](std::string_view bytes) { errors += bytes; };
  ASSERT_TRUE(test::run(io, run_process(options, [&](std::string_view bytes) { output += bytes; }, {})));
  EXPECT_EQ(output, "out\n");
  EXPECT_EQ(errors, "err\n");
}

TEST(Process, ChildrenInheritNothingThatIsOpen) {
  const int leak = fcntl(1, F_DUPFD, 20);
  const Outcome o = run_shell("echo /proc/$$/fd/*");
  close(leak);
  for (int fd = 4; fd < 40; ++fd) {  // 3 is the folder that bash lists
    EXPECT_EQ(o.output.find("/fd/" + std::to_string(fd)), std::string::npos) << o.output;
  }
}

TEST(Process, OutputThatNeverFallsSilentDoesNotHoldTheCall) {  // FF-56
  const Outcome o = run_shell("(while :; do echo x; sleep 0.02; done) & echo hi");
  EXPECT_EQ(o.exit->code, 0);
  EXPECT_LT(o.wall, 6000ms);
  end_all_processes();
}

std::set<pid_t> children() {
  std::set<pid_t> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::istringstream list(test::read_file(task.path() / "children"));
    for (pid_t pid = 0; list >> pid;)
      all.insert(pid);
  }
  return all;
}

TEST(Process, BackgroundChildrenAreReapedWhenTheyEnd) {
  const std::set<pid_t> before = children();
  const auto any_new = [&] {
    const std::set<pid_t> now = children();
    return !std::includes(before.begin(), before.end(), now.begin(), now.end());
  };
  boost::asio::io_context io;
  ProcessOptions options;
  options.argv = {"/bin/bash", "-c", "sleep 0.3 >/dev/null & (setsid sleep 0.4 &) ; (sleep 0.2 & sleep 0.3) & echo hi"};
  ASSERT_TRUE(test::run(io, run_process(options, [](std::string_view) {}, {})));
  EXPECT_TRUE(any_new());
  const auto end = Clock::now() + 5s;
  while (any_new() && Clock::now() < end)
    io.run_for(20ms);
  EXPECT_FALSE(any_new());
}

}  // namespace
}  // namespace tau
