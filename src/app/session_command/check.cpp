// `tau session check` and `repair`.
#include <fmt/format.h>

#include "app/session_command/session_command.h"
#include "base/printable.h"
#include "coding/session/session_check.h"

namespace tau::app {

namespace {

std::string line_of(const coding::Finding& finding) {
  const std::string where = finding.line != 0 ? fmt::format("line {}: ", finding.line) : "";
  return fmt::format("{}{} ({})\n", where, printable_line(finding.what), finding.rule);
}

json::array findings_json(const std::vector<coding::Finding>& findings) {
  json::array list;
  for (const coding::Finding& finding : findings)
    list.push_back(json::object{{"line", finding.line}, {"rule", finding.rule}, {"what", finding.what}});
  return list;
}

}  // namespace

CommandResult check_session(const SessionCommand& command, Output& out) {
  const auto file = session_file_of(command);
  if (!file) return std::unexpected(file.error());
  const auto findings = coding::check_session(*file);
  if (!findings) return std::unexpected(findings.error());
  if (command.json) {
    out.write(json::to_text(findings_json(*findings), 1) + "\n");
  } else {
    for (const coding::Finding& finding : *findings)
      out.write(line_of(finding));
    if (findings->empty()) out.write("Nothing is wrong with this file.\n");
  }
  return findings->empty() ? 0 : 1;
}

CommandResult repair_session(const SessionCommand& command, Output& out) {
  const auto file = session_file_of(command);
  if (!file) return std::unexpected(file.error());
  const auto repaired = coding::repair_session(*file);
  if (!repaired) return std::unexpected(repaired.error());
  for (const coding::Finding& done : repaired->done)
    out.write(line_of(done));
  if (repaired->done.empty()) out.write("Nothing had to be mended.\n");
  out.write(
      fmt::format("Mended copy: {}\nThe file itself was not changed.\n", printable_line(repaired->file.string())));
  return 0;
}

}  // namespace tau::app
