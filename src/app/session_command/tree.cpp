// `tau session tree`: one line an entry, indented where the tree branches.
#include <fmt/format.h>

#include "app/session_command/session_command.h"
#include "base/printable.h"
#include "coding/session/session_report.h"
#include "coding/session/session_views.h"

namespace tau::app {

namespace {

constexpr std::size_t kTextLength = 70;  // code points
constexpr std::size_t kMaxIndent = 30;   // levels; deeper branches stay there

using coding::EntryNumber;

struct Row {
  EntryNumber number;
  std::size_t depth;  // branches above it
};

/// A walk from the roots. It ends although records with repeated ids can be met more than once.
std::vector<Row> rows_of(const coding::SessionTree& tree) {
  std::vector<Row> rows;
  std::vector<Row> open;
  for (auto root = tree.roots.rbegin(); root != tree.roots.rend(); ++root)
    open.push_back({*root, 0});
  while (!open.empty()) {
    const Row row = open.back();
    open.pop_back();
    rows.push_back(row);
    const std::vector<EntryNumber>& children = tree.children[row.number];
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      open.push_back({*child, row.depth + (children.size() > 1 ? 1 : 0)});
  }
  return rows;
}

}  // namespace

CommandResult show_tree(const SessionCommand& command, Output& out) {
  const auto session = session_of(command);
  if (!session) return std::unexpected(session.error());
  const coding::EntryIndex& index = (*session)->index();
  const coding::Labels labels = (*session)->labels();
  std::vector<bool> on_path(index.size());
  for (const EntryNumber n : (*session)->path())
    on_path[n] = true;
  const auto label_of = [&](EntryNumber n) {
    const auto label = labels.by_target.find(index.head(n).id);
    return label != labels.by_target.end() ? label->second.text : std::string();
  };
  if (command.json) out.write("[");
  bool first = true;
  for (const Row& row : rows_of((*session)->tree())) {
    const coding::Entry entry = index.entry(row.number);
    const coding::EntryHead& head = index.head(row.number);
    const bool is_leaf = (*session)->leaf_number() == row.number;
    if (command.json) {
      json::object o{{"id", coding::id_json(head.id)},
                     {"parentId", coding::id_json(head.parent)},
                     {"type", entry.type_name()},
                     {"depth", row.depth},
                     {"onPath", static_cast<bool>(on_path[row.number])},
                     {"isLeaf", is_leaf},
                     {"text", coding::entry_text(entry, kTextLength)}};
      if (const std::string label = label_of(row.number); !label.empty()) o["label"] = label;
      out.write(std::string(first ? "\n" : ",\n") + json::to_text(o));
      first = false;
      continue;
    }
    const std::string label = label_of(row.number);
    const std::string indent(std::min(row.depth, kMaxIndent) * 2, ' ');
    out.write(fmt::format("{}{} {:<8}  {}{}{}\n", indent, on_path[row.number] ? '*' : ' ',
                          printable_line(head.id.data() != nullptr && head.id[0] != '\0' ? head.id : "-"),
                          label.empty() ? "" : "[" + printable_line(label) + "] ",
                          coding::entry_text(entry, kTextLength), is_leaf ? "  <- leaf" : ""));
  }
  if (command.json) out.write("\n]\n");
  return 0;
}

}  // namespace tau::app
