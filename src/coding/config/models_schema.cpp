#include "coding/config/models_schema.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "ai/model.h"
#include "coding/config/json_position.h"

namespace tau::coding {

namespace {

constexpr std::string_view kFlags[] = {
    // openai-completions
    "supportsStore", "supportsDeveloperRole", "supportsReasoningEffort", "supportsUsageInStreaming",
    "supportsFinishReason", "requiresToolResultName", "requiresAssistantAfterToolResult", "requiresThinkingAsText",
    "requiresReasoningContentOnAssistantMessages", "supportsOpenAIGrammarTools", "supportsStrictMode",
    "sendSessionAffinityHeaders", "supportsLongCacheRetention",
    // openai-responses
    "supportsAdditionalTools", "supportsToolSearch", "supportsMaxOutputTokens",
    // anthropic-messages
    "supportsEagerToolInputStreaming", "supportsCacheControlOnTools", "supportsTemperature", "forceAdaptiveThinking",
    "allowEmptySignature", "supportsStrictTools", "supportsMidConvoEffort", "supportsToolReferences"};

constexpr std::string_view kObjects[] = {"chatTemplateKwargs", "chatTemplateArgs", "openRouterRouting",
                                         "vercelGatewayRouting"};

struct Choice {
  std::string_view key;
  std::string_view words;  // separated by blanks
};

constexpr Choice kChoices[] = {{"maxTokensField", "max_completion_tokens max_tokens"},
                               {"thinkingFormat",
                                "openai openrouter together baseten deepseek zai qwen chat-template qwen-chat-template "
                                "string-thinking ant-ling"},
                               {"cacheControlFormat", "anthropic"},
                               {"deferredToolsMode", "kimi"},
                               {"sessionAffinityFormat", "openai openai-nosession openrouter"}};

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t blank = 0; blank != std::string_view::npos;) {
    blank = text.find(' ');
    words.push_back(text.substr(0, blank));
    if (blank != std::string_view::npos) text.remove_prefix(blank + 1);
  }
  return words;
}

class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  std::vector<std::string> check(const json::value& file) {
    object(file, [&](const json::object& o) {
      required(o, "providers", [&](const json::value& providers) {
        object(providers, [&](const json::object& all) { each(all, [&](const json::value& v) { provider(v); }); });
      });
    });
    return std::move(violations_);
  }

 private:
  using Check = std::function<void(const json::value&)>;

  void complain(std::string_view expected) {
    std::string path = to_text(path_);
    violations_.push_back(
        fmt::format("{}: expected {} (line {})", path.empty() ? "the file" : path, expected, line_of(text_, path_)));
  }

  // ---- shapes ----------------------------------------------------------------------------------------------------

  void object(const json::value& v, const std::function<void(const json::object&)>& check) {
    if (v.is_object()) {
      check(v.get_object());
    } else {
      complain("an object, { … }");
    }
  }

  void member(const json::object& o, std::string_view key, const Check& check) {
    const json::value* v = o.if_contains(key);
    if (v == nullptr) return;
    path_.emplace_back(std::string(key));
    check(*v);
    path_.pop_back();
  }

  void required(const json::object& o, std::string_view key, const Check& check) {
    if (o.contains(key)) {
      member(o, key, check);
    } else {
      path_.emplace_back(std::string(key));
      complain("a value, it is missing");
      path_.pop_back();
    }
  }

  void each(const json::object& o, const Check& check) {
    for (const auto& [key, v] : o)
      member(o, key, check);
  }

  void list(const json::value& v, const Check& check) {
    if (!v.is_array()) return complain("a list, [ … ]");
    for (std::size_t i = 0; i < v.get_array().size(); ++i) {
      path_.emplace_back(i);
      check(v.get_array()[i]);
      path_.pop_back();
    }
  }

  void text(const json::value& v) {
    if (!v.is_string() || v.get_string().empty()) complain("a text that is not empty");
  }
  void any_text(const json::value& v) {
    if (!v.is_string()) complain("a text");
  }
  void flag(const json::value& v) {
    if (!v.is_bool()) complain("true or false");
  }
  void number(const json::value& v) {
    if (!json::as_number(v)) complain("a number");
  }
  void word(const json::value& v, std::string_view choices) {
    const auto words = split_words(choices);
    if (v.is_string() && std::find(words.begin(), words.end(), json::view(v.get_string())) != words.end()) return;
    complain(fmt::format("one of {}", fmt::join(words, ", ")));
  }

  Check texts() {
    return [this](const json::value& v) { text(v); };
  }
  Check flags() {
    return [this](const json::value& v) { flag(v); };
  }
  Check numbers() {
    return [this](const json::value& v) { number(v); };
  }

  // ---- the file --------------------------------------------------------------------------------------------------

  void provider(const json::value& v) {
    object(v, [&](const json::object& o) {
      for (const char* key : {"name", "baseUrl", "apiKey", "api"})
        member(o, key, texts());
      member(o, "oauth", [&](const json::value& oauth) { word(oauth, "radius"); });
      member(o, "headers", [&](const json::value& h) { headers(h); });
      member(o, "compat", [&](const json::value& c) { compat(c); });
      member(o, "authHeader", flags());
      member(o, "models",
             [&](const json::value& models) { list(models, [&](const json::value& m) { model(m, true); }); });
      member(o, "modelOverrides", [&](const json::value& overrides) {
        object(overrides, [&](const json::object& all) { each(all, [&](const json::value& m) { model(m, false); }); });
      });
    });
  }

  void model(const json::value& v, bool definition) {
    object(v, [&](const json::object& o) {
      if (definition) {
        required(o, "id", texts());
        for (const char* key : {"api", "baseUrl"})
          member(o, key, texts());
      }
      member(o, "name", texts());
      member(o, "reasoning", flags());
      member(o, "thinkingLevelMap", [&](const json::value& map) { thinking_levels(map); });
      member(o, "input", [&](const json::value& input) {
        list(input, [&](const json::value& kind) { word(kind, "text image"); });
      });
      member(o, "cost", [&](const json::value& c) { cost(c, definition); });
      member(o, "contextWindow", numbers());
      member(o, "maxTokens", numbers());
      member(o, "samplingParams", [&](const json::value& p) { object(p, [](const json::object&) {}); });
      member(o, "headers", [&](const json::value& h) { headers(h); });
      member(o, "compat", [&](const json::value& c) { compat(c); });
    });
  }

  void headers(const json::value& v) {
    object(v, [&](const json::object& o) { each(o, [&](const json::value& h) { any_text(h); }); });
  }

  void thinking_levels(const json::value& v) {
    object(v, [&](const json::object& o) {
      each(o, [&](const json::value& mapped) {
        if (!ai::thinking_level_from(std::get<std::string>(path_.back()))) return;  // CA-173
        if (!mapped.is_null() && !mapped.is_string()) complain("a text or null");
      });
    });
  }

  void cost(const json::value& v, bool complete) {
    object(v, [&](const json::object& o) {
      for (const char* key : {"input", "output", "cacheRead", "cacheWrite"}) {
        if (complete) {
          required(o, key, numbers());
        } else {
          member(o, key, numbers());
        }
      }
      member(o, "tiers", [&](const json::value& tiers) {
        list(tiers, [&](const json::value& tier) {
          object(tier, [&](const json::object& t) {
            for (const char* key : {"inputTokensAbove", "input", "output", "cacheRead", "cacheWrite"}) {
              required(t, key, numbers());
            }
          });
        });
      });
    });
  }

  void compat(const json::value& v) {
    object(v, [&](const json::object& o) {
      for (const std::string_view key : kFlags)
        member(o, key, flags());
      for (const std::string_view key : kObjects) {
        member(o, key, [&](const json::value& inner) { object(inner, [](const json::object&) {}); });
      }
      for (const Choice& choice : kChoices) {
        member(o, choice.key, [&](const json::value& chosen) { word(chosen, choice.words); });
      }
      member(o, "vllmPriority", numbers());
    });
  }

  std::string_view text_;
  std::vector<JsonStep> path_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> models_file_violations(const json::value& file, std::string_view text) {
  return Checker(text).check(file);
}

}  // namespace tau::coding
