// `tau session list`, `show`, `stats`.
#include <fmt/format.h>

#include "app/session_command/session_command.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "coding/session/session_list.h"
#include "coding/session/session_report.h"
#include "coding/session/session_stats.h"

namespace tau::app {

namespace {

std::string minutes(std::int64_t milliseconds) {
  std::string text = iso_time(milliseconds).substr(0, 16);
  text[10] = ' ';
  return text;
}

std::string one_line(std::string_view text, std::size_t length) {
  const std::string line = printable_line(utf8::prefix(text, length * 2));
  return std::string(utf8::prefix(line, length));
}

json::object info_json(const coding::SessionInfo& info) {
  json::object o{{"path", info.path.string()}, {"id", info.id}, {"cwd", info.cwd}};
  o["name"] = info.name ? json::value(*info.name) : json::value(nullptr);
  o["parentSessionPath"] = info.parent_session ? json::value(*info.parent_session) : json::value(nullptr);
  o["messageCount"] = info.message_count;
  o["firstMessage"] = info.first_message;
  o["created"] = info.created ? json::value(iso_time(*info.created)) : json::value(nullptr);
  o["modified"] = iso_time(info.modified);
  return o;
}

void write_stats(const coding::SessionStats& s, Output& out) {
  out.write(fmt::format("Messages  {} prompts, {} replies, {} tool calls, {} results, {} in all\n", s.user_messages,
                        s.assistant_messages, s.tool_calls, s.tool_results, s.total_messages));
  out.write(fmt::format("Tokens    {:.0f} in, {:.0f} out, {:.0f} from the cache, {:.0f} into it, {:.0f} in all\n",
                        s.input, s.output, s.cache_read, s.cache_write, s.total_tokens()));
  out.write(fmt::format("Cost      ${:.4f}\n", s.cost));
  for (const coding::SessionStats::Part& part : s.costs)
    out.write(fmt::format("          ${:.4f}  {}\n", part.cost, printable_line(part.name)));
}

}  // namespace

CommandResult list_sessions(const SessionCommand& command, Output& out) {
  coding::ListOptions options;
  options.detail = coding::InfoDetail::kHead;
  std::filesystem::path folder = command.place.folder;
  if (!command.operands.empty()) {
    folder = resolve_path(command.operands.front(), command.cwd);
    if (!std::filesystem::is_directory(folder)) {
      return std::unexpected(error(fmt::format("not a folder: {}", folder.string())));
    }
  } else if (command.place.flat && !command.all) {
    options.only_cwd = command.cwd;
  }
  const bool everywhere = command.all && command.operands.empty() && !command.place.flat;
  const std::vector<coding::SessionInfo> found =
      everywhere ? coding::list_all_sessions(command.place.root, options) : coding::list_sessions(folder, options);
  if (command.json) {
    json::array list;
    for (const coding::SessionInfo& info : found)
      list.push_back(info_json(info));
    out.write(json::to_text(list, 1) + "\n");
    return 0;
  }
  for (const coding::SessionInfo& info : found) {
    out.write(fmt::format("{}  {}  {:>6} messages  {}{}\n", minutes(info.modified), one_line(info.id, 36),
                          info.message_count, one_line(info.name ? *info.name : info.first_message, 60),
                          everywhere ? "  (" + printable_line(info.cwd) + ")" : ""));
  }
  if (found.empty()) out.write("No sessions. tau session list --all looks in every project.\n");
  return 0;
}

CommandResult show_session(const SessionCommand& command, Output& out) {
  const auto session = session_of(command);
  if (!session) return std::unexpected(session.error());
  if (command.json) {
    std::string text;
    json::write(text, coding::session_report(**session));
    out.write(text + "\n");
    return 0;
  }
  const coding::Session& s = **session;
  const coding::SessionSettings settings = s.settings();
  const coding::Labels labels = s.labels();
  std::size_t leaves = 0;
  const coding::SessionTree tree = s.tree();
  for (const std::vector<coding::EntryNumber>& children : tree.children)
    leaves += children.empty() ? 1 : 0;
  out.write(fmt::format("File      {}\n", printable_line(s.file()->string())));
  out.write(fmt::format("Session   {}\n", printable_line(s.id())));
  if (const auto name = s.name()) out.write(fmt::format("Name      {}\n", printable_line(*name)));
  out.write(fmt::format("Folder    {}\n", printable_line(s.cwd().string())));
  out.write(fmt::format("Started   {}\n", printable_line(json::string_or(s.header(), "timestamp"))));
  if (const auto parent = json::find_string(s.header(), "parentSession")) {
    out.write(fmt::format("Made from {}\n", printable_line(*parent)));
  }
  out.write(fmt::format("Entries   {}, {} on the current path, {} branches, leaf {}\n", s.index().size(),
                        s.path().size(), leaves, printable_line(s.leaf().value_or("none"))));
  out.write(fmt::format("Model     {}, thinking {}\n",
                        settings.model ? printable_line(settings.model->provider + "/" + settings.model->id) : "none",
                        printable_line(settings.thinking_level)));
  out.write(fmt::format("Context   {} messages\n", s.message_count()));
  for (const std::string& target : labels.order) {
    out.write(
        fmt::format("Label     {} on {}\n", one_line(labels.by_target.at(target).text, 60), printable_line(target)));
  }
  write_stats(coding::stats_of(s.index()), out);
  for (const std::string& warning : s.warnings())
    out.write(fmt::format("Damage    {}\n", printable_line(warning)));
  return 0;
}

CommandResult show_stats(const SessionCommand& command, Output& out) {
  const auto session = session_of(command);
  if (!session) return std::unexpected(session.error());
  if (command.json) {
    out.write(json::to_text(coding::stats_report(**session), 1) + "\n");
  } else {
    write_stats(coding::stats_of((*session)->index()), out);
  }
  return 0;
}

}  // namespace tau::app
