#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/image_size.h"
#include "ai/provider_call.h"
#include "ai/providers/anthropic_messages.h"
#include "ai/strict_schema.h"
#include "ai/thinking_budget.h"
#include "ai/transform_messages.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

// What the vendor's service expects with subscription tokens (AI-100, AI-102, AI-108).
constexpr std::string_view kOAuthIdentity = "You are Claude Code, Anthropic's official CLI for Claude.";
constexpr std::string_view kOAuthUserAgent = "claude-cli/2.1.251";
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

// ---- what differs between models ---------------------------------------------------------------------------------

/// A version that tool references need: claude-<family>-<major>[-<minor>], 4.5 at least (AI-110).
bool version_has_tool_references(std::string_view id) {
  constexpr std::string_view kFamilies[] = {"claude-opus-", "claude-sonnet-", "claude-fable-"};
  for (const std::string_view family : kFamilies) {
    const std::size_t at = id.find(family);
    if (at == std::string_view::npos) continue;
    std::string_view rest = id.substr(at + family.size());
    const auto read = [&rest](int& number) {
      const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      const auto length = static_cast<std::size_t>(end - rest.data());
      if (failure != std::errc() || length == 0) return std::size_t{0};
      rest.remove_prefix(length);
      return length;
    };
    int major = 0;
    if (read(major) == 0) return false;
    int minor = 0;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      if (read(minor) >= 8) minor = 0;  // a date
    }
    return major > 4 || (major == 4 && minor >= 5);
  }
  return false;
}

struct Compat {
  bool eager_tool_input;
  bool long_cache_retention;
  bool session_affinity;
  bool cache_control_on_tools;
  bool temperature;
  bool adaptive_thinking;
  bool empty_signature;
  bool strict_tools;
  bool mid_conversation_effort;
  bool tool_references;
  std::vector<std::string> fallback_models;

  explicit Compat(const Model& model) {
    const json::object& c = model.compat;
    eager_tool_input = json::bool_or(c, "supportsEagerToolInputStreaming", true);
    long_cache_retention = json::bool_or(c, "supportsLongCacheRetention", true);
    session_affinity = json::bool_or(c, "sendSessionAffinityHeaders");
    cache_control_on_tools = json::bool_or(c, "supportsCacheControlOnTools", true);
    temperature = json::bool_or(c, "supportsTemperature", true);
    adaptive_thinking = json::bool_or(c, "forceAdaptiveThinking");
    empty_signature = json::bool_or(c, "allowEmptySignature");
    strict_tools = json::bool_or(c, "supportsStrictTools");
    mid_conversation_effort = json::bool_or(c, "supportsMidConvoEffort");
    const bool by_version = model.provider == "anthropic" && model.id.find("haiku") == std::string::npos &&
                            version_has_tool_references(model.id);
    tool_references = json::bool_or(c, "supportsToolReferences", by_version);
    if (const json::array* models = json::find_array(c, "allowedFallbackModels")) {
      for (const json::value& entry : *models) {
        const json::value* id = json::find(entry, "model");
        if (id != nullptr && id->is_string()) fallback_models.emplace_back(json::view(id->get_string()));
      }
    }
  }
};

bool thinks(const Model& model, const StreamOptions& options) {
  return model.reasoning && options.reasoning && *options.reasoning != ThinkingLevel::kOff;
}

std::string effort_word(const Model& model, ThinkingLevel level) {
  const auto mapped = model.thinking_level_map.find(level);
  if (mapped != model.thinking_level_map.end() && mapped->second) return *mapped->second;
  if (level <= ThinkingLevel::kLow) return "low";
  return level == ThinkingLevel::kMedium ? "medium" : "high";
}

// ---- names -------------------------------------------------------------------------------------------------------

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

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

std::expected<json::object, std::string> encode_tool(const WireTool& tool, const Compat& compat) {
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
  MessageEncoder(const Model& model, const Compat& compat, const std::vector<WireTool>& tools, bool oauth)
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
  const Compat& compat_;
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

// ---- headers -----------------------------------------------------------------------------------------------------

const std::optional<std::string>* find_header(const Headers& headers, std::string_view name) {
  for (auto it = headers.rbegin(); it != headers.rend(); ++it) {
    if (same_ignoring_case(it->first, name)) return &it->second;
  }
  return nullptr;
}

bool has_auth_header(const Headers& headers) {
  for (const std::string_view name : {"authorization", "x-api-key", "cf-aig-authorization"}) {
    const auto* header = find_header(headers, name);
    if (header != nullptr && *header && !utf8::is_blank(**header)) return true;
  }
  return false;
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string item(utf8::trim(list.substr(0, comma)));
    if (!item.empty() && std::find(items.begin(), items.end(), item) == items.end()) items.push_back(std::move(item));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return items;
}

std::vector<std::string> betas(const Model& model, const Context& context, const StreamOptions& options) {  // AI-101
  for (const Headers* headers : {&options.headers, &model.headers}) {
    if (const auto* chosen = find_header(*headers, "anthropic-beta"))
      return *chosen ? split_list(**chosen) : std::vector<std::string>{};
  }
  const Compat compat(model);
  std::vector<std::string> list;
  if (uses_anthropic_oauth(model, options)) {
    list.emplace_back("claude-code-20250219");
    list.emplace_back("oauth-2025-04-20");
  }
  if (!context.tools.empty() && !compat.eager_tool_input) list.emplace_back("fine-grained-tool-streaming-2025-05-14");
  if (thinks(model, options) && !compat.adaptive_thinking && !compat.mid_conversation_effort)
    list.emplace_back("interleaved-thinking-2025-05-14");
  if (!compat.fallback_models.empty()) list.emplace_back("server-side-fallback-2026-07-01");
  if (compat.mid_conversation_effort) {
    list.emplace_back("mid-conversation-output-config-2026-07-01");
    list.emplace_back("thinking-binding-controls-2026-08-01");
  }
  return list;
}

Headers copilot_headers(const Context& context) {
  bool agent = false;
  bool image = false;
  for (const MessageRef& message : context.messages) {
    agent = !std::holds_alternative<UserMessage>(*message);
    if (const auto* user = std::get_if<UserMessage>(message.get())) {
      const auto* blocks = std::get_if<std::vector<UserBlock>>(&user->content);
      image = image || (blocks != nullptr && has_image(*blocks));
    } else if (const auto* result = std::get_if<ToolResultMessage>(message.get())) {
      image = image || has_image(result->content);
    }
  }
  Headers headers{{"X-Initiator", agent ? "agent" : "user"}, {"Openai-Intent", "conversation-edits"}};
  if (image) headers.emplace_back("Copilot-Vision-Request", "true");
  return headers;
}

}  // namespace

bool uses_anthropic_oauth(const Model& model, const StreamOptions& options) {
  return model.provider != "github-copilot" && options.api_key &&
         options.api_key->find("sk-ant-oat") != std::string::npos;
}

std::optional<std::string> anthropic_effort(const Model& model, const StreamOptions& options) {
  if (!Compat(model).mid_conversation_effort) return std::nullopt;
  return thinks(model, options) ? effort_word(model, *options.reasoning) : "high";
}

std::expected<http::HeaderList, std::string> anthropic_headers(const Model& model, const Context& context,
                                                               const StreamOptions& options) {
  const Compat compat(model);
  const bool has_key = options.api_key && !utf8::is_blank(*options.api_key);
  if (!has_key && !has_auth_header(options.headers) && !has_auth_header(model.headers))
    return std::unexpected("No API key for provider: " + model.provider);

  const bool copilot = model.provider == "github-copilot";
  const bool oauth = uses_anthropic_oauth(model, options);
  Headers headers{{"content-type", "application/json"},
                  {"accept", "application/json"},
                  {"anthropic-version", "2023-06-01"},
                  {"anthropic-dangerous-direct-browser-access", "true"},
                  {"user-agent", oauth ? std::string(kOAuthUserAgent) : user_agent()}};
  if (oauth) headers.emplace_back("x-app", "cli");
  if (has_key && (oauth || copilot)) {
    headers.emplace_back("authorization", "Bearer " + *options.api_key);
  } else if (has_key) {
    headers.emplace_back("x-api-key", *options.api_key);
  }
  if (compat.session_affinity && options.session_id && cache_retention(options) != CacheRetention::kNone && !oauth &&
      !copilot) {
    headers.emplace_back("x-session-affinity", *options.session_id);
  }
  merge_headers(headers, model.headers);
  if (copilot) merge_headers(headers, copilot_headers(context));
  merge_headers(headers, options.headers);

  const std::vector<std::string> beta_list = betas(model, context, options);
  merge_headers(headers,
                {{"anthropic-beta",
                  beta_list.empty() ? std::nullopt : std::optional(fmt::format("{}", fmt::join(beta_list, ",")))}});
  http::HeaderList out;
  for (auto& [name, text] : headers) {
    if (text) out.emplace_back(std::move(name), *std::move(text));
  }
  return out;
}

std::expected<json::object, std::string> encode_anthropic_messages(const Model& model, const Context& context,
                                                                   const StreamOptions& options) {
  const Compat compat(model);
  const bool oauth = uses_anthropic_oauth(model, options);
  const bool thinking = thinks(model, options);
  const BaseOptions base = base_options(model, context, options);

  TransformOptions transform;
  transform.normalize_id = [](const std::string& id, const AssistantMessage&) { return plain_tool_call_id(id); };
  const std::vector<MessageRef> messages = transform_messages(context.messages, model, transform);

  std::vector<WireTool> tools = wire_tools(context, oauth);
  if (compat.tool_references) mark_deferred(tools, messages, oauth);
  tools = deferred_last(tools);

  std::optional<json::object> marker;
  if (const CacheRetention retention = cache_retention(options); retention != CacheRetention::kNone) {
    marker = json::object{{"type", "ephemeral"}};
    if (retention == CacheRetention::kLong && compat.long_cache_retention) marker->emplace("ttl", "1h");
  }

  MessageEncoder encoder(model, compat, tools, oauth);
  json::array wire_messages = encoder.encode(messages);
  if (marker) mark_last_message(wire_messages, *marker);
  if (const auto effort = anthropic_effort(model, options))
    wire_messages = with_efforts(std::move(wire_messages), encoder.efforts(), *effort);

  double max_tokens = base.max_tokens;
  double budget = 0;
  const bool budgeted = thinking && !compat.adaptive_thinking && !compat.mid_conversation_effort;
  if (budgeted) {
    const TokenLimits limits =
        limits_with_thinking(base.max_tokens, model.max_tokens, *options.reasoning, options.thinking_budgets);
    max_tokens = clamp_max_tokens(limits.max_tokens, model, context);
    budget = leave_answer_room(limits.thinking_budget, max_tokens);
    if (budget == 0) budget = kAnswerRoom;
  }

  json::object body{{"model", model.id},
                    {"messages", std::move(wire_messages)},
                    {"max_tokens", json::number(max_tokens)},
                    {"stream", true}};

  json::array system;
  if (oauth) system.push_back(text_block(kOAuthIdentity));
  if (context.system_prompt && !is_blank(*context.system_prompt)) system.push_back(text_block(*context.system_prompt));
  for (json::value& block : system) {
    if (marker) block.as_object().emplace("cache_control", *marker);
  }
  if (!system.empty()) body.emplace("system", std::move(system));

  if (options.temperature && !thinking && compat.temperature && !compat.mid_conversation_effort)
    body.emplace("temperature", json::number(*options.temperature));

  if (!tools.empty()) {
    json::array definitions;
    std::size_t last_immediate = 0;
    for (std::size_t i = 0; i < tools.size(); ++i) {
      auto tool = encode_tool(tools[i], compat);
      if (!tool) return std::unexpected(std::move(tool.error()));
      definitions.push_back(*std::move(tool));
      if (!tools[i].deferred) last_immediate = i;
    }
    if (marker && compat.cache_control_on_tools)
      definitions[last_immediate].as_object().emplace("cache_control", *marker);
    body.emplace("tools", std::move(definitions));
  }

  // AI-103
  if (compat.mid_conversation_effort) {
    body.emplace("thinking", json::object{{"type", "adaptive"},
                                          {"display", "summarized"},
                                          {"block_binding", json::object{{"prefix_mismatch_behavior", "drop_block"}}}});
    body.emplace("output_config", json::object{{"effort", "high"}});
  } else if (thinking && compat.adaptive_thinking) {
    body.emplace("thinking", json::object{{"type", "adaptive"}, {"display", "summarized"}});
    body.emplace("output_config", json::object{{"effort", effort_word(model, *options.reasoning)}});
  } else if (thinking) {
    body.emplace("thinking",
                 json::object{{"type", "enabled"}, {"budget_tokens", json::number(budget)}, {"display", "summarized"}});
  } else if (model.reasoning) {
    const auto off = model.thinking_level_map.find(ThinkingLevel::kOff);
    const bool can_be_off = off == model.thinking_level_map.end() || off->second;
    if (can_be_off) body.emplace("thinking", json::object{{"type", "disabled"}});
  }

  if (const auto user = json::find_string(options.metadata, "user_id"))
    body.emplace("metadata", json::object{{"user_id", *user}});
  if (options.tool_choice) {
    const json::value& choice = *options.tool_choice;
    body.emplace("tool_choice", choice.is_string() ? json::value(json::object{{"type", choice}}) : choice);
  }
  if (!compat.fallback_models.empty()) {
    json::array fallbacks;
    for (const std::string& id : compat.fallback_models)
      fallbacks.push_back(json::object{{"model", id}});
    body.emplace("fallbacks", std::move(fallbacks));
  }
  json::value whole = std::move(body);
  remove_lone_surrogates(whole);
  return std::move(whole.get_object());
}

void remove_lone_surrogates(json::value& v) {
  if (json::string* text = v.if_string()) {
    if (utf8::has_lone_surrogates(json::view(*text))) *text = utf8::remove_lone_surrogates(json::view(*text));
  } else if (json::array* items = v.if_array()) {
    for (json::value& item : *items)
      remove_lone_surrogates(item);
  } else if (json::object* members = v.if_object()) {
    bool bad_key = false;
    for (auto& member : *members) {
      bad_key = bad_key || utf8::has_lone_surrogates(member.key());
      remove_lone_surrogates(member.value());
    }
    if (!bad_key) return;
    json::object clean;
    for (auto& member : *members)
      clean.insert_or_assign(utf8::remove_lone_surrogates(member.key()), std::move(member.value()));
    *members = std::move(clean);
  }
}

std::string anthropic_error_text(int status, std::string_view body) {
  constexpr std::size_t kLongest = 4000;  // a gateway's error page is no message
  const std::string_view trimmed = utf8::trim(body);
  if (trimmed.empty()) return fmt::format("{} status code (no body)", status);
  if (const auto parsed = json::parse(trimmed); parsed && parsed->is_structured())
    return fmt::format("{} {}", status, json::to_text(*parsed));
  const std::string_view shown = utf8::prefix_utf16(trimmed, kLongest);
  if (shown.size() == trimmed.size()) return fmt::format("{} {}", status, trimmed);
  return fmt::format("{} {}... [truncated {} chars]", status, shown,
                     utf8::utf16_length(trimmed) - utf8::utf16_length(shown));
}

}  // namespace tau::ai
