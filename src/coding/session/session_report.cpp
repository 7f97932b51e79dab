#include "coding/session/session_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "coding/roles/convert_to_llm.h"
#include "coding/session/session_stats.h"

namespace tau::coding {

namespace {

constexpr std::size_t kDeepestTree = 400;

json::array ids_of(const EntryIndex& index, const std::vector<EntryNumber>& entries) {
  json::array ids;
  ids.reserve(entries.size());
  for (const EntryNumber n : entries)
    ids.push_back(id_json(index.head(n).id));
  return ids;
}

/// Entries on the longest way down; a tree may meet a record more than once, but its walks end.
std::size_t depth_of(const SessionTree& tree) {
  std::size_t deepest = 0;
  std::vector<std::pair<EntryNumber, std::size_t>> open;
  for (const EntryNumber root : tree.roots)
    open.emplace_back(root, 1);
  while (!open.empty() && deepest <= kDeepestTree) {
    const auto [n, depth] = open.back();
    open.pop_back();
    deepest = std::max(deepest, depth);
    for (const EntryNumber child : tree.children[n])
      open.emplace_back(child, depth + 1);
  }
  return deepest;
}

json::object node_json(const EntryIndex& index, const SessionTree& tree, const Labels& labels, EntryNumber n) {
  const std::string_view id = index.head(n).id;
  json::object node{{"id", id_json(id)}};
  if (const auto label = labels.by_target.find(id); id.data() != nullptr && label != labels.by_target.end()) {
    node["label"] = label->second.text;
  }
  json::array children;
  for (const EntryNumber child : tree.children[n])
    children.push_back(node_json(index, tree, labels, child));
  node["children"] = std::move(children);
  return node;
}

json::object labels_json(const EntryIndex& index, const Labels& labels) {
  json::object out;
  for (const std::string& target : labels.order) {
    const Label& label = labels.by_target.at(target);
    json::object o{{"label", label.text}, {"timestamp", label.timestamp}};
    if (!index.find(target)) o["targetMissing"] = true;
    out[target] = std::move(o);
  }
  return out;
}

}  // namespace

json::value id_json(std::string_view key) {
  return key.data() == nullptr ? json::value(nullptr) : id_value(key);
}

json::object stats_report(const Session& session) {
  const SessionStats s = stats_of(session.index());
  json::object tokens{{"input", json::number(s.input)},
                      {"output", json::number(s.output)},
                      {"cacheRead", json::number(s.cache_read)},
                      {"cacheWrite", json::number(s.cache_write)},
                      {"total", json::number(s.total_tokens())}};
  json::array parts;
  for (const SessionStats::Part& part : s.costs)
    parts.push_back(json::object{{"name", part.name}, {"cost", json::number(part.cost)}});
  return {{"sessionId", session.id()},   {"userMessages", s.user_messages}, {"assistantMessages", s.assistant_messages},
          {"toolCalls", s.tool_calls},   {"toolResults", s.tool_results},   {"totalMessages", s.total_messages},
          {"tokens", std::move(tokens)}, {"cost", json::number(s.cost)},    {"costs", std::move(parts)}};
}

json::object session_report(const Session& session) {
  const EntryIndex& index = session.index();
  std::vector<EntryNumber> all(index.size());
  for (EntryNumber n = 0; n < all.size(); ++n)
    all[n] = n;
  const Labels labels = session.labels();
  const SessionTree tree = session.tree();
  const std::vector<EntryNumber> path = session.path();

  json::object report{
      {"header", session.header()},     {"sessionId", session.id()},
      {"cwd", session.cwd().string()},  {"entryCount", index.size()},
      {"entryIds", ids_of(index, all)}, {"leafId", session.leaf() ? id_value(*session.leaf()) : json::value(nullptr)}};
  if (depth_of(tree) <= kDeepestTree) {
    json::array roots;
    for (const EntryNumber root : tree.roots)
      roots.push_back(node_json(index, tree, labels, root));
    report["roots"] = std::move(roots);
  }
  report["branchIds"] = ids_of(index, path);
  report["contextEntryIds"] = ids_of(index, context_entries(index, path));

  const SessionContext context = session.context();
  json::array messages;
  for (const agent::AgentMessage& message : context.messages)
    messages.push_back(message.to_json());
  json::object context_json{{"messages", std::move(messages)}, {"thinkingLevel", context.thinking_level}};
  context_json["model"] =
      context.model ? json::value(json::object{{"provider", context.model->provider}, {"modelId", context.model->id}})
                    : json::value(nullptr);
  report["context"] = std::move(context_json);
  json::array sent;
  for (const ai::MessageRef& message : convert_to_llm(context.messages))
    sent.push_back(ai::to_json(*message));
  report["llmMessages"] = std::move(sent);

  const auto name = session.name();
  report["sessionName"] = name ? json::value(*name) : json::value(nullptr);
  report["labels"] = labels_json(index, labels);
  report["stats"] = stats_report(session);
  json::array warnings;
  for (const std::string& warning : session.warnings())
    warnings.emplace_back(warning);
  report["warnings"] = std::move(warnings);
  return report;
}

}  // namespace tau::coding
