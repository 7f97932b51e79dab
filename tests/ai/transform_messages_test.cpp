#include "ai/transform_messages.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::ai {
namespace {

Model model_of(std::string provider, std::string api, std::string id) {
  Model m;
  m.provider = std::move(provider);
  m.api = std::move(api);
  m.id = std::move(id);
  m.image_input = true;
  return m;
}

const Model& target() {
  static const Model kTarget = model_of("p1", "anthropic-messages", "m1");
  return kTarget;
}

/// `text` holds a JSON array of messages; what a case does not care about may be missing.
std::vector<MessageRef> messages(std::string_view text) {
  std::vector<MessageRef> out;
  const json::value list = *json::parse(text);
  for (const json::value& m : list.get_array()) {
    json::object o = m.get_object();
    if (json::string_or(o, "role") == "assistant") {
      o.emplace("provider", "p1");
      o.emplace("api", "anthropic-messages");
      o.emplace("model", "m1");
      o.emplace("stopReason", "toolUse");
    }
    out.push_back(make_message(*message_from_json(o)));
  }
  return out;
}

/// "user: hi", "assistant: text [c1 c2]", "result c1: text!" (! = error)
std::vector<std::string> summary(const std::vector<MessageRef>& list) {
  std::vector<std::string> out;
  for (const MessageRef& m : list) {
    if (const auto* user = std::get_if<UserMessage>(m.get())) {
      out.push_back("user: " + text_of(user->content));
    } else if (const auto* assistant = std::get_if<AssistantMessage>(m.get())) {
      std::string line = "assistant: " + text_of(*assistant);
      const auto calls = tool_calls_of(*assistant);
      if (!calls.empty()) {
        line += " [";
        for (const ToolCall* call : calls)
          line += (line.back() == '[' ? "" : " ") + call->id;
        line += "]";
      }
      out.push_back(line);
    } else {
      const auto& result = std::get<ToolResultMessage>(*m);
      out.push_back("result " + result.tool_call_id + ": " + text_of(result.content) + (result.is_error ? "!" : ""));
    }
  }
  return out;
}

using Lines = std::vector<std::string>;

json::array to_array(const std::vector<MessageRef>& list) {
  json::array out;
  for (const MessageRef& m : list)
    out.emplace_back(to_json(*m));
  return out;
}

// AI-62 to AI-76
TEST(TransformMessages, GivesWhatPiSends) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/transform-messages.json");
  const json::object& vector = vectors.get_object();
  std::vector<MessageRef> input;
  for (const json::value& m : vector.at("messages").get_array())
    input.push_back(make_message(*message_from_json(m.get_object())));
  TransformOptions options;
  options.normalize_id = [](const std::string& id, const AssistantMessage&) { return plain_tool_call_id(id); };
  options.now = [] { return Milliseconds{1767225600000}; };

  const auto same =
      transform_messages(input, model_of("anthropic", "anthropic-messages", "claude-sonnet-4-5"), options);
  EXPECT_TRUE(json::equal(to_array(same), vector.at("same"))) << json::to_text(to_array(same));
  const auto other = transform_messages(input, model_of("openai", "openai-completions", "gpt"), options);
  EXPECT_TRUE(json::equal(to_array(other), vector.at("other"))) << json::to_text(to_array(other));
}

constexpr std::string_view kSigned = R"([
  {"role":"user","content":"go"},
  {"role":"assistant","content":[
    {"type":"thinking","thinking":"plan","thinkingSignature":"SIG-A"},
    {"type":"thinking","thinking":"","thinkingSignature":"SIG-E"},
    {"type":"thinking","thinking":"[hidden]","thinkingSignature":"SIG-R","redacted":true},
    {"type":"text","text":"ok","textSignature":"SIG-T"},
    {"type":"toolCall","id":"c1","name":"t","arguments":{},"thoughtSignature":"SIG-C","namespace":"n"}]},
  {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"text","text":"r"}]}])";

// FF-1
TEST(TransformMessages, SignaturesGoToNobodyButTheirModel) {
  const auto input = messages(kSigned);
  for (const Model& other : {model_of("p2", "anthropic-messages", "m1"), model_of("p1", "openai-responses", "m1"),
                             model_of("p1", "anthropic-messages", "m2")}) {
    const auto out = transform_messages(input, other);
    const std::string text = json::to_text(to_array(out));
    EXPECT_EQ(text.find("SIG-"), std::string::npos) << text;
    EXPECT_EQ(text.find("hidden"), std::string::npos) << text;
    EXPECT_NE(text.find("plan"), std::string::npos) << "visible thoughts become text: " << text;
    EXPECT_NE(text.find(R"("namespace":"n")"), std::string::npos) << text;
  }
}

// FF-1, FF-2
TEST(TransformMessages, TheSameModelGetsItsMessagesBackUntouched) {
  const auto input = messages(kSigned);
  const auto out = transform_messages(input, target());
  ASSERT_EQ(out.size(), input.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], input[i]) << "the handle itself, not a copy";
}

// FF-3
TEST(TransformMessages, TheReportedModelNameDoesNotMatter) {
  const auto input = messages(R"([{"role":"assistant","responseModel":"m1-20260101",
    "content":[{"type":"thinking","thinking":"x","thinkingSignature":"S"}]}])");
  EXPECT_EQ(transform_messages(input, target()).front(), input.front());
}

// FF-5, AI-72
TEST(TransformMessages, FailedRepliesAreLeftOutWithTheirResults) {
  for (const char* reason : {"aborted", "error"}) {
    const auto input = messages(std::string(R"([{"role":"user","content":"go"},
      {"role":"assistant","stopReason":")") +
                                reason + R"(","content":[{"type":"text","text":"half"},
        {"type":"toolCall","id":"c1","name":"t","arguments":{}}]},
      {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"text","text":"r"}]},
      {"role":"user","content":"again"}])");
    EXPECT_EQ(summary(transform_messages(input, target())), (Lines{"user: go", "user: again"}));
  }
}

TEST(TransformMessages, TheResultOfAFailedReplyDoesNotGoToAnOlderCall) {
  const auto input = messages(R"([
    {"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"t","arguments":{}}]},
    {"role":"assistant","stopReason":"error","content":[{"type":"toolCall","id":"c1","name":"t","arguments":{}}]},
    {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"text","text":"of the failed one"}]}])");
  EXPECT_EQ(summary(transform_messages(input, target())),
            (Lines{"assistant:  [c1]", "result c1: No result provided!"}));
}

// FF-5
TEST(TransformMessages, ResultsThatNobodyAskedForAreLeftOut) {
  const auto input = messages(R"([
    {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"text","text":"too early"}]},
    {"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"t","arguments":{}}]},
    {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"text","text":"first"}]},
    {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"text","text":"second"}]},
    {"role":"toolResult","toolCallId":"cX","toolName":"t","content":[]}])");
  EXPECT_EQ(summary(transform_messages(input, target())), (Lines{"assistant:  [c1]", "result c1: first"}));
}

// FF-6, AI-71
TEST(TransformMessages, ACallWithoutResultGetsAnError) {
  const auto input = messages(R"([
    {"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"t","arguments":{}},
      {"type":"toolCall","id":"c2","name":"t","arguments":{}}]},
    {"role":"toolResult","toolCallId":"c2","toolName":"t","content":[{"type":"text","text":"real"}]},
    {"role":"user","content":"next"},
    {"role":"assistant","content":[{"type":"toolCall","id":"c3","name":"u","arguments":{}}]}])");
  const auto out = transform_messages(input, target());
  EXPECT_EQ(summary(out), (Lines{"assistant:  [c1 c2]", "result c2: real", "result c1: No result provided!",
                                 "user: next", "assistant:  [c3]", "result c3: No result provided!"}));
  EXPECT_EQ(std::get<ToolResultMessage>(*out.back()).tool_name, "u");
  EXPECT_GT(std::get<ToolResultMessage>(*out.back()).timestamp, 0);
  // FF-13
  TransformOptions by_position;
  by_position.results_in_call_order = true;
  EXPECT_EQ(summary(transform_messages(input, target(), by_position))[1], "result c1: No result provided!");
}

TEST(TransformMessages, AResultThatWasStoredLateStillStandsBehindItsCall) {
  const auto input = messages(R"([
    {"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"t","arguments":{}}]},
    {"role":"user","content":"a note in between"},
    {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"text","text":"real"}]}])");
  EXPECT_EQ(summary(transform_messages(input, target())),
            (Lines{"assistant:  [c1]", "result c1: real", "user: a note in between"}));
}

// FF-7
TEST(TransformMessages, ReusedIdsArePairedLocallyAndRenamedTogether) {
  const auto input = messages(R"([
    {"role":"assistant","content":[{"type":"toolCall","id":"call_0","name":"t","arguments":{}}]},
    {"role":"toolResult","toolCallId":"call_0","toolName":"t","content":[{"type":"text","text":"A"}]},
    {"role":"assistant","content":[{"type":"toolCall","id":"call_0","name":"t","arguments":{}}]},
    {"role":"toolResult","toolCallId":"call_0","toolName":"t","content":[{"type":"text","text":"B"}]},
    {"role":"assistant","content":[{"type":"toolCall","id":"call_0","name":"t","arguments":{}},
      {"type":"toolCall","id":"call_0","name":"t","arguments":{}}]},
    {"role":"toolResult","toolCallId":"call_0","toolName":"t","content":[{"type":"text","text":"C"}]},
    {"role":"toolResult","toolCallId":"call_0","toolName":"t","content":[{"type":"text","text":"D"}]}])");
  const auto out = transform_messages(input, target());
  std::set<std::string> ids;
  std::vector<std::string> calls;
  std::vector<std::string> results;
  std::string texts;
  for (const MessageRef& m : out) {
    if (const auto* assistant = std::get_if<AssistantMessage>(m.get())) {
      for (const ToolCall* call : tool_calls_of(*assistant)) {
        EXPECT_TRUE(ids.insert(call->id).second) << call->id;
        calls.push_back(call->id);
      }
    } else if (const auto* result = std::get_if<ToolResultMessage>(m.get())) {
      results.push_back(result->tool_call_id);
      texts += text_of(result->content);
    }
  }
  EXPECT_EQ(calls, results);
  EXPECT_EQ(texts, "ABCD");
  EXPECT_EQ(calls.front(), "call_0") << "the first one keeps its id";
  EXPECT_EQ(json::to_text(to_array(out)), json::to_text(to_array(transform_messages(input, target()))));
  // A longer history keeps the ids of the shorter one: the provider's cache depends on it.
  const std::vector<MessageRef> shorter(input.begin(), input.begin() + 4);
  EXPECT_EQ(summary(transform_messages(shorter, target()))[2], summary(out)[2]);

  TransformOptions as_stored;
  as_stored.unique_ids = false;
  EXPECT_EQ(transform_messages(input, target(), as_stored), input);
}

TEST(TransformMessages, IdsThatCollideAfterNormalisingAreToldApart) {
  const auto input = messages(R"([
    {"role":"assistant","content":[{"type":"toolCall","id":"a.b","name":"t","arguments":{}},
      {"type":"toolCall","id":"a_b","name":"t","arguments":{}}, {"type":"toolCall","id":"","name":"t","arguments":{}}]},
    {"role":"toolResult","toolCallId":"a_b","toolName":"t","content":[{"type":"text","text":"2"}]},
    {"role":"toolResult","toolCallId":"","toolName":"t","content":[{"type":"text","text":"3"}]},
    {"role":"toolResult","toolCallId":"a.b","toolName":"t","content":[{"type":"text","text":"1"}]}])");
  TransformOptions options;
  options.normalize_id = [](const std::string& id, const AssistantMessage&) { return plain_tool_call_id(id); };
  options.rename_id = [](const std::string& id, int attempt) { return id + "-" + std::to_string(attempt); };
  EXPECT_EQ(summary(transform_messages(input, model_of("p2", "x", "y"), options)),
            (Lines{"assistant:  [a_b a_b-1 -1]", "result a_b-1: 2", "result -1: 3", "result a_b: 1"}));
}

TEST(TransformMessages, ResponsesIdsAreUniqueUpToTheBar) {
  const auto input = messages(R"([
    {"role":"assistant","content":[{"type":"toolCall","id":"call_1|fc_1","name":"t","arguments":{}},
      {"type":"toolCall","id":"call_1|fc_2","name":"t","arguments":{}}]}])");
  const auto out = transform_messages(input, target());
  const auto calls = tool_calls_of(std::get<AssistantMessage>(*out.front()));
  EXPECT_EQ(calls[0]->id, "call_1|fc_1");
  EXPECT_TRUE(calls[1]->id.starts_with("call_")) << calls[1]->id;
  EXPECT_EQ(calls[1]->id.find('|'), std::string::npos) << calls[1]->id;
}

// FF-9, FF-10
TEST(TransformMessages, BlankTextIsLeftOut) {
  const auto input = messages(R"([
    {"role":"user","content":[{"type":"text","text":" "},{"type":"image","data":"QQ==","mimeType":"image/png"}]},
    {"role":"assistant","content":[{"type":"text","text":"   "},{"type":"toolCall","id":"c1","name":"t","arguments":{}},
      {"type":"toolCall","id":"c2","name":"t","arguments":{}},{"type":"toolCall","id":"c3","name":"t","arguments":{}},
      {"type":"text","text":"","textSignature":"S"}]},
    {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"text","text":"\r\n"}]},
    {"role":"toolResult","toolCallId":"c2","toolName":"t","content":[{"type":"text","text":""},
      {"type":"image","data":"QQ==","mimeType":"image/png"}]},
    {"role":"toolResult","toolCallId":"c3","toolName":"t","content":[{"type":"text","text":"a"},{"type":"text","text":""},
      {"type":"text","text":"b"}]},
    {"role":"user","content":"  "}])");
  const auto out = transform_messages(input, target());
  const auto& user = std::get<UserMessage>(*out[0]);
  EXPECT_EQ(std::get<std::vector<UserBlock>>(user.content).size(), 1U);
  EXPECT_EQ(std::get<AssistantMessage>(*out[1]).content.size(), 4U) << "blank text with a signature of the model stays";
  EXPECT_TRUE(std::get<ToolResultMessage>(*out[2]).content.empty());
  EXPECT_EQ(std::get<ToolResultMessage>(*out[3]).content.size(), 1U);
  EXPECT_EQ(out[4], input[4]) << "an empty line inside a result is part of it";
  EXPECT_EQ(out[5], input[5]) << "what a message of blanks becomes is a matter of the API";
  EXPECT_EQ(std::get<AssistantMessage>(*transform_messages(input, model_of("p2", "a", "b"))[1]).content.size(), 3U);
}

// FF-12, AI-63
TEST(TransformMessages, ImagesBecomeANoteForModelsThatCannotSee) {
  const auto input = messages(R"json([
    {"role":"user","content":[{"type":"image","data":"QQ==","mimeType":"image/png"},
      {"type":"image","data":"QQ==","mimeType":"image/png"},{"type":"text","text":"see?"},
      {"type":"text","text":"(image omitted: model does not support images)"},
      {"type":"image","data":"QQ==","mimeType":"image/png"}]
},
    {"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"t","arguments":{}}]},
    {"role":"toolResult","toolCallId":"c1","toolName":"t","content":[{"type":"image","data":"QQ==","mimeType":"image/png"}]}])json");
  Model blind = target();
  blind.image_input = false;
  EXPECT_EQ(summary(transform_messages(input, blind)),
            (Lines{"user: (image omitted: model does not support images)\nsee?\n"
                   "(image omitted: model does not support images)",
                   "assistant:  [c1]", "result c1: (tool image omitted: model does not support images)"}));
  EXPECT_EQ(transform_messages(input, target()), input) << "the images are still there for a model that can see";
}

TEST(PlainToolCallId, HasOnlyPlainCharactersAndAtMost64) {
  EXPECT_EQ(plain_tool_call_id("call|a.b/\xC3\xA9\xF0\x9F\x98\x80-Z_9"), "call_a_b____-Z_9");
  EXPECT_EQ(plain_tool_call_id(std::string(100, 'x')).size(), 64U);
}

// ---- every transcript, however broken -----------------------------------------------------------------------------

class RandomTranscript {
 public:
  explicit RandomTranscript(unsigned seed) : random_(seed) {}

  std::vector<MessageRef> make() {
    std::vector<MessageRef> out;
    for (int n = pick(14); n > 0; --n) {
      switch (pick(4)) {
        case 0:
          out.push_back(user());
          break;
        case 1:
          out.push_back(result());
          break;
        default:
          out.push_back(assistant());
          for (int results = pick(3); results > 0; --results)
            out.push_back(result());
      }
    }
    return out;
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::string id() {
    return std::vector<std::string>{"call_0", "call_1", "a.b", "a_b", "c|f", ""}[static_cast<std::size_t>(pick(6))];
  }
  std::string word() { return std::vector<std::string>{"x", "", " ", "word"}[static_cast<std::size_t>(pick(4))]; }
  std::optional<std::string> signature() {
    if (pick(2) == 0) return std::nullopt;
    return owner_ + "-SIG";
  }

  MessageRef user() {
    if (pick(2) == 0) return make_message(UserMessage{word(), 1, {}});
    std::vector<UserBlock> blocks;
    for (int n = pick(4); n > 0; --n) {
      if (pick(2) == 0)
        blocks.emplace_back(TextContent{word(), {}, {}});
      else
        blocks.emplace_back(ImageContent{"QQ==", "image/png", {}});
    }
    return make_message(UserMessage{std::move(blocks), 1, {}});
  }

  MessageRef assistant() {
    AssistantMessage m;
    m.provider = pick(2) == 0 ? "p1" : "p2";
    m.api = "anthropic-messages";
    m.model = pick(3) == 0 ? "m2" : "m1";
    owner_ = m.provider + m.model;
    m.stop_reason = std::vector{StopReason::kToolUse, StopReason::kToolUse, StopReason::kLength, StopReason::kError,
                                StopReason::kAborted}[static_cast<std::size_t>(pick(5))];
    for (int n = pick(5); n > 0; --n) {
      switch (pick(4)) {
        case 0:
          m.content.emplace_back(TextContent{word(), signature(), {}});
          break;
        case 1:
          m.content.emplace_back(ThinkingContent{word(), signature(), pick(4) == 0, {}});
          break;
        default: {
          ToolCall call;
          call.id = id();
          call.name = "t" + std::to_string(pick(3));
          call.thought_signature = signature();
          m.content.emplace_back(std::move(call));
        }
      }
    }
    return make_message(std::move(m));
  }

  MessageRef result() {
    ToolResultMessage m;
    m.tool_call_id = id();
    m.tool_name = "t";
    if (pick(2) == 0) m.content.emplace_back(TextContent{word(), {}, {}});
    if (pick(3) == 0) m.content.emplace_back(ImageContent{"QQ==", "image/png", {}});
    return make_message(std::move(m));
  }

  std::mt19937 random_;
  std::string owner_;
};

/// Each call has exactly one result, right behind its reply, and there is no other result.
void expect_paired(const std::vector<MessageRef>& out, bool in_call_order) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < out.size();) {
    const auto* assistant = std::get_if<AssistantMessage>(out[i].get());
    ++i;
    if (assistant == nullptr) {
      ASSERT_FALSE(std::holds_alternative<ToolResultMessage>(*out[i - 1])) << "a result without its reply";
      continue;
    }
    EXPECT_NE(assistant->stop_reason, StopReason::kError);
    EXPECT_NE(assistant->stop_reason, StopReason::kAborted);
    std::vector<std::string> calls;
    for (const ToolCall* call : tool_calls_of(*assistant)) {
      calls.push_back(call->id);
      EXPECT_FALSE(call->id.empty());
      EXPECT_TRUE(seen.insert(call->id.substr(0, call->id.find('|'))).second) << call->id;
    }
    std::vector<std::string> results;
    for (; i < out.size() && std::holds_alternative<ToolResultMessage>(*out[i]); ++i)
      results.push_back(std::get<ToolResultMessage>(*out[i]).tool_call_id);
    if (!in_call_order) {
      std::sort(calls.begin(), calls.end());
      std::sort(results.begin(), results.end());
    }
    EXPECT_EQ(calls, results);
  }
}

TEST(TransformMessages, HoldsItsPromisesForEveryTranscript) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const auto input = RandomTranscript(seed).make();
    const std::string before = json::to_text(to_array(input));
    Model to = target();
    to.image_input = seed % 2 == 0;
    TransformOptions options;
    options.results_in_call_order = seed % 3 == 0;
    options.now = [] { return Milliseconds{7}; };
    if (seed % 5 != 0) {
      options.normalize_id = [](const std::string& id, const AssistantMessage&) { return plain_tool_call_id(id); };
    }
    const auto out = transform_messages(input, to, options);
    expect_paired(out, options.results_in_call_order);
    const std::string after = json::to_text(to_array(out));
    for (const char* foreign : {"p2m1-SIG", "p1m2-SIG", "p2m2-SIG"})
      EXPECT_EQ(after.find(foreign), std::string::npos);
    if (!to.image_input) {
      EXPECT_EQ(after.find("image/png"), std::string::npos);
    }
    EXPECT_EQ(json::to_text(to_array(input)), before) << "the input was changed";
    EXPECT_EQ(json::to_text(to_array(transform_messages(input, to, options))), after) << "not deterministic";
    // What comes out needs nothing more.
    EXPECT_EQ(json::to_text(to_array(transform_messages(out, to, options))), after);
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed << "\n" << before << "\n" << after;
  }
}

}  // namespace
}  // namespace tau::ai
