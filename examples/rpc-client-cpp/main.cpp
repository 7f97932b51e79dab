// A conversation with `tau --mode rpc` from C++: one prompt, a tool call on the way, the answer as it streams.
//
//     rpc-client-cpp [TAU] [PROMPT]
//
// Plays the built-in tour, so that it needs no key. Of tau it uses only the JSON reader; everything else is POSIX.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "base/json.h"

namespace {

namespace json = tau::json;

class Client {
 public:
  explicit Client(const char* program) {
    int to_child[2];
    int from_child[2];
    if (::pipe(to_child) != 0 || ::pipe(from_child) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(to_child[0], STDIN_FILENO);
      ::dup2(from_child[1], STDOUT_FILENO);
      for (const int fd : {to_child[0], to_child[1], from_child[0], from_child[1]})
        ::close(fd);
      ::execlp(program, program, "--mode", "rpc", "--no-session", "--provider", "scripted", "--model", "tour", nullptr);
      ::_exit(127);
    }
    ::close(to_child[0]);
    ::close(from_child[1]);
    out_ = to_child[1];
    in_ = ::fdopen(from_child[0], "r");
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (in_ != nullptr) std::fclose(in_);
  }

  void send(const json::object& command) {
    const std::string line = json::to_text(command) + "\n";
    for (std::size_t at = 0; at < line.size();) {
      const ssize_t n = ::write(out_, line.data() + at, line.size() - at);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  }

  /// The next line; nothing when tau has ended. Only a line feed ends a line.
  std::optional<json::object> next() {
    std::string line;
    for (int c = std::fgetc(in_); c != EOF; c = std::fgetc(in_)) {
      if (c == '\n') {
        auto parsed = json::parse(line);
        if (parsed && parsed->is_object()) return parsed->get_object();
        line.clear();
      } else {
        line += static_cast<char>(c);
      }
    }
    return std::nullopt;
  }

  /// Closes stdin, which ends tau; its exit code.
  int close() {
    ::close(out_);
    int status = 0;
    ::waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }

 private:
  pid_t child_ = -1;
  int out_ = -1;
  std::FILE* in_ = nullptr;
};

}  // namespace

int main(int count, char** words) {
  Client tau(count > 1 ? words[1] : "tau");
  tau.send({{"id", 1}, {"type", "prompt"}, {"message", count > 2 ? words[2] : "Look around"}});
  int tools = 0;
  bool settled = false;
  while (const auto line = tau.next()) {
    const std::string type = json::string_or(*line, "type");
    if (type == "response" && !json::bool_or(*line, "success")) {
      std::fprintf(stderr, "%s\n", json::string_or(*line, "error").c_str());
      break;
    }
    if (type == "message_update") {
      const json::object* event = json::find_object(*line, "assistantMessageEvent");
      if (event != nullptr && json::string_or(*event, "type") == "text_delta") {
        std::fputs(json::string_or(*event, "delta").c_str(), stdout);
      }
    } else if (type == "tool_execution_start") {
      ++tools;
      std::printf("\n[%s]\n", json::string_or(*line, "toolName").c_str());
    } else if (type == "agent_settled") {  // not agent_end: a retry or a queued message may follow that
      settled = true;
      break;
    }
  }
  std::printf("\ntool calls: %d\n", tools);
  const int code = tau.close();
  return settled && tools > 0 ? code : 1;
}
