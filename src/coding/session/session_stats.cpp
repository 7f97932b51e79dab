#include "coding/session/session_stats.h"

#include <algorithm>

#include "ai/usage.h"

namespace tau::coding {

namespace {

void add_cost(SessionStats& stats, const std::string& name, double cost) {
  const auto same = [&](const SessionStats::Part& part) { return part.name == name; };
  const auto part = std::find_if(stats.costs.begin(), stats.costs.end(), same);
  if (part != stats.costs.end()) {
    part->cost += cost;
  } else {
    stats.costs.push_back({name, cost});
  }
}

/// A record without usage counts as none (pi fails on one).
void add_usage(SessionStats& stats, const json::object& holder, const std::string& name) {
  const json::object* o = json::find_object(holder, "usage");
  if (o == nullptr) return;
  const ai::Usage usage = ai::usage_from_json(*o);
  stats.input += usage.input;
  stats.output += usage.output;
  stats.cache_read += usage.cache_read;
  stats.cache_write += usage.cache_write;
  stats.cost += usage.cost.total;
  add_cost(stats, name, usage.cost.total);
}

std::size_t count_calls(const json::object& message) {
  const json::array* content = json::find_array(message, "content");
  if (content == nullptr) return 0;
  return static_cast<std::size_t>(std::count_if(content->begin(), content->end(), [](const json::value& block) {
    const json::object* o = block.if_object();
    return o != nullptr && json::find_string(*o, "type") == "toolCall";
  }));
}

}  // namespace

SessionStats stats_of(const EntryIndex& index) {
  const std::string other = "Tools/summaries";
  SessionStats stats;
  for (EntryNumber n = 0; n < index.size(); ++n) {
    const EntryType type = index.head(n).type;
    if (type != EntryType::kMessage && type != EntryType::kCompaction && type != EntryType::kBranchSummary) continue;
    const Entry entry = index.entry(n);
    if (type != EntryType::kMessage) {
      add_usage(stats, entry.source, other);
      continue;
    }
    const json::object* message = entry.message();
    if (message == nullptr) continue;
    ++stats.total_messages;
    switch (role_of(entry)) {
      case MessageRole::kUser:
        ++stats.user_messages;
        break;
      case MessageRole::kAssistant:
        ++stats.assistant_messages;
        stats.tool_calls += count_calls(*message);
        add_usage(stats, *message,
                  json::string_or(*message, "provider") + "/" +
                      json::string_or(*message, "responseModel", json::string_or(*message, "model")));
        break;
      case MessageRole::kToolResult:
        ++stats.tool_results;
        add_usage(stats, *message, other);
        break;
      default:
        break;
    }
  }
  std::erase_if(stats.costs, [](const SessionStats::Part& part) { return part.cost == 0; });
  std::sort(stats.costs.begin(), stats.costs.end(),
            [](const auto& x, const auto& y) { return x.cost != y.cost ? x.cost > y.cost : x.name < y.name; });
  return stats;
}

}  // namespace tau::coding
