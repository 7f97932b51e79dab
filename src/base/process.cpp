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
/// How long output of background children is waited for that never falls silent (FF-56).
constexpr std::chrono::seconds kLongestAfterExit{3};
/// How often a process whose first thread has ended is looked at.
constexpr std::chrono::milliseconds kLastThreads{2};
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

/// Starts the program in a session of its own; returns its pid. `output` and `errors` become its stdout and stderr.
std::expected<pid_t, Error> spawn(const ProcessOptions& options, const std::string& marker, int output, int errors) {
  SpawnActions spawn;
  posix_spawn_file_actions_addopen(spawn.actions(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(spawn.actions(), output, 1);
  posix_spawn_file_actions_adddup2(spawn.actions(), errors, 2);
  posix_spawn_file_actions_addclosefrom_np(spawn.actions(), 3);  // also what others opened without O_CLOEXEC
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

/// The reading end of a pipe that the program writes to.
class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  using Sink = std::function<void(std::string_view)>;

  Pipe(const asio::any_io_executor& executor, int fd, Sink sink)
      : descriptor_(executor, fd), sink_(std::move(sink)), buffer_(kReadSize, '\0') {}

  /// on_change() is called after each piece of output and at the end of it.
  void start(std::function<void()> on_change) {
    on_change_ = std::move(on_change);
    read();
  }
  bool ended() const { return ended_; }

  /// Output that comes later is nobody's (CA-321); a child that still writes must not be killed by a closed pipe, so
  /// the descriptor is drained in the background as long as somebody holds its other end.
  void abandon() {
    sink_ = nullptr;
    on_change_ = nullptr;
    boost::system::error_code ignored;
    if (ended_) descriptor_.close(ignored);
  }

 private:
  void read() {
    descriptor_.async_read_some(asio::buffer(buffer_),
                                [self = shared_from_this()](const boost::system::error_code& failed, std::size_t n) {
                                  if (n > 0 && self->sink_) self->sink_(std::string_view(self->buffer_.data(), n));
                                  self->ended_ = static_cast<bool>(failed);
                                  if (self->on_change_) self->on_change_();
                                  if (!self->ended_) self->read();
                                });
  }

  asio::posix::stream_descriptor descriptor_;
  Sink sink_;
  std::string buffer_;
  std::function<void()> on_change_;
  bool ended_ = false;
};

/// Both ends, closed when nobody took them.
struct PipeEnds {
  int read = -1;
  int write = -1;

  PipeEnds() = default;
  PipeEnds(const PipeEnds&) = delete;
  PipeEnds& operator=(const PipeEnds&) = delete;
  ~PipeEnds() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
  bool open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    fcntl(read, F_SETPIPE_SZ, 1 << 20);  // fewer wake-ups; a refusal does no harm
    fcntl(read, F_SETFL, O_NONBLOCK);
    return true;
  }
  int take_read() { return std::exchange(read, -1); }
};

/// Reaps a child of ours when it ends and tells its status; nothing when somebody else has reaped it.
class ExitWatch : public std::enable_shared_from_this<ExitWatch> {
 public:
  using OnExit = std::function<void(std::optional<int> status)>;

  ExitWatch(const asio::any_io_executor& executor, pid_t pid, int pidfd)
      : descriptor_(executor, pidfd), again_(executor), pid_(pid) {}

  void start(OnExit on_exit) {
    on_exit_ = std::move(on_exit);
    wait();
  }
  void cancel() {
    on_exit_ = nullptr;
    boost::system::error_code ignored;
    descriptor_.cancel(ignored);
    again_.cancel();
  }
  asio::any_io_executor executor() { return descriptor_.get_executor(); }

 private:
  void wait() {
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [self = shared_from_this()](const boost::system::error_code& failed) {
                             if (!failed) self->reap();
                           });
  }

  void reap() {
    int status = 0;
    const pid_t reaped = waitpid(pid_, &status, WNOHANG);
    if (reaped == 0) {
      // The kernel reports the end of the first thread; a program with several lives on until the last one has ended.
      again_.expires_after(kLastThreads);
      again_.async_wait([self = shared_from_this()](const boost::system::error_code& stopped) {
        if (!stopped) self->reap();
      });
      return;
    }
    const OnExit on_exit = std::exchange(on_exit_, nullptr);
    if (on_exit) on_exit(reaped == pid_ ? std::optional(status) : std::nullopt);
  }

  asio::posix::stream_descriptor descriptor_;  // a pidfd: readable when the process has ended
  asio::steady_timer again_;
  pid_t pid_;
  OnExit on_exit_;
};

/// One run: asynchronous handlers note what happens and wake the coroutine, which decides.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(const asio::any_io_executor& executor, pid_t pid, int pidfd)
      : wake_(executor), exit_(std::make_shared<ExitWatch>(executor, pid, pidfd)), pid_(pid) {}

  void read_from(std::shared_ptr<Pipe> pipe) { pipes_.push_back(std::move(pipe)); }

  void start() {
    for (const std::shared_ptr<Pipe>& pipe : pipes_) {
      pipe->start([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        self->last_activity_ = Clock::now();
        if (self->output_ended()) self->wake_.cancel();
      });
    }
    exit_->start([weak = weak_from_this()](std::optional<int> status) {
      const auto self = weak.lock();
      if (!self) return;
      self->status_ = status.value_or(0);
      self->exited_at_ = self->last_activity_ = Clock::now();
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
      if (!ending_ && !exited() && options.timeout) deadline = std::min(deadline, started + *options.timeout);
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
    for (const std::shared_ptr<Pipe>& pipe : pipes_)
      pipe->abandon();
    exit_->cancel();
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

  bool output_ended() const {
    return std::all_of(pipes_.begin(), pipes_.end(), [](const auto& pipe) { return pipe->ended(); });
  }

  bool done(const ProcessOptions& options) const {
    if (ending_) return tree_is_gone_;
    if (!exited()) return false;
    const auto now = Clock::now();
    return output_ended() || now >= last_activity_ + options.quiet_period || now >= exited_at_ + kLongestAfterExit;
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

  asio::steady_timer wake_;
  std::vector<std::shared_ptr<Pipe>> pipes_;
  std::shared_ptr<ExitWatch> exit_;
  pid_t pid_;
  std::optional<int> status_;
  Clock::time_point last_activity_ = Clock::now();
  Clock::time_point exited_at_{};
  Clock::time_point term_at_{};
  bool ending_ = false;
  bool tree_is_gone_ = false;
};

/// Reaps the background children of earlier commands when they end. Ending may leave us further orphans.
void watch_orphans(const asio::any_io_executor& executor) {
  for (const pid_t pid : take_orphans()) {
    const std::shared_ptr<void> claim(nullptr, [pid](void*) { release_orphan(pid); });
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) continue;
    const auto watch = std::make_shared<ExitWatch>(executor, pid, pidfd);
    watch->start([claim, executor](std::optional<int>) { watch_orphans(executor); });
  }
}

}  // namespace

asio::awaitable<std::expected<ProcessExit, Error>> run_process(ProcessOptions options,
                                                               std::function<void(std::string_view bytes)> on_output,
                                                               std::stop_token stop) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  become_subreaper();
  PipeEnds output;
  PipeEnds errors;
  if (!output.open() || (options.on_errors && !errors.open())) {
    co_return std::unexpected(error(fmt::format("cannot make a pipe: {}", std::strerror(errno))));
  }
  const std::string marker = new_process_tree_marker();
  const std::expected<pid_t, Error> pid =
      spawn(options, marker, output.write, options.on_errors ? errors.write : output.write);
  if (!pid) co_return std::unexpected(pid.error());
  const ProcessTreeEntry entry(*pid, marker);
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  if (pidfd < 0) {
    const int reason = errno;
    kill(-*pid, SIGKILL);
    waitpid(*pid, nullptr, 0);
    co_return std::unexpected(error(fmt::format("cannot watch {}: {}", options.argv.front(), std::strerror(reason))));
  }
  for (PipeEnds* ends : {&output, &errors}) {
    if (ends->write >= 0) ::close(std::exchange(ends->write, -1));
  }
  const auto run = std::make_shared<Run>(executor, *pid, pidfd);
  run->read_from(std::make_shared<Pipe>(executor, output.take_read(), std::move(on_output)));
  if (options.on_errors) {
    run->read_from(std::make_shared<Pipe>(executor, errors.take_read(), std::move(options.on_errors)));
  }
  run->start();
  ProcessExit result = co_await run->finish(std::move(options), marker, std::move(stop));
  watch_orphans(executor);
  co_return result;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

}  // namespace tau
