#include "support/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace tau::test {

namespace {

using Clock = std::chrono::steady_clock;

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  return ends;
}

}  // namespace

Program::Program(const ProgramOptions& options) : input_(options.input), started_(Clock::now()) {
  signal(SIGPIPE, SIG_IGN);
  const auto in = make_pipe();
  const auto out = make_pipe();
  const auto err = make_pipe();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  if (!options.working_directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options.working_directory.c_str());
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words = options.argv;
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> settings;
  for (const auto& [name, value] : options.environment)
    settings.push_back(name + "=" + value);
  std::vector<char*> env;
  for (std::string& setting : settings)
    env.push_back(setting.data());
  env.push_back(nullptr);

  const int failed = posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  in_ = in[1];
  out_ = out[0];
  err_ = err[0];
  if (failed != 0) throw std::runtime_error("cannot start " + options.argv[0] + ": " + std::strerror(failed));
  fcntl(in_, F_SETFL, O_NONBLOCK);
  if (input_.empty()) close(std::exchange(in_, -1));  // a program may read stdin before it does anything else
}

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {in_, out_, err_}) {
    if (fd >= 0) close(fd);
  }
}

void Program::send_signal(int signal) const {
  kill(pid_, signal);
}

/// One round of reading and writing; false when both outputs are closed.
bool Program::pump(std::chrono::milliseconds limit) {
  std::array<pollfd, 3> fds{pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}, pollfd{in_, POLLOUT, 0}};
  if (in_ >= 0 && input_.empty()) {
    close(in_);
    in_ = -1;
    fds[2].fd = -1;
  }
  if (out_ < 0 && err_ < 0) return false;
  poll(fds.data(), fds.size(), static_cast<int>(limit.count()));
  if (in_ >= 0 && fds[2].revents != 0) {
    const ssize_t n = write(in_, input_.data(), input_.size());
    if (n > 0) input_.erase(0, static_cast<std::size_t>(n));
    if (n < 0 && errno != EAGAIN) input_.clear();
  }
  const auto take = [&](int& fd, const pollfd& state, std::string& into) {
    if (fd < 0 || state.revents == 0) return;
    char buffer[65536];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) {
      into.append(buffer, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      close(fd);
      fd = -1;
    }
  };
  take(out_, fds[0], result_.out);
  take(err_, fds[1], result_.err);
  return true;
}

bool Program::read_until(const std::function<bool(const ProgramResult&)>& condition, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (Clock::now() < end) {
    if (condition(result_)) return true;
    if (!pump(std::chrono::milliseconds(20))) return condition(result_);
  }
  return false;
}

ProgramResult Program::wait(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  int status = 0;
  while (true) {
    const bool open = pump(std::chrono::milliseconds(10));
    const pid_t done = waitpid(pid_, &status, WNOHANG);
    if (done == pid_) break;
    if (Clock::now() > end) {
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
      break;
    }
    if (!open) usleep(1000);
  }
  result_.wall = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_);
  pid_ = -1;
  // What is still in the pipes; a surviving grandchild may hold them open, so do not wait for their end.
  for (std::size_t before = 1; before != result_.out.size() + result_.err.size();) {
    before = result_.out.size() + result_.err.size();
    if (!pump(std::chrono::milliseconds(0))) break;
    pump(std::chrono::milliseconds(0));
  }
  if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  return result_;
}

ProgramResult run_program(const ProgramOptions& options, std::chrono::milliseconds limit) {
  return Program(options).wait(limit);
}

}  // namespace tau::test
