#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/process_tree.h"

extern char** environ;

namespace tau {

namespace {

using Clock = std::chrono::steady_clock;

/// Between SIGTERM and SIGKILL: time for trap handlers (FF-55).
constexpr std::chrono::milliseconds kGrace{300};
/// How often the tree is looked through while it is being ended.
constexpr std::chrono::milliseconds kLook{20};
/// After SIGKILL: a process that is stuck in the kernel is not waited for.
constexpr std::chrono::milliseconds kGiveUp{500};
constexpr std::size_t kReadSize = 256 * 1024;

/// The environment of a child: ours with the changes, as "NAME=value".
std::vector<std::string> environment_of(const ProcessOptions& options, const std::string& marker) {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view setting(*at);
    const std::string name(setting.substr(0, setting.find('=')));
    if (name != kProcessTreeVariable && !options.environment.contains(name)) out.emplace_back(setting);
  }
  for (const auto& [name, text] : options.environment) {
    if (text) out.push_back(name + "=" + *text);
  }
  out.push_back(std::string(kProcessTreeVariable) + "=" + marker);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts)
    out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

class SpawnActions {
 public:
  SpawnActions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// Starts the program in a session of its own; returns its pid. `output` becomes its stdout and stderr.
std::expected<pid_t, Error> spawn(const ProcessOptions& options, const std::string& marker, int output) {
  SpawnActions spawn;
  posix_spawn_file_actions_addopen(spawn.actions(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(spawn.actions(), output, 1);
  posix_spawn_file_actions_adddup2(spawn.actions(), output, 2);
  if (!options.working_directory.empty()) {
    posix_spawn_file_actions_addchdir_np(spawn.actions(), options.working_directory.c_str());
  }
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(spawn.attributes(), &none);
  posix_spawnattr_setsigdefault(spawn.attributes(), &all);
  // A session of its own: no controlling terminal (FF-62), and a group that `kill 0` stays inside of (FF-57).
  posix_spawnattr_setflags(spawn.attributes(), POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words = options.argv;
  std::vector<std::string> settings = environment_of(options, marker);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, options.argv.front().c_str(), spawn.actions(), spawn.attributes(),
                                  pointers(words).data(), pointers(settings).data());
  if (failed != 0) {
    return std::unexpected(error(fmt::format("cannot start {}: {}", options.argv.front(), std::strerror(failed))));
  }
  return pid;
}

/// One run: asynchronous handlers note what happens and wake the coroutine, which decides.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(asio::any_io_executor executor, pid_t pid, int output, int pidfd, std::function<void(std::string_view)> on_output)
      : wake_(executor),
        output_(executor, output),
        exit_(executor, pidfd),
        pid_(pid),
        on_output_(std::move(on_output)) {
    buffer_.resize(kReadSize);
  }

  void start() {
    read();
    exit_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const boost::system::error_code&) {
                       int status = 0;
                       if (waitpid(self->pid_, &status, WNOHANG) == self->pid_) self->status_ = status;
                       self->last_activity_ = Clock::now();
                       self->wake_.cancel();
                     });
  }

  asio::awaitable<ProcessExit> finish(ProcessOptions options, std::string marker, std::stop_token stop) {
    const auto started = Clock::now();
    const std::stop_callback on_stop(stop, [self = shared_from_this()] {
      asio::post(self->wake_.get_executor(), [self] { self->wake_.cancel(); });
    });
    ProcessExit result;
    while (!done(options)) {
      Clock::time_point deadline = exited() ? last_activity_ + options.quiet_period : Clock::time_point::max();
      if (!ending_ && options.timeout) deadline = std::min(deadline, started + *options.timeout);
      if (ending_) deadline = std::min(deadline, Clock::now() + kLook);
      wake_.expires_at(deadline);
      boost::system::error_code ignored;
      co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));

      if (!ending_ && stop.stop_requested()) {
        result.aborted = true;
        begin_to_end(marker);
      } else if (!ending_ && !exited() && options.timeout && Clock::now() >= started + *options.timeout) {
        result.timed_out = true;
        begin_to_end(marker);
      } else if (ending_) {
        go_on_ending(marker);
      }
    }
    close();
    if (status_) {
      if (WIFSIGNALED(*status_)) {
        result.signal = WTERMSIG(*status_);
        result.code = 128 + result.signal;
      } else {
        result.code = WEXITSTATUS(*status_);
      }
    }
    co_return result;
  }

 private:
  bool exited() const { return status_.has_value(); }

  bool done(const ProcessOptions& options) const {
    if (ending_) return tree_is_gone_;
    return exited() && (end_of_output_ || Clock::now() >= last_activity_ + options.quiet_period);
  }

  void read() {
    output_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](const boost::system::error_code& failed, std::size_t n) {
                              if (self->closed_) return;
                              if (n > 0) {
                                self->last_activity_ = Clock::now();
                                self->on_output_(std::string_view(self->buffer_.data(), n));
                              }
                              if (failed) {
                                self->end_of_output_ = true;
                                self->wake_.cancel();
                              } else {
                                self->read();
                              }
                            });
  }

  void begin_to_end(const std::string& marker) {
    ending_ = true;
    term_at_ = Clock::now();
    signal_process_tree(pid_, marker, SIGTERM);
    go_on_ending(marker);
  }

  void go_on_ending(const std::string& marker) {
    const bool any_left = process_tree_lives(pid_, marker) || !exited();
    if (!any_left) {
      tree_is_gone_ = true;
    } else if (Clock::now() >= term_at_ + kGrace) {
      signal_process_tree(pid_, marker, SIGKILL);
      if (Clock::now() >= term_at_ + kGrace + kGiveUp) tree_is_gone_ = true;
    }
  }

  /// Output that comes later is nobody's (CA-321); a child that still writes must not be killed by a closed pipe, so
  /// the descriptor is drained in the background as long as somebody holds its other end.
  void close() {
    closed_ = true;
    boost::system::error_code ignored;
    exit_.cancel(ignored);
    if (end_of_output_) {
      output_.close(ignored);
    } else {
      output_.cancel(ignored);
      drain();
    }
  }

  void drain() {
    output_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](const boost::system::error_code& failed, std::size_t) {
                              if (failed != asio::error::operation_aborted && failed) return;
                              self->drain();
                            });
  }

  asio::steady_timer wake_;
  asio::posix::stream_descriptor output_;
  asio::posix::stream_descriptor exit_;  // a pidfd: readable when the process has ended
  pid_t pid_;
  std::function<void(std::string_view)> on_output_;
  std::string buffer_;
  std::optional<int> status_;
  Clock::time_point last_activity_ = Clock::now();
  Clock::time_point term_at_{};
  bool end_of_output_ = false;
  bool ending_ = false;
  bool tree_is_gone_ = false;
  bool closed_ = false;
};

}  // namespace

asio::awaitable<std::expected<ProcessExit, Error>> run_process(ProcessOptions options,
                                                               std::function<void(std::string_view bytes)> on_output,
                                                               std::stop_token stop) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  become_subreaper();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    co_return std::unexpected(error(fmt::format("cannot make a pipe: {}", std::strerror(errno))));
  }
  fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);  // fewer wake-ups; a refusal does no harm
  const std::string marker = new_process_tree_marker();
  const std::expected<pid_t, Error> pid = spawn(options, marker, ends[1]);
  ::close(ends[1]);
  const int pidfd = pid ? static_cast<int>(syscall(SYS_pidfd_open, *pid, 0)) : -1;
  if (!pid || pidfd < 0) {
    ::close(ends[0]);
    if (!pid) co_return std::unexpected(pid.error());
    kill(-*pid, SIGKILL);
    co_return std::unexpected(error(fmt::format("cannot watch {}: {}", options.argv.front(), std::strerror(errno))));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const ProcessTreeEntry entry(*pid, marker);
  const auto run = std::make_shared<Run>(executor, *pid, ends[0], pidfd, std::move(on_output));
  run->start();
  ProcessExit result = co_await run->finish(std::move(options), marker, std::move(stop));
  co_return result;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

}  // namespace tau
