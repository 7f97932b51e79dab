#include "coding/roles/bash_execution.h"

#include <utility>

#include <fmt/format.h>

#include "ai/json_members.h"
#include "coding/roles/user_text.h"

namespace tau::coding {

json::object to_json(const BashExecution& m) {
  json::object o{{"role", BashExecution::role}, {"command", m.command}, {"output", m.output}};
  ai::put(o, "exitCode", m.exit_code);
  o.emplace("cancelled", m.cancelled);
  o.emplace("truncated", m.truncated);
  ai::put(o, "fullOutputPath", m.full_output_path);
  o.emplace("timestamp", m.timestamp);
  ai::put(o, "excludeFromContext", m.exclude_from_context);
  ai::put_unknown(o, m.extra);
  return o;
}

std::expected<BashExecution, Error> from_json(std::type_identity<BashExecution>, const json::object& o) {
  BashExecution m;
  m.command = json::string_or(o, "command");
  m.output = json::string_or(o, "output");
  const auto code = json::find_integer(o, "exitCode");
  if (code && std::in_range<int>(*code)) m.exit_code = static_cast<int>(*code);
  m.cancelled = json::bool_or(o, "cancelled");
  m.truncated = json::bool_or(o, "truncated");
  m.full_output_path = ai::optional_string(o, "fullOutputPath");
  m.timestamp = json::find_integer(o, "timestamp").value_or(0);
  m.exclude_from_context = json::find_bool(o, "excludeFromContext");
  m.extra = ai::unknown_members(o, {"role", "command", "output", "exitCode", "cancelled", "truncated", "fullOutputPath",
                                    "timestamp", "excludeFromContext"});
  // pi writes null for a missing exit code in places: a value that we do not read is kept like an unknown member.
  const json::value* stored = o.if_contains("exitCode");
  if (stored != nullptr && !m.exit_code) m.extra.emplace("exitCode", *stored);
  return m;
}

std::string text_for_model(const BashExecution& m) {
  std::string text = fmt::format("Ran `{}`\n", m.command);
  text += m.output.empty() ? "(no output)" : fmt::format("```\n{}\n```", m.output);
  if (m.cancelled) {  // PR-15: hides an exit code
    text += "\n\n(command cancelled)";
  } else if (m.exit_code && *m.exit_code != 0) {
    text += fmt::format("\n\nCommand exited with code {}", *m.exit_code);
  }
  if (m.truncated && m.full_output_path && !m.full_output_path->empty()) {  // PR-17
    text += fmt::format("\n\n[Output truncated. Full output: {}]", *m.full_output_path);
  }
  return text;
}

std::vector<ai::MessageRef> project(const BashExecution& m) {
  if (m.exclude_from_context.value_or(false)) return {};
  return user_text(text_for_model(m), m.timestamp);
}

}  // namespace tau::coding
