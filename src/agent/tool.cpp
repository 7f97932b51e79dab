#include "agent/tool.h"

namespace tau::agent {

json::object to_json(const ToolResult& result) {
  json::object o{{"content", ai::to_json(result.content)}};
  if (result.details) o.emplace("details", *result.details);
  if (result.usage) o.emplace("usage", ai::to_json(*result.usage));
  if (!result.added_tool_names.empty()) {
    o.emplace("addedToolNames", json::array(result.added_tool_names.begin(), result.added_tool_names.end()));
  }
  if (result.terminate) o.emplace("terminate", true);
  return o;
}

ToolResult text_result(std::string text) {
  ToolResult result;
  result.content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  result.details = json::object{};
  return result;
}

}  // namespace tau::agent
