#include "ai/providers/mistral_conversations.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/provider_call.h"
#include "ai/providers/copilot_headers.h"
#include "ai/short_hash.h"
#include "ai/strict_schema.h"
#include "ai/surrogates.h"
#include "ai/transform_messages.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kIdLength = 9;

std::string letters_and_digits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

json::object text_part(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

json::object image_part(const ImageContent& image) {
  return {{"type", "image_url"}, {"image_url", fmt::format("data:{};base64,{}", image.mime_type, image.data)}};
}

json::object encode_reply(const AssistantMessage& reply) {
  json::array content;
  json::array calls;
  for (const AssistantBlock& block : reply.content) {
    if (const auto* text = std::get_if<TextContent>(&block)) {
      if (!utf8::is_blank(text->text)) content.emplace_back(text_part(text->text));
    } else if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
      if (utf8::is_blank(thinking->thinking)) continue;
      content.emplace_back(
          json::object{{"type", "thinking"}, {"thinking", json::array{text_part(thinking->thinking)}}});
    } else if (const auto* call = std::get_if<ToolCall>(&block)) {
      json::value arguments = call->arguments.is_object() ? call->arguments : json::value(json::object{});
      remove_lone_surrogates(arguments);
      calls.emplace_back(
          json::object{{"id", call->id},
                       {"type", "function"},
                       {"function", json::object{{"name", call->name}, {"arguments", json::to_text(arguments)}}},
                       {"index", 0}});
    }
  }
  json::object message;
  if (content.empty() && calls.empty()) return message;
  message = {{"role", "assistant"}, {"prefix", false}};
  if (!content.empty()) message.emplace("content", std::move(content));
  if (!calls.empty()) message.emplace("tool_calls", std::move(calls));
  return message;
}

json::object encode_result(const ToolResultMessage& result) {
  const std::string joined = text_of(result.content);
  std::string text(utf8::trim(joined));
  if (text.empty()) text = has_image(result.content) ? "(see attached image)" : "(no tool output)";
  if (result.is_error) text.insert(0, "[tool error] ");
  json::array content{text_part(text)};
  for (const UserBlock& block : result.content) {
    if (const auto* image = std::get_if<ImageContent>(&block)) content.emplace_back(image_part(*image));
  }
  json::object message{{"role", "tool"}, {"name", result.tool_name}};
  message.emplace("content", std::move(content));
  message.emplace("tool_call_id", result.tool_call_id);
  return message;
}

json::object encode_user(const UserMessage& user) {
  json::object message;
  if (const auto* text = std::get_if<std::string>(&user.content)) {
    if (!utf8::is_blank(*text)) message = {{"role", "user"}, {"content", *text}};  // FF-9
    return message;
  }
  json::array parts;
  for (const UserBlock& block : std::get<std::vector<UserBlock>>(user.content)) {
    if (const auto* part = std::get_if<TextContent>(&block)) {
      if (!utf8::is_blank(part->text)) parts.emplace_back(text_part(part->text));
    } else if (const auto* image = std::get_if<ImageContent>(&block)) {
      parts.emplace_back(image_part(*image));
    }
  }
  if (!parts.empty()) {
    message.emplace("role", "user");
    message.emplace("content", std::move(parts));
  }
  return message;
}

void put_thinking(json::object& body, const Model& model, const StreamOptions& options) {  // AI-214a
  if (!model.reasoning || !options.reasoning || *options.reasoning == ThinkingLevel::kOff) return;
  const ThinkingLevel level = clamp_thinking_level(model, *options.reasoning);
  if (level == ThinkingLevel::kOff) return;
  constexpr std::string_view kWithEffort[] = {"mistral-small-2603", "mistral-small-latest", "mistral-medium-3.5"};
  if (std::find(std::begin(kWithEffort), std::end(kWithEffort), model.id) == std::end(kWithEffort)) {
    body.emplace("prompt_mode", "reasoning");
    return;
  }
  const auto word = model.thinking_level_map.find(level);
  const bool mapped = word != model.thinking_level_map.end() && word->second;
  body.emplace("reasoning_effort", mapped ? *word->second : "high");
}

std::expected<ProviderCall, std::string> prepare(const Model& model, const Context& context,
                                                 const StreamOptions& options) {
  if (!options.api_key || utf8::is_blank(*options.api_key)) {
    return std::unexpected("No API key for provider: " + model.provider);
  }
  auto body = encode_mistral(model, context, options);
  if (!body) return std::unexpected(std::move(body.error()));
  replace_payload(*body, model, options);
  Headers headers{{"content-type", "application/json"},
                  {"accept", "text/event-stream"},
                  {"user-agent", user_agent()},
                  {"authorization", "Bearer " + *options.api_key}};
  merge_headers(headers, model.headers);
  merge_headers(headers, options.headers);
  if (options.session_id && options.cache_retention != CacheRetention::kNone && !has_header(headers, "x-affinity")) {
    merge_headers(headers, {{"x-affinity", *options.session_id}});
  }
  ProviderCall call;
  call.request.url = join_url(model.base_url, "/v1/chat/completions");
  call.request.headers = present_headers(std::move(headers));
  json::write(call.request.body, *body);
  call.error_text = [](int status, std::string_view reason, const http::HeaderList&, std::string_view text) {
    return mistral_error_text(status, reason, text);
  };
  call.decoder = std::make_unique<MistralDecoder>(model);
  return call;
}

}  // namespace

std::string mistral_call_id(std::string_view id, int attempt) {
  std::string plain = letters_and_digits(id);
  if (attempt == 0 && plain.size() == kIdLength) return plain;
  std::string seed = plain.empty() ? std::string(id) : plain;
  if (attempt > 0) seed += fmt::format(":{}", attempt);
  std::string hash = short_hash(seed).substr(0, kIdLength);
  hash.append(kIdLength - hash.size(), '0');
  return hash;
}

std::string mistral_error_text(int status, std::string_view reason, std::string_view body) {
  constexpr std::size_t kLongest = 4000;
  const std::string_view trimmed = utf8::trim(body);
  const std::string_view shown = utf8::prefix_utf16(trimmed, kLongest);
  std::string text(trimmed.empty() ? reason : shown);
  if (shown.size() < trimmed.size()) {
    text += fmt::format("... [truncated {} chars]", utf8::utf16_length(trimmed) - utf8::utf16_length(shown));
  }
  return fmt::format("Mistral API error ({}): {}", status, text);
}

std::expected<json::object, std::string> encode_mistral(const Model& model, const Context& context,
                                                        const StreamOptions& options) {
  TransformOptions transform;
  std::map<std::string, std::string> known;
  std::set<std::string> used;
  transform.normalize_id = [&](const std::string& id, const AssistantMessage&) {  // AI-213: stable, no collisions
    const auto earlier = known.find(id);
    if (earlier != known.end()) return earlier->second;
    std::string made = mistral_call_id(id);
    for (int attempt = 1; !used.insert(made).second; ++attempt)
      made = mistral_call_id(id, attempt);
    known.emplace(id, made);
    return made;
  };
  transform.rename_id = [](const std::string& id, int attempt) { return mistral_call_id(id, attempt); };
  const std::vector<MessageRef> messages = transform_messages(context.messages, model, transform);

  json::array wire;
  if (context.system_prompt && !context.system_prompt->empty()) {
    wire.emplace_back(json::object{{"role", "system"}, {"content", *context.system_prompt}});
  }
  for (const MessageRef& message : messages) {
    json::object encoded;
    if (const auto* user = std::get_if<UserMessage>(message.get())) {
      encoded = encode_user(*user);
    } else if (const auto* reply = std::get_if<AssistantMessage>(message.get())) {
      encoded = encode_reply(*reply);
    } else {
      encoded = encode_result(std::get<ToolResultMessage>(*message));
    }
    if (!encoded.empty()) wire.emplace_back(std::move(encoded));
  }
  json::array tools;
  for (const Tool& tool : context.tools) {
    auto strict = strict_parameters(tool, true);
    if (!strict) return std::unexpected(std::move(strict.error()));
    json::object function{{"name", tool.name}, {"description", tool.description}};
    function.emplace("parameters", *strict ? **strict : tool.parameters);
    function.emplace("strict", strict->has_value());
    tools.emplace_back(json::object{{"type", "function"}, {"function", std::move(function)}});
  }

  const BaseOptions base = base_options(model, context, options);
  json::object body{{"model", model.id}, {"stream", true}};
  body.emplace("messages", std::move(wire));
  if (!tools.empty()) body.emplace("tools", std::move(tools));
  if (base.temperature) body.emplace("temperature", json::number(*base.temperature));
  if (base.max_tokens > 0) body.emplace("max_tokens", json::number(base.max_tokens));
  if (options.tool_choice) body.emplace("tool_choice", *options.tool_choice);
  put_thinking(body, model, options);
  if (options.session_id && options.cache_retention != CacheRetention::kNone) {
    body.emplace("prompt_cache_key", *options.session_id);
  }
  json::value whole = std::move(body);
  remove_lone_surrogates(whole);
  return std::move(whole.get_object());
}

asio::awaitable<AssistantMessage> stream_mistral_conversations(http::Client& client, Model model, Context context,
                                                               StreamOptions options, EventSink sink,
                                                               std::stop_token stop) {
  return call_provider(client, prepare, std::move(model), std::move(context), std::move(options), std::move(sink),
                       std::move(stop));
}

}  // namespace tau::ai
