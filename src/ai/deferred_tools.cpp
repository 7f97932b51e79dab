#include "ai/deferred_tools.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tau::ai {

ToolSplit split_tools(const std::vector<Tool>& tools, const std::vector<MessageRef>& messages, bool supports_deferred,
                      const std::function<std::string(const std::string&)>& normalize_name) {
  const auto key_of = [&](const std::string& name) { return normalize_name ? normalize_name(name) : name; };

  std::vector<Tool> unique;
  std::unordered_map<std::string, std::size_t> position;
  for (const Tool& tool : tools) {
    const auto [it, is_new] = position.emplace(key_of(tool.name), unique.size());
    if (is_new) {
      unique.push_back(tool);
    } else {
      unique[it->second] = tool;
    }
  }

  ToolSplit split;
  if (!supports_deferred) {
    split.immediate = std::move(unique);
    return split;
  }
  std::unordered_set<std::string> called;
  std::unordered_set<std::string> deferred;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (const auto* reply = std::get_if<AssistantMessage>(messages[i].get())) {
      for (const ToolCall* call : tool_calls_of(*reply))
        called.insert(key_of(call->name));
    } else if (const auto* result = std::get_if<ToolResultMessage>(messages[i].get())) {
      for (const std::string& name : result->added_tool_names) {
        const std::string key = key_of(name);
        const auto tool = position.find(key);
        if (tool == position.end() || called.contains(key) || !deferred.insert(key).second) continue;
        split.added_at[i].push_back(unique[tool->second]);
      }
    }
  }
  for (Tool& tool : unique) {
    const bool is_deferred = deferred.contains(key_of(tool.name));
    (is_deferred ? split.deferred : split.immediate).push_back(std::move(tool));
  }
  return split;
}

}  // namespace tau::ai
