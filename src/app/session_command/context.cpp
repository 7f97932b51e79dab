// `tau session context`: who sees what; with --wire the request that the conversation would make.
#include <fmt/format.h>

#include "app/session_command/session_command.h"
#include "app/session_command/wire.h"
#include "base/printable.h"
#include "coding/session/session_report.h"
#include "coding/session/session_views.h"

namespace tau::app {

CommandResult show_context(const SessionCommand& command, Output& out) {
  const auto session = session_of(command);
  if (!session) return std::unexpected(session.error());
  const auto views = coding::views_of(**session, command.leaf);
  if (!views) return std::unexpected(views.error());
  if (command.wire) {
    auto body = request_body(command, **session, views->context);
    if (!body) return std::unexpected(std::move(body.error()));
    out.write(*body + "\n");
    return 0;
  }
  const coding::EntryIndex& index = (*session)->index();
  if (command.json) {
    json::array entries;
    for (const coding::EntryView& view : views->entries) {
      entries.push_back(json::object{{"id", coding::id_json(index.head(view.number).id)},
                                     {"type", coding::to_string(index.head(view.number).type)},
                                     {"disk", true},
                                     {"screen", view.on_screen},
                                     {"screenRule", view.screen_rule},
                                     {"model", view.for_model},
                                     {"modelRule", view.model_rule},
                                     {"tokens", json::number(view.tokens)},
                                     {"text", view.text}});
    }
    out.write(json::to_text(json::object{{"entries", std::move(entries)}, {"tokens", json::number(views->tokens)}}, 1) +
              "\n");
    return 0;
  }
  out.write("disk screen model   tokens  entry\n");
  for (const coding::EntryView& view : views->entries) {
    const std::string_view id = index.head(view.number).id;
    out.write(fmt::format(" yes  {:<6} {:<5} {:>8.0f}  {:<8}  {}\n", view.on_screen ? "yes" : "no",
                          view.for_model ? "yes" : "no", view.tokens, printable_line(id), view.text));
    out.write(fmt::format("{:32}screen: {}; model: {}\n", "", view.screen_rule, view.model_rule));
  }
  out.write(fmt::format("{:.0f} tokens (estimated) in {} messages\n", views->tokens, views->context.messages.size()));
  return 0;
}

}  // namespace tau::app
