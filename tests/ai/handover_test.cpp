// Any history, made by any models, handed to any API: the request keeps that provider's rules (FF-1 to FF-13).
//
// Random transcripts go through every encoder. A rule that is broken is printed with the seed that breaks it.
#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ai/providers/anthropic_messages.h"
#include "ai/providers/azure_openai_responses.h"
#include "ai/providers/bedrock_converse_stream.h"
#include "ai/providers/google_generative_ai.h"
#include "ai/providers/mistral_conversations.h"
#include "ai/providers/openai_codex_responses.h"
#include "ai/providers/openai_completions.h"
#include "ai/providers/openai_responses.h"
#include "ai/providers/pi_messages.h"
#include "base/utf8.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

struct Source {
  std::string provider, api, model;
};

const std::vector<Source>& sources() {
  static const std::vector<Source> all{
      {"anthropic", "anthropic-messages", "claude-sonnet-4-5"},
      {"relay", "anthropic-messages", "claude-sonnet-4-5"},
      {"openai", "openai-responses", "gpt-5.5"},
      {"openai", "openai-responses", "gpt-5.4"},
      {"azure-openai-responses", "azure-openai-responses", "gpt-5.5"},
      {"openai-codex", "openai-codex-responses", "gpt-5.5"},
      {"google", "google-generative-ai", "gemini-3-flash-preview"},
      {"google", "google-generative-ai", "gemini-2.5-flash"},
      {"google-vertex", "google-vertex", "gemini-3-flash-preview"},
      {"mistral", "mistral-conversations", "mistral-medium-3.5"},
      {"amazon-bedrock", "bedrock-converse-stream", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"},
      {"local", "openai-completions", "m"},
      {"radius", "pi-messages", "gw-1"},
  };
  return all;
}

/// Base64 that tells who made it.
std::string mark(const Source& source) {
  const auto at = std::find_if(sources().begin(), sources().end(), [&](const Source& s) {
    return s.provider == source.provider && s.api == source.api && s.model == source.model;
  });
  return fmt::format("SIG{:02d}xyz", at - sources().begin());
}

class RandomTranscript {
 public:
  explicit RandomTranscript(unsigned seed) : random_(seed) {}

  std::vector<MessageRef> make() {
    std::vector<MessageRef> out;
    for (int n = pick(12); n > 0; --n) {
      switch (pick(3)) {
        case 0:
          out.push_back(user());
          break;
        case 1:
          out.push_back(assistant());
          break;
        default:
          out.push_back(result());
      }
    }
    return out;
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
  }

  std::string id() {
    static const std::vector<std::string> all{"call_0", "call_1", "a.b",      "a_b",      "c|f",
                                              "c|fc_1", "",       "toolu_01", "abcDEF123"};
    return one_of(all);
  }
  std::string word() {
    static const std::vector<std::string> all{"x", "", " \n", "word", "half \xED\xA0\xBC emoji", "\xF0\x9F\x98\x80"};
    return one_of(all);
  }
  std::optional<std::string> signature() {
    if (pick(3) == 0) return std::nullopt;
    const std::string own = mark(source_);
    if (source_.api.find("responses") == std::string::npos) return own;
    return json::to_text(json::object{{"type", "reasoning"}, {"id", "rs_" + own}, {"summary", json::array{}}});
  }

  std::vector<UserBlock> blocks() {
    std::vector<UserBlock> all;
    for (int n = pick(4); n > 0; --n) {
      if (pick(2) == 0) {
        all.emplace_back(TextContent{word(), {}, {}});
      } else {
        all.emplace_back(ImageContent{"QQ==", "image/png", {}});
      }
    }
    return all;
  }

  MessageRef user() {
    if (pick(2) == 0) return make_message(UserMessage{word(), 1, {}});
    return make_message(UserMessage{blocks(), 1, {}});
  }

  MessageRef assistant() {
    source_ = one_of(sources());
    AssistantMessage m;
    m.provider = source_.provider;
    m.api = source_.api;
    m.model = source_.model;
    m.stop_reason = one_of(std::vector{StopReason::kToolUse, StopReason::kToolUse, StopReason::kStop,
                                       StopReason::kLength, StopReason::kError, StopReason::kAborted});
    for (int n = pick(5); n > 0; --n) {
      switch (pick(4)) {
        case 0:
          m.content.emplace_back(TextContent{word(), pick(2) == 0 ? signature() : std::nullopt, {}});
          break;
        case 1:
          m.content.emplace_back(ThinkingContent{word(), signature(), pick(5) == 0, {}});
          break;
        default: {
          ToolCall call;
          call.id = id();
          call.name = "t" + std::to_string(pick(3));
          call.arguments = json::object{{"path", word()}, {"", 1}};
          if (pick(3) == 0) call.thought_signature = mark(source_);
          m.content.emplace_back(std::move(call));
        }
      }
    }
    return make_message(std::move(m));
  }

  MessageRef result() {
    ToolResultMessage m;
    m.tool_call_id = id();
    m.tool_name = "t" + std::to_string(pick(3));
    m.content = blocks();
    m.is_error = pick(3) == 0;
    return make_message(std::move(m));
  }

  std::mt19937 random_;
  Source source_ = sources().front();
};

// ---- what the rules are about ----------------------------------------------------------------------------------

/// Calls and results in the order of a request. A break stands where something else was said.
struct Step {
  enum class Kind { kCall, kResult, kBreak } kind;
  std::string id;
};

/// Exactly one result for each call, before anything else is said; none without a call.
std::string unpaired(const std::vector<Step>& steps, bool unique_ids) {
  std::set<std::string> seen;
  std::multiset<std::string> open;
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::kCall:
        if (unique_ids && !seen.insert(step.id).second) return "the id " + step.id + " is used twice";
        if (step.id.empty()) return "a call has no id";
        open.insert(step.id);
        break;
      case Step::Kind::kResult: {
        const auto call = open.find(step.id);
        if (call == open.end()) return "the result " + step.id + " has no call";
        open.erase(call);
        break;
      }
      case Step::Kind::kBreak:
        if (!open.empty()) return "the call " + *open.begin() + " has no result";
    }
  }
  return open.empty() ? "" : "the call " + *open.begin() + " has no result";
}

/// Where a blank text stands that nothing hangs on (FF-9, FF-10).
std::string blank_text(const json::value& v) {
  if (const json::array* items = v.if_array()) {
    for (const json::value& item : *items) {
      if (std::string found = blank_text(item); !found.empty()) return found;
    }
    return {};
  }
  const json::object* o = v.if_object();
  if (o == nullptr) return {};
  const auto text = json::find_string(*o, "text");
  const bool carries = o->contains("thoughtSignature") || o->contains("signature");
  if (text && utf8::is_blank(*text) && !carries) return json::to_text(*o);
  const auto content = json::find_string(*o, "content");
  if (content && utf8::is_blank(*content) && !o->contains("tool_calls")) return json::to_text(*o);
  const json::array* parts = json::find_array(*o, "content");
  if (parts != nullptr && parts->empty()) return json::to_text(*o);
  for (const auto& [key, member] : *o) {
    if (std::string_view(key) == "arguments" || std::string_view(key) == "input" || std::string_view(key) == "args") {
      if (member.is_object()) continue;  // the model's own words
    }
    if (std::string found = blank_text(member); !found.empty()) return found;
  }
  return {};
}

std::vector<Step> anthropic_steps(const json::object& body) {
  std::vector<Step> steps;
  for (const json::value& message : body.at("messages").as_array()) {
    if (json::string_or(message.get_object(), "role") == "assistant") steps.push_back({Step::Kind::kBreak, ""});
    const json::array* parts = json::find_array(message.get_object(), "content");
    if (parts == nullptr) {
      steps.push_back({Step::Kind::kBreak, ""});
      continue;
    }
    for (const json::value& part : *parts) {
      const json::object& o = part.get_object();
      const std::string type = json::string_or(o, "type");
      if (type == "tool_use") {
        steps.push_back({Step::Kind::kCall, json::string_or(o, "id")});
      } else if (type == "tool_result") {
        steps.push_back({Step::Kind::kResult, json::string_or(o, "tool_use_id")});
      } else if (json::string_or(message.get_object(), "role") == "user") {
        steps.push_back({Step::Kind::kBreak, ""});
      }
    }
  }
  return steps;
}

std::vector<Step> chat_steps(const json::object& body) {
  std::vector<Step> steps;
  for (const json::value& message : body.at("messages").as_array()) {
    const json::object& o = message.get_object();
    if (json::string_or(o, "role") == "tool") {
      steps.push_back({Step::Kind::kResult, json::string_or(o, "tool_call_id")});
      continue;
    }
    steps.push_back({Step::Kind::kBreak, ""});
    const json::array* calls = json::find_array(o, "tool_calls");
    for (std::size_t i = 0; calls != nullptr && i < calls->size(); ++i)
      steps.push_back({Step::Kind::kCall, json::string_or((*calls)[i].get_object(), "id")});
  }
  return steps;
}

std::vector<Step> responses_steps(const json::object& body) {
  std::vector<Step> steps;
  for (const json::value& item : body.at("input").as_array()) {
    const json::object& o = item.get_object();
    const std::string type = json::string_or(o, "type");
    if (type == "function_call") {
      steps.push_back({Step::Kind::kCall, json::string_or(o, "call_id")});
    } else if (type == "function_call_output") {
      steps.push_back({Step::Kind::kResult, json::string_or(o, "call_id")});
    } else if (json::string_or(o, "role") == "user") {
      steps.push_back({Step::Kind::kBreak, ""});
    }
  }
  return steps;
}

/// Google pairs by position: the n-th response is the n-th call's (FF-13).
std::vector<Step> google_steps(const json::object& body) {
  std::vector<Step> steps;
  int turn = 0;
  for (const json::value& content : body.at("contents").as_array()) {
    const bool model = json::string_or(content.get_object(), "role") == "model";
    if (model) {
      ++turn;
      steps.push_back({Step::Kind::kBreak, ""});
    }
    int position = 0;
    for (const json::value& part : content.at("parts").as_array()) {
      const json::object& o = part.get_object();
      // Where the model takes ids, they must agree with the positions.
      const auto place = [&](std::string_view key) {
        const json::object& function = o.at(key).get_object();
        return fmt::format("{}.{}{}", turn, position++, json::string_or(function, "id"));
      };
      if (o.contains("functionCall")) {
        steps.push_back({Step::Kind::kCall, place("functionCall")});
      } else if (o.contains("functionResponse")) {
        steps.push_back({Step::Kind::kResult, place("functionResponse")});
      } else if (!model) {
        steps.push_back({Step::Kind::kBreak, ""});
      }
    }
  }
  return steps;
}

std::vector<Step> bedrock_steps(const json::object& body) {
  std::vector<Step> steps;
  std::string before;
  for (const json::value& message : body.at("messages").as_array()) {
    const std::string role = json::string_or(message.get_object(), "role");
    EXPECT_NE(role, before) << "turns must alternate";
    before = role;
    if (role == "assistant") steps.push_back({Step::Kind::kBreak, ""});
    for (const json::value& part : message.at("content").as_array()) {
      const json::object& o = part.get_object();
      if (const json::object* use = json::find_object(o, "toolUse")) {
        steps.push_back({Step::Kind::kCall, json::string_or(*use, "toolUseId")});
      } else if (const json::object* result = json::find_object(o, "toolResult")) {
        steps.push_back({Step::Kind::kResult, json::string_or(*result, "toolUseId")});
      } else if (role == "user") {
        steps.push_back({Step::Kind::kBreak, ""});
      }
    }
  }
  return steps;
}

struct Target {
  std::string name;
  Source source;
  std::function<std::expected<json::object, std::string>(const Model&, const Context&)> encode;
  std::function<std::vector<Step>(const json::object& body)> steps;  // empty: hands the context on as it is
  bool unique_ids = true;
};

const std::vector<Target>& targets() {
  static const StreamOptions none;
  static const auto find = [](std::string_view api, std::string_view model = "") {
    return *std::find_if(sources().begin(), sources().end(),
                         [&](const Source& s) { return s.api == api && (model.empty() || s.model == model); });
  };
  static const std::vector<Target> all{
      {"anthropic", find("anthropic-messages"),
       [](const Model& m, const Context& c) { return encode_anthropic_messages(m, c, none); }, anthropic_steps},
      {"completions", find("openai-completions"),
       [](const Model& m, const Context& c) { return encode_openai_completions(m, c, none); }, chat_steps},
      {"responses", find("openai-responses"),
       [](const Model& m, const Context& c) { return encode_openai_responses(m, c, none); }, responses_steps},
      {"azure", find("azure-openai-responses"),
       [](const Model& m, const Context& c) { return encode_azure_openai_responses(m, c, none); }, responses_steps},
      {"codex", find("openai-codex-responses"),
       [](const Model& m, const Context& c) { return encode_openai_codex_responses(m, c, none); }, responses_steps},
      {"gemini 3", find("google-generative-ai"),
       [](const Model& m, const Context& c) { return encode_google(m, c, none); }, google_steps},
      {"gemini 2", find("google-generative-ai", "gemini-2.5-flash"),
       [](const Model& m, const Context& c) { return encode_google(m, c, none); }, google_steps},
      {"vertex", find("google-vertex"),
       [](const Model& m, const Context& c) { return encode_google(m, c, none, GoogleService::kVertex); },
       google_steps},
      {"mistral", find("mistral-conversations"),
       [](const Model& m, const Context& c) { return encode_mistral(m, c, none); }, chat_steps},
      {"bedrock", find("bedrock-converse-stream"),
       [](const Model& m, const Context& c) { return encode_bedrock(m, c, none, "eu-west-1"); }, bedrock_steps},
      {"gateway",
       find("pi-messages"),
       [](const Model& m, const Context& c) -> std::expected<json::object, std::string> {
         return encode_pi_messages(m, c, none);
       },
       {}},
  };
  return all;
}

std::string text_of_transcript(const std::vector<MessageRef>& messages) {
  std::string text;
  for (const MessageRef& message : messages)
    text += json::to_text(to_json(*message)) + "\n";
  return text;
}

class HandOver : public testing::TestWithParam<Target> {};

TEST_P(HandOver, TheRequestKeepsTheProvidersRules) {
  const Target& target = GetParam();
  Model model;
  model.id = target.source.model;
  model.name = model.id;
  model.api = target.source.api;
  model.provider = target.source.provider;
  model.reasoning = true;
  model.max_tokens = 1000;
  constexpr unsigned kSeeds = test::kAddressSanitizer ? 300 : 1500;  // it makes each ten times as slow
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Context context;
    context.system_prompt = "be brief \xED\xA0\xBC";
    context.messages = RandomTranscript(seed).make();
    model.image_input = seed % 2 == 0;
    const std::string before = text_of_transcript(context.messages);
    const auto body = target.encode(model, context);
    ASSERT_TRUE(body) << body.error();
    const std::string text = json::to_text(*body);
    SCOPED_TRACE(fmt::format("seed {}\n{}\n{}", seed, before, text));

    EXPECT_EQ(text_of_transcript(context.messages), before) << "the transcript was changed";
    EXPECT_EQ(json::to_text(*target.encode(model, context)), text) << "the same request has other bytes";
    EXPECT_EQ(text.find("\\ud83c"), std::string::npos) << "half a character leaves (FF-4)";
    EXPECT_TRUE(utf8::is_valid(text));
    if (target.steps) {
      for (const Source& source : sources()) {
        if (mark(source) == mark(target.source)) continue;
        EXPECT_EQ(text.find(mark(source)), std::string::npos) << "a foreign signature (FF-1)";
      }
      EXPECT_EQ(blank_text(json::value(*body)), "");
      EXPECT_EQ(unpaired(target.steps(*body), target.unique_ids), "");
      if (!model.image_input) {
        EXPECT_EQ(text.find("QQ=="), std::string::npos) << "an image for a model without eyes";
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Apis, HandOver, testing::ValuesIn(targets()), [](const auto& tested) {
  std::string name = tested.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace tau::ai
