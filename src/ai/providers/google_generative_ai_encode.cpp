#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ai/base_options.h"
#include "ai/providers/google_generative_ai.h"
#include "ai/strict_schema.h"
#include "ai/surrogates.h"
#include "ai/transform_messages.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// The N of "gemini-N…" and "gemini-live-N…"; nothing for other models.
std::optional<int> gemini_generation(std::string_view id) {
  constexpr std::string_view kFamily = "gemini-";
  constexpr std::string_view kLive = "live-";
  const std::size_t at = id.find(kFamily);
  if (at == std::string_view::npos) return std::nullopt;
  id.remove_prefix(at + kFamily.size());
  if (id.starts_with(kLive)) id.remove_prefix(kLive.size());
  int number = 0;
  std::size_t digits = 0;
  while (digits < id.size() && digits < 4 && id[digits] >= '0' && id[digits] <= '9')
    number = number * 10 + (id[digits++] - '0');
  return digits > 0 ? std::optional(number) : std::nullopt;
}

/// "gemini-3-pro", "gemini-3.1-pro", …
bool is_gemini3(std::string_view id, std::string_view kind) {
  constexpr std::string_view kFamily = "gemini-3";
  const std::size_t at = id.find(kFamily);
  if (at == std::string_view::npos) return false;
  id.remove_prefix(at + kFamily.size());
  if (id.starts_with('.')) {
    id.remove_prefix(1);
    while (!id.empty() && id.front() >= '0' && id.front() <= '9')
      id.remove_prefix(1);
  }
  return id.starts_with('-') && id.substr(1).starts_with(kind);
}

bool is_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return false;
  const std::size_t end = text.find_last_not_of('=') + 1;
  if (text.size() - end > 2) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  });
}

json::object inline_data(const ImageContent& image) {
  return {{"inlineData", json::object{{"mimeType", image.mime_type}, {"data", image.data}}}};
}

class Encoder {
 public:
  Encoder(const Model& model, const Context& context, const StreamOptions& options, GoogleService service)
      : model_(model), context_(context), options_(options), service_(service), id_(lower_case(model.id)) {
    const std::optional<int> generation = gemini_generation(id_);
    modern_ = generation && *generation >= 3;
    sends_ids_ = modern_ || id_.starts_with("claude-") || id_.starts_with("gpt-oss-");
    images_in_results_ = modern_ || !generation;
  }

  std::expected<json::object, std::string> encode() {
    TransformOptions transform;
    if (sends_ids_) {
      transform.normalize_id = [](const std::string& id, const AssistantMessage&) { return plain_tool_call_id(id); };
    }
    transform.unique_ids = sends_ids_;
    transform.results_in_call_order = true;  // FF-13
    const std::vector<MessageRef> messages = transform_messages(context_.messages, model_, transform);
    for (std::size_t i = 0; i < messages.size();) {
      if (const auto* user = std::get_if<UserMessage>(messages[i].get())) {
        add_user(*user);
        ++i;
      } else if (const auto* reply = std::get_if<AssistantMessage>(messages[i].get())) {
        add_reply(*reply);
        ++i;
      } else {
        i = add_results(messages, i);
      }
    }
    const BaseOptions base = base_options(model_, context_, options_);
    json::object body{{"contents", std::move(contents_)}};
    if (context_.system_prompt && !context_.system_prompt->empty()) {
      body.emplace(
          "systemInstruction",
          json::object{{"parts", json::array{json::object{{"text", *context_.system_prompt}}}}, {"role", "user"}});
    }
    if (!put_tools(body)) return std::unexpected(std::move(error_));
    json::object config;
    if (base.temperature) config.emplace("temperature", json::number(*base.temperature));
    if (base.max_tokens > 0) config.emplace("maxOutputTokens", json::number(base.max_tokens));
    if (model_.reasoning) {
      auto thinking = thinking_config();
      if (!thinking) return std::unexpected(std::move(thinking.error()));
      config.emplace("thinkingConfig", *std::move(thinking));
    }
    if (!config.empty()) body.emplace("generationConfig", std::move(config));
    json::value whole = std::move(body);
    remove_lone_surrogates(whole);
    return std::move(whole.get_object());
  }

 private:
  void add_content(std::string_view role, json::array parts) {
    if (parts.empty()) return;
    contents_.emplace_back(json::object{{"parts", std::move(parts)}, {"role", role}});
  }

  void add_user(const UserMessage& user) {
    json::array parts;
    if (const auto* text = std::get_if<std::string>(&user.content)) {
      if (!utf8::is_blank(*text)) parts.emplace_back(json::object{{"text", *text}});  // FF-9
    } else {
      for (const UserBlock& block : std::get<std::vector<UserBlock>>(user.content)) {
        if (const auto* part = std::get_if<TextContent>(&block)) {
          if (!utf8::is_blank(part->text)) parts.emplace_back(json::object{{"text", part->text}});
        } else if (const auto* image = std::get_if<ImageContent>(&block)) {
          parts.emplace_back(inline_data(*image));
        }
      }
    }
    add_content("user", std::move(parts));
  }

  void add_reply(const AssistantMessage& reply) {
    const bool own = is_same_model(reply, model_);
    const auto usable = [own](const std::optional<std::string>& signature) {
      return own && signature && is_base64(*signature);
    };
    json::array parts;
    for (const AssistantBlock& block : reply.content) {
      json::object part;
      if (const auto* text = std::get_if<TextContent>(&block)) {
        const bool is_signed = usable(text->text_signature);
        if (utf8::is_blank(text->text) && !is_signed) continue;
        part.emplace("text", text->text);
        if (is_signed) part.emplace("thoughtSignature", *text->text_signature);
      } else if (const auto* thinking = std::get_if<ThinkingContent>(&block)) {
        const bool is_signed = usable(thinking->thinking_signature);
        if (utf8::is_blank(thinking->thinking) && !is_signed) continue;
        if (own) part.emplace("thought", true);
        part.emplace("text", thinking->thinking);
        if (is_signed) part.emplace("thoughtSignature", *thinking->thinking_signature);
      } else if (const auto* call = std::get_if<ToolCall>(&block)) {
        json::object function{{"name", call->name},
                              {"args", call->arguments.is_object() ? call->arguments : json::value(json::object{})}};
        if (sends_ids_) function.emplace("id", call->id);
        part.emplace("functionCall", std::move(function));
        if (usable(call->thought_signature)) part.emplace("thoughtSignature", *call->thought_signature);
      } else {
        continue;
      }
      parts.emplace_back(std::move(part));
    }
    add_content("model", std::move(parts));
  }

  /// A run of results is one turn, one part a call, in the order of the calls (FF-13). Where a result cannot hold
  /// images, they follow in a content of their own. Returns the next position.
  std::size_t add_results(const std::vector<MessageRef>& messages, std::size_t at) {
    json::array responses;
    json::array images;
    for (; at < messages.size(); ++at) {
      const auto* result = std::get_if<ToolResultMessage>(messages[at].get());
      if (result == nullptr) break;
      std::string text = text_of(result->content);
      const bool pictured = has_image(result->content);
      if (utf8::is_blank(text)) text = pictured ? "(see attached image)" : "(no tool output)";  // FF-9
      json::object function{{"name", result->tool_name},
                            {"response", json::object{{result->is_error ? "error" : "output", std::move(text)}}}};
      json::array own_images;
      for (const UserBlock& block : result->content) {
        if (const auto* image = std::get_if<ImageContent>(&block)) {
          (images_in_results_ ? own_images : images).emplace_back(inline_data(*image));
        }
      }
      if (!own_images.empty()) function.emplace("parts", std::move(own_images));
      if (sends_ids_) function.emplace("id", result->tool_call_id);
      responses.emplace_back(json::object{{"functionResponse", std::move(function)}});
    }
    add_content("user", std::move(responses));
    if (!images.empty()) {
      json::array parts{json::object{{"text", "Tool result image:"}}};
      for (json::value& image : images)
        parts.emplace_back(std::move(image));
      add_content("user", std::move(parts));
    }
    return at;
  }

  bool put_tools(json::object& body) {
    if (context_.tools.empty()) return true;
    json::array declarations;
    bool any_strict = false;
    for (const Tool& tool : context_.tools) {
      auto strict = strict_parameters(tool, modern_);
      if (!strict) {
        error_ = std::move(strict.error());
        return false;
      }
      any_strict = any_strict || strict->has_value();
      json::object declaration{{"name", tool.name}, {"description", tool.description}};
      declaration.emplace("parametersJsonSchema", *strict ? **strict : tool.parameters);
      declarations.emplace_back(std::move(declaration));
    }
    body.emplace("tools", json::array{json::object{{"functionDeclarations", std::move(declarations)}}});
    const json::value* choice = options_.tool_choice ? &*options_.tool_choice : nullptr;
    const std::string_view word =
        choice != nullptr && choice->is_string() ? json::view(choice->get_string()) : std::string_view();
    std::string_view mode;
    if (word == "none") {
      mode = "NONE";
    } else if (word == "any") {
      mode = "ANY";
    } else if (any_strict) {
      mode = "VALIDATED";
    } else if (word == "auto") {
      mode = "AUTO";
    }
    if (!mode.empty()) {
      body.emplace("toolConfig", json::object{{"functionCallingConfig", json::object{{"mode", mode}}}});
    }
    return true;
  }

  // ---- thinking (AI-199) ------------------------------------------------------------------------------------------

  std::expected<json::object, std::string> thinking_config() const {
    const bool pro = is_gemini3(id_, "pro");
    const bool flash = is_gemini3(id_, "flash") || id_ == "gemini-flash-latest" || id_ == "gemini-flash-lite-latest";
    const bool gemma = service_ == GoogleService::kGenerativeAi &&
                       (id_.find("gemma-4") != std::string::npos || id_.find("gemma4") != std::string::npos);
    if (!options_.reasoning || *options_.reasoning == ThinkingLevel::kOff) {
      if (pro) return json::object{{"thinkingLevel", "LOW"}};
      if (flash || gemma) return json::object{{"thinkingLevel", "MINIMAL"}};
      return json::object{{"thinkingBudget", 0}};
    }
    ThinkingLevel level = clamp_thinking_level(model_, *options_.reasoning);
    if (level == ThinkingLevel::kOff) level = ThinkingLevel::kHigh;
    const auto mapped = model_.thinking_level_map.find(level);
    if (mapped != model_.thinking_level_map.end() && mapped->second) {
      const auto word = thinking_level_from(lower_case(*mapped->second));
      if (!word || *word == ThinkingLevel::kOff || *word > ThinkingLevel::kHigh) {
        return std::unexpected(fmt::format("Model {} maps the thinking level {} to \"{}\", which Google does not know",
                                           model_.id, to_string(level), *mapped->second));
      }
      level = *word;
    }
    const bool deep = level != ThinkingLevel::kMinimal && level != ThinkingLevel::kLow;
    json::object config{{"includeThoughts", true}};
    if (pro) {
      config.emplace("thinkingLevel", deep ? "HIGH" : "LOW");
    } else if (gemma) {
      config.emplace("thinkingLevel", deep ? "HIGH" : "MINIMAL");
    } else if (flash) {
      constexpr std::string_view kWords[] = {"", "MINIMAL", "LOW", "MEDIUM", "HIGH"};
      config.emplace("thinkingLevel", kWords[std::min<std::size_t>(static_cast<std::size_t>(level), 4)]);
    } else {
      config.emplace("thinkingBudget", json::number(budget(level)));
    }
    return config;
  }

  double budget(ThinkingLevel level) const {
    if (const auto custom = options_.thinking_budgets.find(level); custom != options_.thinking_budgets.end()) {
      return custom->second;
    }
    const std::size_t column =
        std::min<std::size_t>(static_cast<std::size_t>(level), static_cast<std::size_t>(ThinkingLevel::kHigh)) - 1;
    constexpr double kPro[] = {128, 2048, 8192, 32768};
    constexpr double kFlashLite[] = {512, 2048, 8192, 24576};
    constexpr double kFlash[] = {128, 2048, 8192, 24576};
    constexpr double kAsItLikes = -1;
    if (id_.find("2.5-pro") != std::string::npos) return kPro[column];
    if (service_ == GoogleService::kGenerativeAi && id_.find("2.5-flash-lite") != std::string::npos) {
      return kFlashLite[column];
    }
    if (id_.find("2.5-flash") != std::string::npos) return kFlash[column];
    return kAsItLikes;
  }

  const Model& model_;
  const Context& context_;
  const StreamOptions& options_;
  GoogleService service_;
  std::string id_;  // in lower case
  bool modern_ = false;
  bool sends_ids_ = false;
  bool images_in_results_ = false;
  json::array contents_;
  std::string error_;
};

}  // namespace

std::expected<json::object, std::string> encode_google(const Model& model, const Context& context,
                                                       const StreamOptions& options, GoogleService service) {
  return Encoder(model, context, options, service).encode();
}

}  // namespace tau::ai
