#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "ai/base_options.h"
#include "ai/image_size.h"
#include "ai/providers/anthropic_compat.h"
#include "ai/providers/anthropic_messages.h"
#include "ai/strict_schema.h"
#include "ai/surrogates.h"
#include "ai/thinking_budget.h"
#include "ai/transform_messages.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

// What the vendor's service expects with subscription tokens (AI-100, AI-102, AI-108).
constexpr std::string_view kOAuthIdentity = "You are Claude Code, Anthropic's official CLI for Claude.";
constexpr std::string_view kOAuthToolNames[] = {
    "Read",          "Write",        "Edit",      "Bash",         "Grep",  "Glob", "AskUserQuestion",
    "EnterPlanMode", "ExitPlanMode", "KillShell", "NotebookEdit", "Skill", "Task", "TaskOutput",
    "TodoWrite",     "WebFetch",     "WebSearch"};

constexpr std::string_view kImageOnlyResult = "(see attached image)";
constexpr std::string_view kEmptyResult = "(no tool output)";  // FF-9

// One image beyond these limits makes the service refuse the whole request, each time (FF-11).
constexpr std::size_t kMaxImageBytes = std::size_t{5} << 20;  // of base64
constexpr std::uint32_t kMaxImageEdge = 8000;                 // pixels
constexpr std::string_view kImageTooLarge = "(image omitted: larger than the provider accepts)";

// ---- names -------------------------------------------------------------------------------------------------------

std::string wire_name(const std::string& name, bool oauth) {  // AI-108
  if (!oauth) return name;
  for (const std::string_view known : kOAuthToolNames) {
    if (same_ignoring_case(known, name)) return std::string(known);
  }
  return name;
}

// ---- tools (AI-77 to AI-80, AI-109, AI-110) ----------------------------------------------------------------------

struct WireTool {
  std::string name;
  const Tool* tool;
  bool deferred = false;
};

/// Tools by their names on the wire: the last definition counts, in the place of the first (AI-77).
std::vector<WireTool> wire_tools(const Context& context, bool oauth) {
  std::vector<WireTool> tools;
  for (const Tool& tool : context.tools) {
    std::string name = wire_name(tool.name, oauth);
    const auto known = std::find_if(tools.begin(), tools.end(), [&](const WireTool& t) { return t.name == name; });
    if (known != tools.end()) {
      known->tool = &tool;
    } else {
      tools.push_back({std::move(name), &tool});
    }
  }
  return tools;
}

/// Marks the tools that a result makes available before any call used them (AI-77, AI-79).
void mark_deferred(std::vector<WireTool>& tools, const std::vector<MessageRef>& messages, bool oauth) {
  std::set<std::string> used;
  for (const MessageRef& message : messages) {
    if (const auto* assistant = std::get_if<AssistantMessage>(message.get())) {
      for (const ToolCall* call : tool_calls_of(*assistant))
        used.insert(wire_name(call->name, oauth));
    } else if (const auto* result = std::get_if<ToolResultMessage>(message.get())) {
      for (const std::string& added : result->added_tool_names) {
        const std::string name = wire_name(added, oauth);
        if (used.contains(name)) continue;
        for (WireTool& tool : tools)
          tool.deferred = tool.deferred || tool.name == name;
      }
    }
  }
  if (std::all_of(tools.begin(), tools.end(), [](const WireTool& tool) { return tool.deferred; })) {
    for (WireTool& tool : tools)
      tool.deferred = false;
  }
}

std::vector<WireTool> deferred_last(const std::vector<WireTool>& tools) {
  std::vector<WireTool> out;
  for (const bool deferred : {false, true})
    std::copy_if(tools.begin(), tools.end(), std::back_inserter(out),
                 [&](const WireTool& tool) { return tool.deferred == deferred; });
  return out;
}

json::object plain_schema(const json::object& parameters) {
  json::object schema{{"type", "object"}};
  const json::object* properties = json::find_object(parameters, "properties");
  schema.emplace("properties", properties != nullptr ? *properties : json::object{});
  const json::array* required = json::find_array(parameters, "required");
  schema.emplace("required", required != nullptr ? *required : json::array{});
  // What "$ref" inside the properties points to; without it the schema is refused.
  for (const std::string_view definitions : {"$defs", "definitions"}) {
    if (const json::object* found = json::find_object(parameters, definitions)) schema.emplace(definitions, *found);
  }
  return schema;
}

std::expected<json::object, std::string> encode_tool(const WireTool& tool, const AnthropicCompat& compat) {
  auto strict = strict_parameters(*tool.tool, compat.strict_tools);
  if (!strict) return std::unexpected(std::move(strict.error()));
  json::object o{{"name", tool.name}, {"description", tool.tool->description}};
  if (compat.eager_tool_input) o.emplace("eager_input_streaming", true);
  if (*strict) o.emplace("strict", true);
  o.emplace("input_schema", *strict ? std::move(**strict) : plain_schema(tool.tool->parameters));
  if (tool.deferred) o.emplace("defer_loading", true);
  return o;
}

// ---- messages (AI-105, AI-106) -----------------------------------------------------------------------------------

/// Whether nothing would be left of the text in a request (FF-4, FF-9).
bool is_blank(std::string_view text) {
  if (utf8::is_blank(text)) return true;
  return utf8::has_lone_surrogates(text) && utf8::is_blank(utf8::remove_lone_surrogates(text));
}

json::object text_block(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

json::object image_block(const ImageContent& image) {
  const std::optional<ImageSize> size = image_size(image.data);
  if (image.data.size() > kMaxImageBytes || (size && std::max(size->width, size->height) > kMaxImageEdge))
    return text_block(kImageTooLarge);
  return {{"type", "image"},
          {"source", json::object{{"type", "base64"}, {"media_type", image.mime_type}, {"data", image.data}}}};
}

json::array user_blocks(const std::vector<UserBlock>& blocks) {
  json::array out;
  for (const UserBlock& block : blocks) {
    if (const auto* text = std::get_if<TextContent>(&block)) {
      if (!is_blank(text->text)) out.push_back(text_block(text->text));
    } else if (const auto* image = std::get_if<ImageContent>(&block)) {
      out.push_back(image_block(*image));
    }
  }
  return out;
}

/// Text as a string, or blocks where there is an image; an empty string when there is nothing.
json::value result_content(const std::vector<UserBlock>& blocks) {
  if (!has_image(blocks)) return json::value(text_of(blocks));
  json::array out = user_blocks(blocks);
  const bool has_text =
      std::any_of(out.begin(), out.end(), [](const json::value& b) { return b.as_object().at("type") == "text"; });
  if (!has_text) out.insert(out.begin(), text_block(kImageOnlyResult));
  return out;
}

class MessageEncoder {
 public:
  MessageEncoder(const Model& model, const AnthropicCompat& compat, const std::vector<WireTool>& tools, bool oauth)
      : model_(model), compat_(compat), oauth_(oauth) {
    for (const WireTool& tool : tools) {
      if (tool.deferred) hidden_.insert(tool.name);
    }
  }

  json::array encode(const std::vector<MessageRef>& messages) {
    for (const MessageRef& message : messages) {
      if (const auto* result = std::get_if<ToolResultMessage>(message.get())) {
        add_result(*result);
        continue;
      }
      flush_results();
      if (const auto* user = std::get_if<UserMessage>(message.get())) {
        add_user(*user);
      } else {
        add_assistant(std::get<AssistantMessage>(*message));
      }
    }
    flush_results();
    return std::move(out_);
  }

  /// Positions of assistant messages in the result, with the effort that each was made with (AI-104).
  const std::vector<std::pair<std::size_t, std::string>>& efforts() const { return efforts_; }

 private:
  void add(std::string_view role, json::value content) {
    out_.push_back(json::object{{"role", role}, {"content", std::move(content)}});
  }

  void add_user(const UserMessage& user) {
    if (const auto* text = std::get_if<std::string>(&user.content)) {
      if (!is_blank(*text)) add("user", json::value(*text));
      return;
    }
    json::array blocks = user_blocks(std::get<std::vector<UserBlock>>(user.content));
    if (!blocks.empty()) add("user", std::move(blocks));
  }

  void add_assistant(const AssistantMessage& assistant) {
    json::array blocks;
    for (const AssistantBlock& block : assistant.content) {
      if (const auto* text = std::get_if<TextContent>(&block)) {
        if (!is_blank(text->text)) blocks.push_back(text_block(text->text));
      } else if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
        add_thinking(blocks, *thinking);
      } else if (const auto* call = std::get_if<ToolCall>(&block)) {
        const bool has_input = call->arguments.is_object();
        blocks.push_back(json::object{{"type", "tool_use"},
                                      {"id", call->id},
                                      {"name", wire_name(call->name, oauth_)},
                                      {"input", has_input ? call->arguments : json::value(json::object{})}});
      }
    }
    if (blocks.empty()) return;
    if (assistant.api == kAnthropicMessagesApi && assistant.provider == model_.provider &&
        assistant.provider_thinking_level) {
      constexpr std::string_view kKnown[] = {"low", "medium", "high", "xhigh", "max"};
      const std::string& level = *assistant.provider_thinking_level;
      if (std::find(std::begin(kKnown), std::end(kKnown), level) != std::end(kKnown))
        efforts_.emplace_back(out_.size(), level);
    }
    add("assistant", std::move(blocks));
  }

  void add_thinking(json::array& blocks, const ThinkingContent& thinking) const {
    const std::string signature = thinking.thinking_signature.value_or("");
    if (thinking.redacted) {
      // Without its payload the block says nothing, and is refused.
      if (!signature.empty()) blocks.push_back(json::object{{"type", "redacted_thinking"}, {"data", signature}});
      return;
    }
    const bool is_signed = !utf8::is_blank(signature);
    if (!is_signed && is_blank(thinking.thinking)) return;
    if (!is_signed && !compat_.empty_signature) {
      blocks.push_back(text_block(thinking.thinking));
      return;
    }
    blocks.push_back(json::object{{"type", "thinking"},
                                  {"thinking", thinking.thinking},
                                  {"signature", is_signed ? std::string_view(signature) : std::string_view()}});
  }

  /// Hidden tools that become visible here, each once (AI-78).
  std::vector<std::string> revealed_by(const ToolResultMessage& result) {
    std::vector<std::string> names;
    for (const std::string& added : result.added_tool_names) {
      std::string name = wire_name(added, oauth_);
      if (hidden_.erase(name) > 0) names.push_back(std::move(name));
    }
    return names;
  }

  void add_result(const ToolResultMessage& result) {
    json::value content = result_content(result.content);
    const bool empty = content.is_string() && is_blank(json::view(content.get_string()));
    const std::vector<std::string> revealed = revealed_by(result);
    if (!revealed.empty()) {
      // A result with references holds nothing else: what it said follows after all results (AI-110).
      if (content.is_string()) {
        if (!is_blank(json::view(content.get_string()))) siblings_.push_back(text_block(content.get_string()));
      } else {
        for (json::value& block : content.get_array())
          siblings_.push_back(std::move(block));
      }
      json::array references;
      for (const std::string& name : revealed)
        references.push_back(json::object{{"type", "tool_reference"}, {"tool_name", name}});
      content = std::move(references);
    } else if (empty) {
      content = kEmptyResult;
    }
    results_.push_back(json::object{{"type", "tool_result"},
                                    {"tool_use_id", result.tool_call_id},
                                    {"content", std::move(content)},
                                    {"is_error", result.is_error}});
  }

  void flush_results() {
    if (results_.empty()) return;
    for (json::value& block : siblings_)
      results_.push_back(std::move(block));
    add("user", std::move(results_));
    results_ = {};
    siblings_ = {};
  }

  const Model& model_;
  const AnthropicCompat& compat_;
  bool oauth_;
  std::set<std::string> hidden_;  // deferred tools that no result has named yet
  json::array out_;
  json::array results_;
  json::array siblings_;
  std::vector<std::pair<std::size_t, std::string>> efforts_;
};

// ---- cache markers and efforts -----------------------------------------------------------------------------------

/// The last block of the last message, when that is the user's (AI-107).
void mark_last_message(json::array& messages, const json::object& marker) {
  if (messages.empty()) return;
  json::object& last = messages.back().as_object();
  if (last.at("role") != "user") return;
  json::value& content = last.at("content");
  if (content.is_string()) content = json::array{text_block(json::view(content.get_string()))};
  json::object& block = content.as_array().back().as_object();
  const json::value& type = block.at("type");
  if (type == "text" || type == "image" || type == "tool_result") block.emplace("cache_control", marker);
}

json::value effort_message(const std::string& effort) {
  return json::object{
      {"role", "system"}, {"content", json::array{}}, {"output_config", json::object{{"effort", effort}}}};
}

/// Says before each reply with which effort it was made, and at the end which one is wanted (AI-104).
json::array with_efforts(json::array messages, const std::vector<std::pair<std::size_t, std::string>>& efforts,
                         const std::string& wanted) {
  json::array out;
  out.reserve(messages.size() + efforts.size() + 1);
  auto effort = efforts.begin();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (effort != efforts.end() && effort->first == i) {
      out.push_back(effort_message(effort->second));
      ++effort;
    }
    out.push_back(std::move(messages[i]));
  }
  out.push_back(effort_message(wanted));
  return out;
}

// ---- members of the body -----------------------------------------------------------------------------------------

json::array system_blocks(const Context& context, bool oauth) {
  json::array blocks;
  if (oauth) blocks.push_back(text_block(kOAuthIdentity));
  if (context.system_prompt && !is_blank(*context.system_prompt)) blocks.push_back(text_block(*context.system_prompt));
  return blocks;
}

std::optional<json::object> cache_marker(const AnthropicCompat& compat, const StreamOptions& options) {
  const CacheRetention retention = cache_retention(options);
  if (retention == CacheRetention::kNone) return std::nullopt;
  json::object marker{{"type", "ephemeral"}};
  if (retention == CacheRetention::kLong && compat.long_cache_retention) marker.emplace("ttl", "1h");
  return marker;
}

/// `marker`: for the last tool that is not deferred (AI-107).
std::expected<json::array, std::string> tool_definitions(const std::vector<WireTool>& tools,
                                                         const AnthropicCompat& compat,
                                                         const std::optional<json::object>& marker) {
  json::array definitions;
  std::size_t last_immediate = 0;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    auto tool = encode_tool(tools[i], compat);
    if (!tool) return std::unexpected(std::move(tool.error()));
    definitions.push_back(*std::move(tool));
    if (!tools[i].deferred) last_immediate = i;
  }
  if (marker && compat.cache_control_on_tools && !definitions.empty())
    definitions[last_immediate].as_object().emplace("cache_control", *marker);
  return definitions;
}

/// Tokens of the reply, and those of them for thinking where the model wants a number (AI-59, AI-103).
TokenLimits token_limits(const Model& model, const AnthropicCompat& compat, const Context& context,
                         const StreamOptions& options, const BaseOptions& base) {
  TokenLimits limits{.max_tokens = base.max_tokens};
  if (!anthropic_thinks(model, options) || compat.adaptive_thinking || compat.mid_conversation_effort) return limits;
  limits = limits_with_thinking(base.max_tokens, model.max_tokens, *options.reasoning, options.thinking_budgets);
  limits.max_tokens = clamp_max_tokens(limits.max_tokens, model, context);
  limits.thinking_budget = leave_answer_room(limits.thinking_budget, limits.max_tokens);
  if (limits.thinking_budget == 0) limits.thinking_budget = kAnswerRoom;
  return limits;
}

void add_thinking(json::object& body, const Model& model, const AnthropicCompat& compat, const StreamOptions& options,
                  double budget) {  // AI-103
  if (compat.mid_conversation_effort) {
    body.emplace("thinking", json::object{{"type", "adaptive"},
                                          {"display", "summarized"},
                                          {"block_binding", json::object{{"prefix_mismatch_behavior", "drop_block"}}}});
    body.emplace("output_config", json::object{{"effort", "high"}});
  } else if (anthropic_thinks(model, options)) {
    if (compat.adaptive_thinking) {
      body.emplace("thinking", json::object{{"type", "adaptive"}, {"display", "summarized"}});
      body.emplace("output_config", json::object{{"effort", anthropic_effort_word(model, *options.reasoning)}});
    } else {
      body.emplace(
          "thinking",
          json::object{{"type", "enabled"}, {"budget_tokens", json::number(budget)}, {"display", "summarized"}});
    }
  } else if (model.reasoning) {
    const auto off = model.thinking_level_map.find(ThinkingLevel::kOff);
    const bool can_be_off = off == model.thinking_level_map.end() || off->second;
    if (can_be_off) body.emplace("thinking", json::object{{"type", "disabled"}});
  }
}

void add_choices(json::object& body, const AnthropicCompat& compat, const StreamOptions& options) {
  if (const auto user = json::find_string(options.metadata, "user_id"))
    body.emplace("metadata", json::object{{"user_id", *user}});
  if (options.tool_choice) {
    const json::value& choice = *options.tool_choice;
    body.emplace("tool_choice", choice.is_string() ? json::value(json::object{{"type", choice}}) : choice);
  }
  if (compat.fallback_models.empty()) return;
  json::array fallbacks;
  for (const std::string& id : compat.fallback_models)
    fallbacks.push_back(json::object{{"model", id}});
  body.emplace("fallbacks", std::move(fallbacks));
}

}  // namespace

std::expected<json::object, std::string> encode_anthropic_messages(const Model& model, const Context& context,
                                                                   const StreamOptions& options) {
  const AnthropicCompat compat(model);
  const bool oauth = uses_anthropic_oauth(model, options);
  const BaseOptions base = base_options(model, context, options);
  const std::optional<json::object> marker = cache_marker(compat, options);

  TransformOptions transform;
  transform.normalize_id = [](const std::string& id, const AssistantMessage&) { return plain_tool_call_id(id); };
  const std::vector<MessageRef> messages = transform_messages(context.messages, model, transform);

  std::vector<WireTool> tools = wire_tools(context, oauth);
  if (compat.tool_references) mark_deferred(tools, messages, oauth);
  tools = deferred_last(tools);

  MessageEncoder encoder(model, compat, tools, oauth);
  json::array wire_messages = encoder.encode(messages);
  if (marker) mark_last_message(wire_messages, *marker);
  if (const auto effort = anthropic_effort(model, options))
    wire_messages = with_efforts(std::move(wire_messages), encoder.efforts(), *effort);

  const TokenLimits limits = token_limits(model, compat, context, options, base);
  json::value whole = json::object{{"model", model.id},
                                   {"messages", std::move(wire_messages)},
                                   {"max_tokens", json::number(limits.max_tokens)},
                                   {"stream", true}};
  json::object& body = whole.get_object();

  json::array system = system_blocks(context, oauth);
  for (json::value& block : system) {
    if (marker) block.as_object().emplace("cache_control", *marker);
  }
  if (!system.empty()) body.emplace("system", std::move(system));
  if (base.temperature && compat.temperature && !anthropic_thinks(model, options) && !compat.mid_conversation_effort)
    body.emplace("temperature", json::number(*base.temperature));
  auto definitions = tool_definitions(tools, compat, marker);
  if (!definitions) return std::unexpected(std::move(definitions.error()));
  if (!definitions->empty()) body.emplace("tools", *std::move(definitions));
  add_thinking(body, model, compat, options, limits.thinking_budget);
  add_choices(body, compat, options);

  remove_lone_surrogates(whole);
  return std::move(body);
}

}  // namespace tau::ai
