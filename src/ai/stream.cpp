#include "ai/stream.h"

#include <cstdlib>

#include "base/utf8.h"

namespace tau::ai {

namespace {

std::string event_type(BlockKind kind, std::string_view phase) {
  constexpr std::string_view kNames[] = {"text", "thinking", "toolcall"};
  return std::string(kNames[static_cast<std::size_t>(kind)]) + "_" + std::string(phase);
}

struct ToJson {
  const AssistantMessage& partial;

  json::object operator()(const StreamStart&) const { return {{"type", "start"}}; }
  json::object operator()(const BlockStart& e) const {
    return {{"type", event_type(e.kind, "start")}, {"contentIndex", e.index}};
  }
  json::object operator()(const BlockDelta& e) const {
    return {{"type", event_type(e.kind, "delta")}, {"contentIndex", e.index}, {"delta", e.delta}};
  }
  json::object operator()(const BlockEnd& e) const {
    json::object o{{"type", event_type(e.kind, "end")}, {"contentIndex", e.index}};
    const AssistantBlock& block = partial.content.at(e.index);
    if (const auto* call = std::get_if<ToolCall>(&block)) {
      o.emplace("toolCall", to_json(*call));
    } else if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
      o.emplace("content", thinking->thinking);
    } else if (const auto* text = std::get_if<TextContent>(&block)) {
      o.emplace("content", text->text);
    }
    return o;
  }
  json::object operator()(const StreamDone&) const {
    return {{"type", "done"}, {"reason", to_string(partial.stop_reason)}};
  }
  json::object operator()(const StreamError&) const {
    return {{"type", "error"}, {"reason", to_string(partial.stop_reason)}};
  }
};

}  // namespace

json::object to_json(const StreamEvent& event) {
  return std::visit(ToJson{event.partial}, event.what);
}

json::object to_json(const Tool& tool) {
  json::object o{{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}};
  if (tool.constrained_sampling) o.emplace("constrainedSampling", *tool.constrained_sampling);
  return o;
}

Tool tool_from_json(const json::object& o) {
  Tool tool{json::string_or(o, "name"), json::string_or(o, "description"), {}, {}};
  if (const json::object* parameters = json::find_object(o, "parameters")) tool.parameters = *parameters;
  if (const json::value* sampling = json::find(o, "constrainedSampling")) tool.constrained_sampling = *sampling;
  return tool;
}

std::optional<std::string> provider_env(const StreamOptions& options, const std::string& name) {
  if (const auto it = options.env.find(name); it != options.env.end() && !utf8::is_blank(it->second)) return it->second;
  const char* text = std::getenv(name.c_str());
  if (text == nullptr || utf8::is_blank(text)) return std::nullopt;
  return text;
}

}  // namespace tau::ai
