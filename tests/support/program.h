// Running the real executable: arguments, environment, stdin in; stdout, stderr and the way it ended out.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tau::test {

struct ProgramOptions {
  std::vector<std::string> argv;  // argv[0] is a path
  std::filesystem::path working_directory;
  std::map<std::string, std::string> environment;  // the whole environment
  std::string input;                               // stdin; a pipe that is closed after it
};

struct ProgramResult {
  int exit_code = -1;  // -1 when ended by a signal
  int signal = 0;
  std::string out;
  std::string err;
  std::chrono::milliseconds wall{0};
};

/// A running program. Its output is collected by `wait`; the destructor kills it.
class Program {
 public:
  explicit Program(const ProgramOptions& options);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void send_signal(int signal) const;
  /// Reads output until `condition` holds for what has been read so far; false when the program ends or time runs out.
  bool read_until(const std::function<bool(const ProgramResult&)>& condition, std::chrono::milliseconds limit);
  /// To the end. A program that is not done within `limit` is killed (signal 9).
  ProgramResult wait(std::chrono::milliseconds limit = std::chrono::seconds(60));

 private:
  bool pump(std::chrono::milliseconds limit);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  int in_ = -1;
  std::string input_;
  ProgramResult result_;
  std::chrono::steady_clock::time_point started_;
};

ProgramResult run_program(const ProgramOptions& options, std::chrono::milliseconds limit = std::chrono::seconds(60));

}  // namespace tau::test
