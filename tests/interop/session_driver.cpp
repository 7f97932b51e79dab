// tau's sessions, one operation a line: {"file": ..., "op": ..., ...} on stdin, {"file": ...} on stdout. The operations
// are those of session_driver.mjs; what came of them is asked of the executable.
#include <iostream>
#include <string>

#include "coding/session/session.h"
#include "coding/session/session_fork.h"

namespace {

using tau::Error;
using tau::coding::Session;
namespace ai = tau::ai;
namespace json = tau::json;

using Done = std::expected<void, Error>;

Done prompt(Session& session, const json::object& o) {
  std::vector<ai::UserBlock> blocks{ai::TextContent{json::string_or(o, "text"), {}, {}}};
  if (Done said = session.append_message(ai::UserMessage{std::move(blocks), 1, {}}); !said) return said;
  const auto reply = ai::message_from_json(o.at("reply").as_object());
  if (!reply) return std::unexpected(reply.error());
  return session.append_message(std::get<ai::AssistantMessage>(*reply));
}

Done apply(Session& session, const std::string& op, const json::object& o) {
  if (op == "prompt") return prompt(session, o);
  if (op == "label") return session.append_label(json::string_or(o, "target"), json::string_or(o, "label"));
  if (op == "name") return session.append_session_info(json::string_or(o, "name"));
  if (op == "model") return session.append_model_change({json::string_or(o, "provider"), json::string_or(o, "model")});
  if (op == "thinking")
    return session.append_thinking_level_change(*ai::thinking_level_from(json::string_or(o, "level")));
  if (op == "custom") return session.append_custom("counter", o.at("data"));
  if (op == "compaction") {
    tau::coding::CompactionRecord record;
    record.summary = json::string_or(o, "summary");
    record.first_kept_id = json::string_or(o, "kept");
    record.tokens_before = 1234;
    record.details = json::object{{"readFiles", json::array{}}, {"modifiedFiles", json::array{}}};
    record.from_hook = false;
    return session.append_compaction(record);
  }
  if (op == "branch") {
    if (Done moved = session.branch(json::string_or(o, "target")); !moved) return moved;
    return prompt(session, o);
  }
  if (op == "summary") {
    return session.branch_with_summary(json::string_or(o, "target"), {json::string_or(o, "summary"), {}, {}, false});
  }
  return std::unexpected(tau::error("no such operation: " + op));
}

std::expected<std::string, Error> run(const json::object& o) {
  const std::filesystem::path file = json::string_or(o, "file");
  const std::string op = json::string_or(o, "op");
  auto session = Session::open(file, file.parent_path());
  if (!session) return std::unexpected(session.error());
  if (op == "fork") {
    const auto fork = tau::coding::fork_at(**session, *(*session)->leaf(), file.parent_path());
    if (!fork) return std::unexpected(fork.error());
    return (*fork)->file()->string();
  }
  if (const Done done = apply(**session, op, o); !done) return std::unexpected(done.error());
  return file.string();
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto file = run(json::parse(line)->as_object());
    if (!file) {
      std::cerr << file.error().message << '\n';
      return 1;
    }
    std::cout << json::to_text(json::object{{"file", *file}}) << std::endl;
  }
  return 0;
}
