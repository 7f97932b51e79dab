// A command that the user ran with `!` or `!!`: kept whole in transcript and file, flattened late for the model.
#pragma once

#include <optional>
#include <string>

#include "agent/agent_message.h"

namespace tau::coding {

struct BashExecution {
  static constexpr std::string_view role = "bashExecution";
  static constexpr int version = 1;

  std::string command;           // as typed, without a configured prefix
  std::string output;            // cleaned, perhaps only its end
  std::optional<int> exit_code;  // nothing when cancelled
  bool cancelled = false;
  bool truncated = false;
  std::optional<std::string> full_output_path;
  ai::Milliseconds timestamp = 0;            // when it ended
  std::optional<bool> exclude_from_context;  // `!!`: stored and shown, not sent
  json::object extra;
};

json::object to_json(const BashExecution& m);
std::expected<BashExecution, Error> from_json(std::type_identity<BashExecution>, const json::object& o);
/// A user message with the command, its output and how it ended; nothing for `!!`.
std::vector<ai::MessageRef> project(const BashExecution& m);

/// The text of that message (agent.md 9.3).
std::string text_for_model(const BashExecution& m);

}  // namespace tau::coding
