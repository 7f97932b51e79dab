#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/providers/anthropic_compat.h"
#include "ai/providers/bedrock_converse_stream.h"
#include "ai/strict_schema.h"
#include "ai/surrogates.h"
#include "ai/thinking_budget.h"
#include "ai/transform_messages.h"
#include "base/base64.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::string_view kEmpty = "<empty>";
constexpr double kSmallestBudget = 1024;

/// Lower case, with '-' for every separator: "Claude Sonnet 4.5" and "…claude-sonnet-4-5…" look alike then.
std::string plain_name(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if (c == ' ' || c == '.' || c == '_' || c == ':') {
      out += '-';
    } else {
      out += c;
    }
  }
  return out;
}

/// What the names of a model tell about it. A profile's id says nothing, then its name does.
class ModelNames {
 public:
  explicit ModelNames(const Model& model) : names_(plain_name(model.id) + "\n" + plain_name(model.name)) {}
  bool has(std::string_view part) const { return names_.find(part) != std::string::npos; }
  bool has_any(std::initializer_list<std::string_view> parts) const {
    return std::any_of(parts.begin(), parts.end(), [this](std::string_view part) { return has(part); });
  }

 private:
  std::string names_;
};

/// Members with an empty name are refused by the service.
void remove_empty_keys(json::value& v) {
  if (json::array* items = v.if_array()) {
    for (json::value& item : *items)
      remove_empty_keys(item);
    return;
  }
  json::object* o = v.if_object();
  if (o == nullptr) return;
  if (const auto empty = o->find(""); empty != o->end()) o->stable_erase(empty);
  for (auto& [key, member] : *o)
    remove_empty_keys(member);
}

class Encoder {
 public:
  Encoder(const Model& model, const Context& context, const StreamOptions& options, std::string_view region)
      : model_(model), context_(context), options_(options), region_(region), names_(model) {
    claude_ = names_.has("claude");
    const bool known =
        names_.has_any({"fable-5", "opus-5", "sonnet-5", "-4-", "claude-3-7-sonnet", "claude-3-5-haiku"});
    caches_ = claude_ ? known : provider_env(options, "AWS_BEDROCK_FORCE_CACHE") == "1";
    const CacheRetention retention = cache_retention(options);
    caches_ = caches_ && retention != CacheRetention::kNone;
    long_cache_ = retention == CacheRetention::kLong;
  }

  std::expected<json::object, std::string> encode() {
    TransformOptions transform;
    transform.normalize_id = [](const std::string& id, const AssistantMessage&) { return plain_tool_call_id(id); };
    const std::vector<MessageRef> messages = transform_messages(context_.messages, model_, transform);
    for (const MessageRef& message : messages) {
      if (!add(*message)) return std::unexpected(std::move(error_));
    }
    if (caches_ && !messages_.empty() && json::string_or(messages_.back().get_object(), "role") == "user") {
      messages_.back().get_object().at("content").get_array().push_back(cache_point());
    }
    json::object body{{"messages", std::move(messages_)}};
    if (context_.system_prompt && !utf8::is_blank(*context_.system_prompt)) {
      json::array system{json::object{{"text", *context_.system_prompt}}};
      if (caches_) system.push_back(cache_point());
      body.emplace("system", std::move(system));
    }
    const BaseOptions base = base_options(model_, context_, options_);
    double max_tokens = base.max_tokens;
    json::object extra = thinking_fields(max_tokens);
    json::object config;
    if (max_tokens > 0) config.emplace("maxTokens", json::number(max_tokens));
    if (base.temperature) config.emplace("temperature", json::number(*base.temperature));
    body.emplace("inferenceConfig", std::move(config));
    if (!put_tools(body)) return std::unexpected(std::move(error_));
    if (!extra.empty()) body.emplace("additionalModelRequestFields", std::move(extra));
    json::value whole = std::move(body);
    remove_lone_surrogates(whole);
    return std::move(whole.get_object());
  }

 private:
  json::object cache_point() const {
    json::object point{{"type", "default"}};
    if (long_cache_) point.emplace("ttl", "1h");
    return {{"cachePoint", std::move(point)}};
  }

  bool add(const Message& message) {
    if (const auto* user = std::get_if<UserMessage>(&message)) return add_user(*user);
    if (const auto* reply = std::get_if<AssistantMessage>(&message)) {
      add_reply(*reply);
      return true;
    }
    return add_result(std::get<ToolResultMessage>(message));
  }

  /// Turns alternate: what follows from the same side joins what is there.
  json::array& turn(std::string_view role) {
    if (messages_.empty() || json::string_or(messages_.back().get_object(), "role") != role) {
      messages_.emplace_back(json::object{{"role", role}, {"content", json::array{}}});
    }
    return messages_.back().get_object().at("content").get_array();
  }

  std::optional<json::object> image(const ImageContent& image) {
    std::string_view format;
    if (image.mime_type == "image/jpeg" || image.mime_type == "image/jpg") format = "jpeg";
    if (image.mime_type == "image/png") format = "png";
    if (image.mime_type == "image/gif") format = "gif";
    if (image.mime_type == "image/webp") format = "webp";
    if (format.empty()) {
      error_ = fmt::format("Unknown image type: {}", image.mime_type);
      return std::nullopt;
    }
    return json::object{{"image", json::object{{"format", format}, {"source", json::object{{"bytes", image.data}}}}}};
  }

  bool add_blocks(const std::vector<UserBlock>& blocks, json::array& out) {
    for (const UserBlock& block : blocks) {
      if (const auto* text = std::get_if<TextContent>(&block)) {
        if (!utf8::is_blank(text->text)) out.emplace_back(json::object{{"text", text->text}});
      } else if (const auto* picture = std::get_if<ImageContent>(&block)) {
        auto encoded = image(*picture);
        if (!encoded) return false;
        out.emplace_back(*std::move(encoded));
      }
    }
    if (out.empty()) out.emplace_back(json::object{{"text", kEmpty}});
    return true;
  }

  bool add_user(const UserMessage& user) {
    json::array parts;
    if (const auto* text = std::get_if<std::string>(&user.content)) {
      parts.emplace_back(json::object{{"text", utf8::is_blank(*text) ? kEmpty : std::string_view(*text)}});
    } else if (!add_blocks(std::get<std::vector<UserBlock>>(user.content), parts)) {
      return false;
    }
    json::array& content = turn("user");
    for (json::value& part : parts)
      content.push_back(std::move(part));
    return true;
  }

  void add_thinking(const ThinkingContent& thinking, json::array& parts) const {
    const std::string signature = thinking.thinking_signature.value_or("");
    if (thinking.redacted) {
      if (!signature.empty() && base64_decode(signature)) {
        parts.emplace_back(json::object{{"reasoningContent", json::object{{"redactedContent", signature}}}});
      }
      return;
    }
    const bool blank = utf8::is_blank(thinking.thinking);
    if (claude_ && !signature.empty()) {  // FF-2: a signature counts without a text too
      parts.emplace_back(json::object{
          {"reasoningContent",
           json::object{{"reasoningText", json::object{{"text", thinking.thinking}, {"signature", signature}}}}}});
    } else if (!blank && claude_) {
      parts.emplace_back(json::object{{"text", thinking.thinking}});
    } else if (!blank) {
      parts.emplace_back(json::object{
          {"reasoningContent", json::object{{"reasoningText", json::object{{"text", thinking.thinking}}}}}});
    }
  }

  void add_reply(const AssistantMessage& reply) {
    json::array parts;
    for (const AssistantBlock& block : reply.content) {
      if (const auto* text = std::get_if<TextContent>(&block)) {
        if (!utf8::is_blank(text->text)) parts.emplace_back(json::object{{"text", text->text}});
      } else if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
        add_thinking(*thinking, parts);
      } else if (const auto* call = std::get_if<ToolCall>(&block)) {
        json::value input = call->arguments.is_object() ? call->arguments : json::value(json::object{});
        remove_empty_keys(input);
        parts.emplace_back(json::object{
            {"toolUse", json::object{{"toolUseId", call->id}, {"name", call->name}, {"input", std::move(input)}}}});
      }
    }
    if (parts.empty()) return;
    json::array& content = turn("assistant");
    for (json::value& part : parts)
      content.push_back(std::move(part));
  }

  bool add_result(const ToolResultMessage& result) {
    json::array parts;
    if (!add_blocks(result.content, parts)) return false;
    turn("user").emplace_back(
        json::object{{"toolResult", json::object{{"toolUseId", result.tool_call_id},
                                                 {"content", std::move(parts)},
                                                 {"status", result.is_error ? "error" : "success"}}}});
    return true;
  }

  bool put_tools(json::object& body) {
    const json::value* choice = options_.tool_choice ? &*options_.tool_choice : nullptr;
    const std::string_view word =
        choice != nullptr && choice->is_string() ? json::view(choice->get_string()) : std::string_view();
    if (context_.tools.empty() || word == "none") return true;
    const bool strict_mode = json::bool_or(model_.compat, "supportsStrictMode");
    json::array tools;
    for (const Tool& tool : context_.tools) {
      auto strict = strict_parameters(tool, strict_mode);
      if (!strict) {
        error_ = std::move(strict.error());
        return false;
      }
      json::object spec{{"name", tool.name}};
      spec.emplace("inputSchema", json::object{{"json", *strict ? **strict : tool.parameters}});
      spec.emplace("description", tool.description);
      if (*strict) spec.emplace("strict", true);
      tools.emplace_back(json::object{{"toolSpec", std::move(spec)}});
    }
    json::object config{{"tools", std::move(tools)}};
    if (word == "auto" || word == "any") {
      config.emplace("toolChoice", json::object{{word, json::object{}}});
    } else if (choice != nullptr && choice->is_object()) {
      const std::string name = json::string_or(choice->get_object(), "name");
      if (!name.empty()) config.emplace("toolChoice", json::object{{"tool", json::object{{"name", name}}}});
    }
    body.emplace("toolConfig", std::move(config));
    return true;
  }

  /// May change how many tokens the reply may have, because thinking counts among them.
  json::object thinking_fields(double& max_tokens) const {
    if (!claude_ || !anthropic_thinks(model_, options_)) return {};
    const ThinkingLevel level = *options_.reasoning;
    json::object thinking;
    const bool adaptive =
        names_.has_any({"opus-4-6", "opus-4-7", "opus-4-8", "opus-5", "sonnet-4-6", "sonnet-5", "fable-5"});
    if (adaptive) {
      thinking.emplace("type", "adaptive");
    } else {
      const TokenLimits limits = limits_with_thinking(max_tokens, model_.max_tokens, level, options_.thinking_budgets);
      max_tokens = clamp_max_tokens(limits.max_tokens, model_, context_);
      const double budget = leave_answer_room(limits.thinking_budget, max_tokens);
      thinking.emplace("type", "enabled");
      thinking.emplace("budget_tokens", json::number(budget > 0 ? budget : kSmallestBudget));
    }
    const bool government = region_.starts_with("us-gov");
    if (!government) thinking.emplace("display", "summarized");
    json::object fields{{"thinking", std::move(thinking)}};
    if (adaptive) {
      const bool keeps_word = names_.has_any({"opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "fable-5"});
      const std::string effort =
          level == ThinkingLevel::kXhigh && keeps_word ? "xhigh" : anthropic_effort_word(model_, level);
      fields.emplace("output_config", json::object{{"effort", effort}});
    } else {
      fields.emplace("anthropic_beta", json::array{"interleaved-thinking-2025-05-14"});
    }
    return fields;
  }

  const Model& model_;
  const Context& context_;
  const StreamOptions& options_;
  std::string_view region_;
  ModelNames names_;
  bool claude_ = false;
  bool caches_ = false;
  bool long_cache_ = false;
  json::array messages_;
  std::string error_;
};

}  // namespace

std::expected<json::object, std::string> encode_bedrock(const Model& model, const Context& context,
                                                        const StreamOptions& options, std::string_view region) {
  return Encoder(model, context, options, region).encode();
}

}  // namespace tau::ai
