#include "e2e/workplace.h"

#include <algorithm>
#include <cstdlib>

namespace tau::test {

namespace fs = std::filesystem;

Workplace::Workplace() {
  fs::create_directories(agent());
  fs::create_directories(project());
  fs::create_directories(folder_ / "tmp");
  const char* path = std::getenv("PATH");
  environment = {{"HOME", (folder_ / "home").string()},
                 {"PATH", path != nullptr ? path : "/usr/bin:/bin"},
                 {"TMPDIR", (folder_ / "tmp").string()},
                 {"LANG", "C.UTF-8"},
                 {"PI_OFFLINE", "1"}};
  // Sanitizers and coverage of the executable under test keep their settings.
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* text = std::getenv(name)) environment[name] = text;
  }
}

void Workplace::use_provider(const std::string& api) {
  api_ = api;
  folder_.write("home/.pi/agent/models.json", models_json(api, server.url()));
  folder_.write("home/.pi/agent/settings.json",
                R"({"defaultProvider":"local","defaultModel":"m1","retry":{"baseDelayMs":20}})");
}

void Workplace::reply(const Reply& reply) {
  server.add(sse_answer(reply_stream(api_, reply, ++replies_)));
}

void Workplace::hanging_reply(const Reply& reply, std::size_t bytes) {
  ScriptedAnswer answer = sse_answer(reply_stream(api_, reply, ++replies_).substr(0, bytes));
  answer.ending = ScriptedAnswer::Ending::kHang;
  server.add(std::move(answer));
}

ProgramOptions Workplace::options(std::vector<std::string> arguments, std::string input) const {
  arguments.insert(arguments.begin(), TAU_EXECUTABLE);
  return {std::move(arguments), project(), environment, std::move(input)};
}

std::vector<std::string> Workplace::conversation(std::size_t request) const {
  return conversation_of(api_, server.requests().at(request).json());
}

std::vector<fs::path> Workplace::session_files() const {
  std::vector<fs::path> files;
  const fs::path sessions = agent() / "sessions";
  if (!fs::exists(sessions)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(sessions)) {
    if (entry.is_regular_file() && entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<json::value> Workplace::session_lines() const {
  return read_json_lines(session_files().at(0));
}

std::vector<json::object> Workplace::session_messages() const {
  std::vector<json::object> messages;
  for (const json::value& line : session_lines()) {
    const json::object& entry = line.get_object();
    if (json::string_or(entry, "type") == "message") messages.push_back(*json::find_object(entry, "message"));
  }
  return messages;
}

}  // namespace tau::test
