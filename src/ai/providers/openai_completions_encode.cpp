#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/providers/openai_completions.h"
#include "ai/providers/openai_completions_compat.h"
#include "ai/short_hash.h"
#include "ai/strict_schema.h"
#include "ai/surrogates.h"
#include "ai/thinking_budget.h"
#include "ai/transform_messages.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::string_view kReasoningFields[] = {"reasoning_content", "reasoning", "reasoning_text"};
constexpr std::size_t kLongestCallId = 40;

bool is_reasoning_field(std::string_view name) {
  return std::find(std::begin(kReasoningFields), std::end(kReasoningFields), name) != std::end(kReasoningFields);
}

json::object text_part(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

json::object image_part(const ImageContent& image) {
  return {{"type", "image_url"},
          {"image_url", json::object{{"url", fmt::format("data:{};base64,{}", image.mime_type, image.data)}}}};
}

/// reasoning_details as a thinking signature holds them: a JSON array of known entries (AI-135, AI-143).
std::optional<json::array> details_from(std::string_view signature) {
  if (!signature.starts_with('[')) return std::nullopt;
  auto parsed = json::parse(signature, {.wtf8 = true});
  json::array* entries = parsed ? parsed->if_array() : nullptr;
  if (entries == nullptr || entries->empty()) return std::nullopt;
  const bool known = std::all_of(entries->begin(), entries->end(), [](const json::value& entry) {
    const json::object* o = entry.if_object();
    return o != nullptr && json::string_or(*o, "type").starts_with("reasoning.");
  });
  return known ? std::optional(std::move(*entries)) : std::nullopt;
}

/// AI-136: ids of other APIs become short and plain.
std::string normalize_call_id(const std::string& id, const Model& target) {
  const std::size_t bar = id.find('|');
  if (bar == std::string::npos) {
    return target.provider == "openai" ? id.substr(0, kLongestCallId) : id;
  }
  const std::string call = plain_tool_call_id(id.substr(0, bar));
  const std::string item = plain_tool_call_id(id.substr(bar + 1));
  if (call.size() + 1 + item.size() <= kLongestCallId) return call + "_" + item;
  const std::string hash = short_hash(id).substr(0, 8);
  return call.substr(0, kLongestCallId - 1 - hash.size()) + "_" + hash;
}

class Encoder {
 public:
  Encoder(const Model& model, const Context& context, const StreamOptions& options)
      : model_(model), context_(context), options_(options), compat_(model), retention_(cache_retention(options)) {
    if (options.reasoning && *options.reasoning != ThinkingLevel::kOff) {
      level_ = clamp_thinking_level(model, *options.reasoning);
      if (*level_ == ThinkingLevel::kOff) level_.reset();
    }
  }

  std::expected<json::object, std::string> encode() {
    TransformOptions transform;
    transform.normalize_id = [this](const std::string& id, const AssistantMessage&) {
      return normalize_call_id(id, model_);
    };
    messages_ = transform_messages(context_.messages, model_, transform);
    if (!read_tools()) return std::unexpected(std::move(error_));
    if (!encode_messages()) return std::unexpected(std::move(error_));

    const BaseOptions base = base_options(model_, context_, options_);
    json::object body{{"model", model_.id}};
    body.emplace("messages", std::move(wire_));
    body.emplace("stream", true);
    put_cache(body);
    if (compat_.usage_in_streaming) body.emplace("stream_options", json::object{{"include_usage", true}});
    if (compat_.store) body.emplace("store", false);
    if (base.max_tokens > 0) body.emplace(compat_.max_tokens_field, json::number(base.max_tokens));
    if (base.temperature) body.emplace("temperature", json::number(*base.temperature));
    if (!tools_.empty() || has_calls_) body.emplace("tools", tools_);
    if (compat_.zai_tool_stream && !tools_.empty()) body.emplace("tool_stream", true);
    if (options_.tool_choice) body.emplace("tool_choice", *options_.tool_choice);
    if (compat_.vllm_priority_set) body.emplace("priority", compat_.vllm_priority);
    if (model_.reasoning) {
      put_thinking(body, base);
      put_budget(body, base);
    }
    if (compat_.openrouter_routing) body.emplace("provider", *compat_.openrouter_routing);
    put_vercel_routing(body);
    if (compat_.cache_control_format == "anthropic" && retention_ != CacheRetention::kNone) put_cache_markers(body);
    for (const auto& [name, value] : base.sampling_params)
      body[name] = value;

    json::value whole = std::move(body);
    remove_lone_surrogates(whole);
    return std::move(whole.get_object());
  }

 private:
  // ---- tools ------------------------------------------------------------------------------------------------------

  bool read_tools() {
    std::vector<std::string> deferred;
    if (compat_.deferred_tools_mode == "kimi") {
      for (const MessageRef& message : messages_) {
        const auto* result = std::get_if<ToolResultMessage>(message.get());
        if (result == nullptr) continue;
        deferred.insert(deferred.end(), result->added_tool_names.begin(), result->added_tool_names.end());
      }
    }
    for (const Tool& tool : context_.tools) {
      auto encoded = encode_tool(tool);
      if (!encoded) {
        error_ = std::move(encoded.error());
        return false;
      }
      if (std::find(deferred.begin(), deferred.end(), tool.name) != deferred.end()) {
        deferred_.emplace_back(tool.name, *std::move(encoded));
      } else {
        tools_.emplace_back(*std::move(encoded));
      }
    }
    return true;
  }

  std::expected<json::object, std::string> encode_tool(const Tool& tool) {  // AI-137
    auto grammar = grammar_of(tool, compat_.grammar_tools);
    if (!grammar) return std::unexpected(std::move(grammar.error()));
    if (*grammar) {
      grammars_.emplace_back(tool.name, (*grammar)->property);
      json::object format{
          {"type", "grammar"},
          {"grammar", json::object{{"syntax", (*grammar)->syntax}, {"definition", (*grammar)->definition}}}};
      return json::object{
          {"type", "custom"},
          {"custom",
           json::object{{"name", tool.name}, {"description", tool.description}, {"format", std::move(format)}}}};
    }
    auto strict = strict_parameters(tool, compat_.strict_mode);
    if (!strict) return std::unexpected(std::move(strict.error()));
    json::object function{{"name", tool.name}, {"description", tool.description}};
    function.emplace("parameters", *strict ? **strict : tool.parameters);
    if (compat_.strict_mode) function.emplace("strict", strict->has_value());
    return json::object{{"type", "function"}, {"function", std::move(function)}};
  }

  const std::string* grammar_property(const std::string& tool) const {
    const auto it = std::find_if(grammars_.begin(), grammars_.end(), [&](const auto& g) { return g.first == tool; });
    return it != grammars_.end() ? &it->second : nullptr;
  }

  // ---- messages (AI-135) ------------------------------------------------------------------------------------------

  bool encode_messages() {
    if (context_.system_prompt && !context_.system_prompt->empty()) {
      const bool developer = model_.reasoning && compat_.developer_role;
      wire_.emplace_back(
          json::object{{"role", developer ? "developer" : "system"}, {"content", *context_.system_prompt}});
    }
    for (std::size_t i = 0; i < messages_.size();) {
      if (const auto* user = std::get_if<UserMessage>(messages_[i].get())) {
        add_user(*user);
        ++i;
      } else if (const auto* reply = std::get_if<AssistantMessage>(messages_[i].get())) {
        if (!add_reply(*reply)) return false;
        ++i;
      } else {
        i = add_results(i);
      }
    }
    return true;
  }

  void add_user(const UserMessage& user) {
    json::value content;
    if (const auto* text = std::get_if<std::string>(&user.content)) {
      if (utf8::is_blank(*text)) return;  // FF-9
      content = *text;
    } else {
      json::array parts;
      for (const UserBlock& block : std::get<std::vector<UserBlock>>(user.content)) {
        if (const auto* part = std::get_if<TextContent>(&block)) {
          if (!utf8::is_blank(part->text)) parts.emplace_back(text_part(part->text));
        } else if (const auto* image = std::get_if<ImageContent>(&block)) {
          parts.emplace_back(image_part(*image));
        }
      }
      if (parts.empty()) return;
      content = std::move(parts);
    }
    bridge_after_results();
    wire_.emplace_back(json::object{{"role", "user"}, {"content", std::move(content)}});
  }

  /// Servers that want a reply between tool results and the next user message.
  void bridge_after_results() {
    if (!std::exchange(after_results_, false) || !compat_.assistant_after_tool_result) return;
    wire_.emplace_back(json::object{{"role", "assistant"}, {"content", "I have processed the tool results."}});
  }

  bool add_reply(const AssistantMessage& reply) {
    after_results_ = false;
    json::array texts;
    std::string text;
    std::vector<const ThinkingContent*> thoughts;
    json::array calls;
    json::array encrypted;
    for (const AssistantBlock& block : reply.content) {
      if (const auto* part = std::get_if<TextContent>(&block)) {
        if (utf8::is_blank(part->text)) continue;
        utf8::append_wtf8(text, part->text);
        texts.emplace_back(text_part(part->text));
      } else if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
        thoughts.push_back(thinking);
      } else if (const auto* call = std::get_if<ToolCall>(&block)) {
        auto encoded = encode_call(*call);
        if (!encoded) {
          error_ = std::move(encoded.error());
          return false;
        }
        calls.emplace_back(*std::move(encoded));
        if (call->thought_signature) add_legacy_details(*call->thought_signature, encrypted);
      }
    }
    json::object message{{"role", "assistant"}};
    json::value content(nullptr);
    if (!text.empty()) {
      content = text;
    } else if (compat_.assistant_after_tool_result) {
      content = "";
    }
    std::optional<json::array> details;
    for (const ThinkingContent* thinking : thoughts) {
      if (!details && thinking->thinking_signature) details = details_from(*thinking->thinking_signature);
    }
    if (!details && !encrypted.empty()) details = std::move(encrypted);

    std::string field;
    const std::string joined = joined_thoughts(thoughts, compat_.thinking_as_text ? "\n\n" : "\n");
    if (!joined.empty() && compat_.thinking_as_text) {
      json::array parts{text_part(joined)};
      for (json::value& part : texts)
        parts.emplace_back(std::move(part));
      content = std::move(parts);
    } else if (!joined.empty() && !details) {
      field = reasoning_field(thoughts);
    }
    const bool empty = content.is_null() || (content.is_string() && content.get_string().empty());
    if (empty && calls.empty()) return true;  // reasoning alone is no message
    message.emplace("content", std::move(content));
    if (!field.empty()) message.emplace(field, joined);
    if (!calls.empty()) message.emplace("tool_calls", std::move(calls));
    if (details) message.emplace("reasoning_details", *std::move(details));
    if (compat_.reasoning_content_on_assistant && model_.reasoning && !message.contains("reasoning_content")) {
      message.emplace("reasoning_content", "");
    }
    wire_.emplace_back(std::move(message));
    return true;
  }

  static void add_legacy_details(std::string_view signature, json::array& out) {
    auto parsed = json::parse(signature, {.wtf8 = true});
    const json::object* o = parsed ? parsed->if_object() : nullptr;
    if (o != nullptr && json::string_or(*o, "type") == "reasoning.encrypted") out.emplace_back(*o);
  }

  static std::string joined_thoughts(const std::vector<const ThinkingContent*>& thoughts, std::string_view separator) {
    std::string joined;
    for (const ThinkingContent* thinking : thoughts) {
      if (utf8::is_blank(thinking->thinking)) continue;
      if (!joined.empty()) joined += separator;
      utf8::append_wtf8(joined, thinking->thinking);
    }
    return joined;
  }

  /// The field that the thoughts came in (FF-14); empty when they came in none.
  std::string reasoning_field(const std::vector<const ThinkingContent*>& thoughts) const {
    for (const ThinkingContent* thinking : thoughts) {
      if (utf8::is_blank(thinking->thinking)) continue;
      const std::string name = thinking->thinking_signature.value_or("");
      if (!is_reasoning_field(name)) return {};
      return model_.provider == "opencode-go" && name == "reasoning" ? "reasoning_content" : name;
    }
    return {};
  }

  std::expected<json::object, std::string> encode_call(const ToolCall& call) {
    has_calls_ = true;
    if (const std::string* property = grammar_property(call.name)) {
      const auto input = grammar_input(call, *property);
      if (!input) return std::unexpected(input.error());
      return json::object{
          {"id", call.id}, {"type", "custom"}, {"custom", json::object{{"name", call.name}, {"input", *input}}}};
    }
    // Arguments that are no object cannot be replayed to anybody.
    const json::value arguments = call.arguments.is_object() ? call.arguments : json::value(json::object{});
    json::value clean = arguments;
    remove_lone_surrogates(clean);
    return json::object{{"id", call.id},
                        {"type", "function"},
                        {"function", json::object{{"name", call.name}, {"arguments", json::to_text(clean)}}}};
  }

  /// A run of results; images follow in a user message, because results hold only text. Returns the next position.
  std::size_t add_results(std::size_t at) {
    json::array images;
    std::vector<std::string> added;
    for (; at < messages_.size(); ++at) {
      const auto* result = std::get_if<ToolResultMessage>(messages_[at].get());
      if (result == nullptr) break;
      has_calls_ = true;
      std::string text = text_of(result->content);
      if (utf8::is_blank(text)) text = has_image(result->content) ? "(see attached image)" : "(no tool output)";
      json::object message{{"role", "tool"}, {"content", std::move(text)}, {"tool_call_id", result->tool_call_id}};
      if (compat_.tool_result_name) message.emplace("name", result->tool_name);
      wire_.emplace_back(std::move(message));
      for (const UserBlock& block : result->content) {
        if (const auto* image = std::get_if<ImageContent>(&block)) images.emplace_back(image_part(*image));
      }
      added.insert(added.end(), result->added_tool_names.begin(), result->added_tool_names.end());
    }
    after_results_ = true;
    reveal(added);
    if (!images.empty()) {
      json::array parts{text_part("Attached image(s) from tool result:")};
      for (json::value& image : images)
        parts.emplace_back(std::move(image));
      bridge_after_results();
      wire_.emplace_back(json::object{{"role", "user"}, {"content", std::move(parts)}});
      after_results_ = false;
    }
    return at;
  }

  /// Tools that results made known (AI-139).
  void reveal(const std::vector<std::string>& names) {
    json::array tools;
    for (const std::string& name : names) {
      const auto it = std::find_if(deferred_.begin(), deferred_.end(), [&](const auto& t) { return t.first == name; });
      if (it == deferred_.end()) continue;
      tools.emplace_back(std::move(it->second));
      deferred_.erase(it);
    }
    if (!tools.empty()) wire_.emplace_back(json::object{{"role", "system"}, {"tools", std::move(tools)}});
  }

  // ---- options ----------------------------------------------------------------------------------------------------

  void put_cache(json::object& body) const {
    const bool is_long = retention_ == CacheRetention::kLong && compat_.long_cache_retention;
    const bool vendor = model_.base_url.find("api.openai.com") != std::string::npos;
    if (options_.session_id && ((vendor && retention_ != CacheRetention::kNone) || is_long)) {
      body.emplace("prompt_cache_key", utf8::prefix(*options_.session_id, 64));
    }
    if (is_long) body.emplace("prompt_cache_retention", "24h");
  }

  bool level_is_unsupported(ThinkingLevel level) const {
    const auto mapped = model_.thinking_level_map.find(level);
    return mapped != model_.thinking_level_map.end() && !mapped->second;
  }

  std::optional<std::string> mapped(ThinkingLevel level) const {
    const auto it = model_.thinking_level_map.find(level);
    return it != model_.thinking_level_map.end() ? it->second : std::nullopt;
  }

  void put_thinking(json::object& body, const BaseOptions& base) const {  // AI-133
    const std::string& format = compat_.thinking_format;
    const bool off_known = !level_is_unsupported(ThinkingLevel::kOff);
    const std::optional<std::string> off_word = mapped(ThinkingLevel::kOff);
    const std::string word = level_ ? mapped(*level_).value_or(std::string(to_string(*level_))) : "";
    const auto put_effort = [&] {
      if (level_ && compat_.reasoning_effort) body.emplace("reasoning_effort", word);
    };
    if (format == "openai") {
      put_effort();
      if (!level_ && compat_.reasoning_effort && off_word) body.emplace("reasoning_effort", *off_word);
    } else if (format == "openrouter") {
      if (level_) {
        body.emplace("reasoning", json::object{{"effort", word}});
      } else if (off_known) {
        body.emplace("reasoning", json::object{{"effort", off_word.value_or("none")}});
      }
    } else if (format == "deepseek") {
      if (level_) {
        body.emplace("thinking", json::object{{"type", "enabled"}});
      } else if (off_known) {
        body.emplace("thinking", json::object{{"type", "disabled"}});
      }
      put_effort();
    } else if (format == "together") {
      body.emplace("reasoning", json::object{{"enabled", level_.has_value()}});
      put_effort();
    } else if (format == "zai") {
      if (level_) {
        body.emplace("thinking", json::object{{"type", "enabled"}, {"clear_thinking", false}});
        if (!level_is_unsupported(*level_)) put_effort();
      } else {
        body.emplace("thinking", json::object{{"type", "disabled"}});
      }
    } else if (format == "qwen") {
      body.emplace("enable_thinking", level_.has_value());
      put_effort();
    } else if (format == "qwen-chat-template") {
      body.emplace("chat_template_kwargs",
                   json::object{{"enable_thinking", level_.has_value()}, {"preserve_thinking", true}});
    } else if (format == "chat-template") {
      json::object kwargs = resolve_template(compat_.chat_template_kwargs, base);
      if (!kwargs.empty()) body.emplace("chat_template_kwargs", std::move(kwargs));
    } else if (format == "baseten") {
      json::object args = resolve_template(compat_.chat_template_args, base);
      if (!args.empty()) body.emplace("chat_template_args", std::move(args));
      if (compat_.reasoning_effort) {
        const std::optional<std::string> effort = level_ ? std::optional(word) : off_word;
        if (effort) body.emplace("reasoning_effort", *effort);
      }
    } else if (format == "string-thinking") {
      if (level_) {
        body.emplace("thinking", word);
      } else if (off_known) {
        body.emplace("thinking", off_word.value_or("none"));
      }
    } else if (format == "ant-ling") {
      if (level_ && mapped(*level_)) body.emplace("reasoning", json::object{{"effort", *mapped(*level_)}});
    }
  }

  std::optional<double> budget(const BaseOptions& base) const {  // AI-134
    if (!level_) return std::nullopt;
    const double ceiling = base.max_tokens > 0 ? base.max_tokens : model_.max_tokens;
    const double tokens = leave_answer_room(thinking_budget(*level_, options_.thinking_budgets), ceiling);
    return tokens > 0 ? std::optional(tokens) : std::nullopt;
  }

  void put_budget(json::object& body, const BaseOptions& base) const {
    std::string field = compat_.thinking_budget_field;
    if (field.empty() && compat_.thinking_token_budget) field = "thinking_token_budget";
    const std::optional<double> tokens = budget(base);
    if (!field.empty() && tokens) body.emplace(field, json::number(*tokens));
  }

  /// {"$var": "thinking.enabled"} and its kind become values; plain values stay.
  json::object resolve_template(const json::object& source, const BaseOptions& base) const {
    json::object out;
    for (const auto& [name, value] : source) {
      const json::object* variable = value.if_object();
      const auto var = variable != nullptr ? json::find_string(*variable, "$var") : std::nullopt;
      if (!var) {
        out.emplace(name, value);
        continue;
      }
      if (!level_ && json::bool_or(*variable, "omitWhenOff")) continue;
      if (*var == "thinking.enabled") {
        out.emplace(name, level_.has_value());
      } else if (*var == "thinking.effort") {
        const ThinkingLevel level = level_.value_or(ThinkingLevel::kOff);
        if (level_is_unsupported(level)) continue;
        out.emplace(name, mapped(level).value_or(std::string(to_string(level))));
      } else if (*var == "thinking.budget") {
        if (const auto tokens = budget(base)) out.emplace(name, json::number(*tokens));
      }
    }
    return out;
  }

  void put_vercel_routing(json::object& body) const {
    json::object gateway;
    for (const char* key : {"only", "order"}) {
      if (const json::value* list = json::find(compat_.vercel_routing, key)) gateway.emplace(key, *list);
    }
    if (!gateway.empty()) body.emplace("providerOptions", json::object{{"gateway", std::move(gateway)}});
  }

  // ---- cache markers (AI-138) -------------------------------------------------------------------------------------

  void put_cache_markers(json::object& body) const {
    json::object marker{{"type", "ephemeral"}};
    if (retention_ == CacheRetention::kLong && compat_.long_cache_retention) marker.emplace("ttl", "1h");
    json::array& messages = body.at("messages").get_array();
    for (json::value& message : messages) {
      const std::string role = json::string_or(message.get_object(), "role");
      if (role == "system" || role == "developer") {
        mark(message.get_object(), marker);
        break;
      }
    }
    if (json::value* tools = body.if_contains("tools"); tools != nullptr && !tools->get_array().empty()) {
      tools->get_array().back().get_object().emplace("cache_control", marker);
    }
    for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
      const std::string role = json::string_or(it->get_object(), "role");
      if (role != "system" && role != "developer" && mark(it->get_object(), marker)) break;
    }
  }

  /// Marks the last text of a message; false when it has none.
  static bool mark(json::object& message, const json::object& marker) {
    json::value* content = message.if_contains("content");
    if (content == nullptr) return false;
    if (content->is_string()) {
      if (content->get_string().empty()) return false;
      json::object part = text_part(json::view(content->get_string()));
      part.emplace("cache_control", marker);
      *content = json::array{std::move(part)};
      return true;
    }
    json::array* parts = content->if_array();
    if (parts == nullptr) return false;
    for (auto it = parts->rbegin(); it != parts->rend(); ++it) {
      if (json::string_or(it->get_object(), "type") != "text") continue;
      it->get_object()["cache_control"] = marker;
      return true;
    }
    return false;
  }

  const Model& model_;
  const Context& context_;
  const StreamOptions& options_;
  CompletionsCompat compat_;
  CacheRetention retention_;
  std::optional<ThinkingLevel> level_;  // thinking is on

  std::vector<MessageRef> messages_;
  json::array wire_;
  json::array tools_;
  std::vector<std::pair<std::string, json::object>> deferred_;  // by name
  std::vector<std::pair<std::string, std::string>> grammars_;   // tool -> property
  bool has_calls_ = false;
  bool after_results_ = false;
  std::string error_;
};

}  // namespace

std::expected<json::object, std::string> encode_openai_completions(const Model& model, const Context& context,
                                                                   const StreamOptions& options) {
  return Encoder(model, context, options).encode();
}

}  // namespace tau::ai
