#include "ai/providers/responses_input.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ai/catalog/providers.h"
#include "ai/deferred_tools.h"
#include "ai/grammar_tool.h"
#include "ai/short_hash.h"
#include "ai/strict_schema.h"
#include "ai/surrogates.h"
#include "ai/transform_messages.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kLongestId = 64;

json::object text_part(std::string_view text) {
  return {{"type", "input_text"}, {"text", text}};
}

json::object image_part(const ImageContent& image) {
  return {{"type", "input_image"},
          {"detail", "auto"},
          {"image_url", fmt::format("data:{};base64,{}", image.mime_type, image.data)}};
}

std::string plain_part(std::string_view part) {
  std::string plain = plain_tool_call_id(std::string(part));
  while (plain.ends_with('_'))
    plain.pop_back();
  return plain;
}

/// Whether the target's own ids have two parts.
bool has_item_ids(const Model& target) {
  return target.provider == "openai" || target.provider == "openai-codex" || target.provider == "opencode" ||
         target.provider == "azure-openai-responses";
}

std::string normalize_call_id(const std::string& id, const AssistantMessage& source, const Model& target) {  // AI-165
  const std::size_t bar = id.find('|');
  if (!has_item_ids(target) || bar == std::string::npos) return plain_part(id);
  const std::string item = id.substr(bar + 1);
  std::string item_id;
  if (source.provider != target.provider || source.api != target.api) {
    item_id = "fc_" + short_hash(item);
  } else {
    item_id = plain_part(item);
    if (!item_id.starts_with("fc_")) item_id = plain_part("fc_" + item_id);
  }
  return plain_part(id.substr(0, bar)) + "|" + item_id;
}

/// Id and phase of a text, as the signature holds them (AI-10): a JSON object, in old files the bare id.
struct TextIdentity {
  std::string id;
  std::optional<std::string> phase;
};

TextIdentity text_identity(const TextContent& text) {
  if (!text.text_signature || text.text_signature->empty()) return {};
  if (text.text_signature->starts_with('{')) {
    const auto parsed = json::parse(*text.text_signature, {.wtf8 = true});
    const json::object* o = parsed ? parsed->if_object() : nullptr;
    if (o != nullptr && json::find_integer(*o, "v") == 1) {
      TextIdentity identity{json::string_or(*o, "id"), {}};
      if (const auto phase = json::find_string(*o, "phase")) identity.phase = std::string(*phase);
      return identity;
    }
  }
  return {*text.text_signature, {}};
}

class InputBuilder {
 public:
  InputBuilder(const Model& model, const Context& context, const ResponsesInputRules& rules)
      : model_(model), context_(context), rules_(rules), compat_(model) {}

  std::expected<ResponsesInput, std::string> build() {
    TransformOptions transform;
    transform.normalize_id = [this](const std::string& id, const AssistantMessage& source) {
      return normalize_call_id(id, source, model_);
    };
    const std::vector<MessageRef> messages = transform_messages(context_.messages, model_, transform);
    const bool deferral = rules_.deferred_tools && (compat_.additional_tools || compat_.tool_search);
    split_ = split_tools(context_.tools, messages, deferral);
    for (const Tool& tool : context_.tools) {
      auto grammar = grammar_of(tool, compat_.grammar_tools);
      if (!grammar) return std::unexpected(std::move(grammar.error()));
      if (*grammar) grammars_.emplace_back(tool.name, (*grammar)->property);
    }
    for (const Tool& tool : split_.immediate) {
      if (!add_tool(tool, false, input_.tools)) return std::unexpected(std::move(error_));
    }
    if (rules_.system_item && context_.system_prompt && !context_.system_prompt->empty()) {
      const bool developer = model_.reasoning && compat_.developer_role;
      input_.items.emplace_back(
          json::object{{"role", developer ? "developer" : "system"}, {"content", *context_.system_prompt}});
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (!add_message(*messages[i], i)) return std::unexpected(std::move(error_));
    }
    return std::move(input_);
  }

 private:
  bool add_message(const Message& message, std::size_t index) {
    bool added = true;
    if (const auto* user = std::get_if<UserMessage>(&message)) {
      added = add_user(*user);
    } else if (const auto* reply = std::get_if<AssistantMessage>(&message)) {
      const std::size_t before = input_.items.size();
      if (!add_reply(*reply)) return false;
      added = input_.items.size() > before;
    } else {
      if (!add_result(std::get<ToolResultMessage>(message), index)) return false;
    }
    if (added) ++counted_;  // AI-163: messages without items do not count
    return true;
  }

  bool add_user(const UserMessage& user) {
    json::array parts;
    if (const auto* text = std::get_if<std::string>(&user.content)) {
      if (!utf8::is_blank(*text)) parts.emplace_back(text_part(*text));  // FF-9
    } else {
      for (const UserBlock& block : std::get<std::vector<UserBlock>>(user.content)) {
        if (const auto* part = std::get_if<TextContent>(&block)) {
          if (!utf8::is_blank(part->text)) parts.emplace_back(text_part(part->text));
        } else if (const auto* image = std::get_if<ImageContent>(&block)) {
          parts.emplace_back(image_part(*image));
        }
      }
    }
    if (parts.empty()) return false;
    input_.items.emplace_back(json::object{{"role", "user"}, {"content", std::move(parts)}});
    return true;
  }

  bool add_reply(const AssistantMessage& reply) {
    std::size_t texts = 0;
    for (const AssistantBlock& block : reply.content) {
      if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
        add_thinking(*thinking);
      } else if (const auto* text = std::get_if<TextContent>(&block)) {
        if (!utf8::is_blank(text->text)) add_text(*text, texts);
        ++texts;
      } else if (const auto* call = std::get_if<ToolCall>(&block)) {
        if (!add_call(*call, reply)) return false;
      }
    }
    return true;
  }

  /// The item itself, as it came: the provider checks it.
  void add_thinking(const ThinkingContent& thinking) {
    if (!thinking.thinking_signature || thinking.thinking_signature->empty()) return;
    auto item = json::parse(*thinking.thinking_signature, {.wtf8 = true});
    if (item && item->is_object()) input_.items.emplace_back(*std::move(item));
  }

  void add_text(const TextContent& text, std::size_t ordinal) {
    TextIdentity identity = text_identity(text);
    if (identity.id.empty()) {
      identity.id = ordinal == 0 ? fmt::format("msg_pi_{}", counted_) : fmt::format("msg_pi_{}_{}", counted_, ordinal);
    } else if (utf8::utf16_length(identity.id) > kLongestId) {
      identity.id = "msg_" + short_hash(identity.id);
    }
    json::object item{{"type", "message"}, {"role", "assistant"}};
    item.emplace("content", json::array{json::object{
                                {"type", "output_text"}, {"text", text.text}, {"annotations", json::array{}}}});
    item.emplace("status", "completed");
    item.emplace("id", identity.id);
    if (identity.phase) item.emplace("phase", *identity.phase);
    input_.items.emplace_back(std::move(item));
  }

  const std::string* grammar_property(const std::string& tool) const {
    const auto it = std::find_if(grammars_.begin(), grammars_.end(), [&](const auto& g) { return g.first == tool; });
    return it != grammars_.end() ? &it->second : nullptr;
  }

  bool is_deferred(const std::string& tool) const {
    return std::any_of(split_.deferred.begin(), split_.deferred.end(), [&](const Tool& t) { return t.name == tool; });
  }

  bool add_call(const ToolCall& call, const AssistantMessage& reply) {
    const std::size_t bar = call.id.find('|');
    const std::string call_id = call.id.substr(0, bar);
    std::string item_id = bar == std::string::npos ? "" : call.id.substr(bar + 1);
    const bool same_model = is_same_model(reply, model_);
    const std::string* property = grammar_property(call.name);
    // AI-164: the item belongs to another model's thoughts, or is of another kind than the one that is sent.
    const bool is_function_item = item_id.starts_with("fc_");
    const bool same_api = reply.provider == model_.provider && reply.api == model_.api;
    if ((!same_model && same_api && is_function_item) || (property == nullptr && !is_function_item)) item_id.clear();

    json::object item{{"type", property != nullptr ? "custom_tool_call" : "function_call"}};
    if (!item_id.empty()) item.emplace("id", item_id);
    item.emplace("call_id", call_id);
    item.emplace("name", call.name);
    if (property != nullptr) {
      const auto text = grammar_input(call, *property);
      if (!text) {
        error_ = text.error();
        return false;
      }
      item.emplace("input", *text);
    } else {
      json::value arguments = call.arguments.is_object() ? call.arguments : json::value(json::object{});
      remove_lone_surrogates(arguments);
      item.emplace("arguments", json::to_text(arguments));
    }
    if (call.name_space && (same_model || is_deferred(call.name))) item.emplace("namespace", *call.name_space);
    input_.items.emplace_back(std::move(item));
    return true;
  }

  bool add_result(const ToolResultMessage& result, std::size_t index) {
    const std::string call_id = result.tool_call_id.substr(0, result.tool_call_id.find('|'));
    const bool custom = grammar_property(result.tool_name) != nullptr;
    std::string text = text_of(result.content);
    const bool blank = utf8::is_blank(text);
    json::value output;
    if (has_image(result.content)) {
      json::array parts;
      if (!blank) parts.emplace_back(text_part(text));
      for (const UserBlock& block : result.content) {
        if (const auto* image = std::get_if<ImageContent>(&block)) parts.emplace_back(image_part(*image));
      }
      output = std::move(parts);
    } else {
      output = blank ? "(no tool output)" : std::move(text);
    }
    input_.items.emplace_back(json::object{{"type", custom ? "custom_tool_call_output" : "function_call_output"},
                                           {"call_id", call_id},
                                           {"output", std::move(output)}});
    return reveal(result, index);
  }

  /// Tools that this result made known (AI-167).
  bool reveal(const ToolResultMessage& result, std::size_t index) {
    const auto added = split_.added_at.find(index);
    if (added == split_.added_at.end() || added->second.empty()) return true;
    json::array tools;
    std::string with_commas;
    std::string with_blanks;
    for (const Tool& tool : added->second) {
      if (!add_tool(tool, !compat_.additional_tools, tools)) return false;
      if (!with_commas.empty()) {
        with_commas += ',';
        with_blanks += ' ';
      }
      with_commas += tool.name;
      with_blanks += tool.name;
    }
    if (compat_.additional_tools) {
      input_.items.emplace_back(
          json::object{{"type", "additional_tools"}, {"role", "developer"}, {"tools", std::move(tools)}});
      return true;
    }
    const std::string id = "pi_tool_load_" + short_hash(result.tool_call_id + ":" + with_commas);
    input_.items.emplace_back(json::object{
        {"type", "tool_search_call"},
        {"call_id", id},
        {"execution", "client"},
        {"status", "completed"},
        {"arguments",
         json::object{{"query", with_blanks}, {"limit", static_cast<std::int64_t>(added->second.size())}}}});
    input_.items.emplace_back(json::object{{"type", "tool_search_output"},
                                           {"call_id", id},
                                           {"execution", "client"},
                                           {"status", "completed"},
                                           {"tools", std::move(tools)}});
    return true;
  }

  bool add_tool(const Tool& tool, bool defer, json::array& out) {  // AI-166
    auto grammar = grammar_of(tool, compat_.grammar_tools);
    if (grammar && *grammar) {
      out.emplace_back(json::object{
          {"type", "custom"},
          {"name", tool.name},
          {"description", tool.description},
          {"format",
           json::object{{"type", "grammar"}, {"syntax", (*grammar)->syntax}, {"definition", (*grammar)->definition}}}});
      return true;
    }
    auto strict = strict_parameters(tool, rules_.strict);
    if (!strict) {
      error_ = std::move(strict.error());
      return false;
    }
    json::object o{{"type", "function"}, {"name", tool.name}, {"description", tool.description}};
    o.emplace("parameters", *strict ? **strict : tool.parameters);
    if (defer) o.emplace("defer_loading", true);
    if (*strict) {
      o.emplace("strict", true);
    } else if (rules_.loose) {
      o.emplace("strict", *rules_.loose);
    }
    out.emplace_back(std::move(o));
    return true;
  }

  const Model& model_;
  const Context& context_;
  const ResponsesInputRules& rules_;
  ResponsesCompat compat_;
  ToolSplit split_;
  std::vector<std::pair<std::string, std::string>> grammars_;  // tool -> property
  ResponsesInput input_;
  std::size_t counted_ = 0;
  std::string error_;
};

}  // namespace

ResponsesCompat::ResponsesCompat(const Model& model) {
  const json::object& c = model.compat;
  // A server that nobody knows gets the role that every server knows (FF-15).
  const bool known =
      find_provider(model.provider) != nullptr || model.base_url.find("api.openai.com") != std::string::npos;
  const bool openrouter = model.provider == "openrouter" || model.base_url.find("openrouter.ai") != std::string::npos;
  developer_role = json::bool_or(c, "supportsDeveloperRole", known);
  long_cache_retention = json::bool_or(c, "supportsLongCacheRetention", true);
  max_output_tokens = json::bool_or(c, "supportsMaxOutputTokens", true);
  grammar_tools = json::bool_or(c, "supportsOpenAIGrammarTools");
  additional_tools = json::bool_or(c, "supportsAdditionalTools");
  tool_search = json::bool_or(c, "supportsToolSearch");
  explicit_cache_mode = json::bool_or(c, "supportsExplicitPromptCacheMode");
  strict_mode = json::find_bool(c, "supportsStrictMode");
  session_affinity_format = json::string_or(c, "sessionAffinityFormat", openrouter ? "openrouter" : "openai");
}

std::expected<ResponsesInput, std::string> responses_input(const Model& model, const Context& context,
                                                           const ResponsesInputRules& rules) {
  return InputBuilder(model, context, rules).build();
}

std::optional<ThinkingLevel> responses_level(const Model& model, const StreamOptions& options) {
  if (!options.reasoning || *options.reasoning == ThinkingLevel::kOff) return std::nullopt;
  const ThinkingLevel level = clamp_thinking_level(model, *options.reasoning);
  if (level == ThinkingLevel::kOff) return std::nullopt;
  return level;
}

std::string responses_effort(const Model& model, ThinkingLevel level) {
  const auto word = model.thinking_level_map.find(level);
  if (word != model.thinking_level_map.end() && word->second) return *word->second;
  return std::string(to_string(level));
}

void put_responses_reasoning(json::object& body, const Model& model, const StreamOptions& options) {
  bool include = model.provider == "xai";
  if (model.reasoning) {
    if (const auto level = responses_level(model, options)) {
      body.emplace("reasoning", json::object{{"effort", responses_effort(model, *level)}, {"summary", "auto"}});
      include = true;
    } else if (model.provider != "github-copilot") {
      const auto off = model.thinking_level_map.find(ThinkingLevel::kOff);
      const bool refused = off != model.thinking_level_map.end() && !off->second;
      if (!refused) {
        const std::string word = off != model.thinking_level_map.end() ? *off->second : "none";
        body.emplace("reasoning", json::object{{"effort", word}});
      }
    }
  }
  if (include) body.emplace("include", json::array{"reasoning.encrypted_content"});
}

}  // namespace tau::ai
