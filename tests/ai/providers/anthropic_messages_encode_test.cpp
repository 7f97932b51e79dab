#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ai/error_classification.h"
#include "ai/providers/anthropic_messages.h"
#include "ai/providers/provider_fixtures.h"
#include "base/utf8.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Model model_of(std::string provider = "p1", std::string id = "m1") {
  Model model;
  model.id = std::move(id);
  model.api = kAnthropicMessagesApi;
  model.provider = std::move(provider);
  model.base_url = "https://example.test";
  model.image_input = true;
  model.max_tokens = 8000;
  model.context_window = 200000;
  return model;
}

StreamOptions with_key() {
  StreamOptions options;
  options.api_key = "sk-test-harbour";
  options.cache_retention = CacheRetention::kNone;
  return options;
}

MessageRef message(std::string_view text) {
  return make_message(*message_from_json(json::parse(text)->as_object()));
}

MessageRef user(std::string_view text) {
  return make_message(UserMessage{std::string(text), 0, {}});
}

MessageRef assistant(std::string_view content, std::string_view stop = "stop", std::string_view provider = "p1") {
  return message(fmt::format(R"({{"role":"assistant","api":"anthropic-messages","provider":"{}","model":"m1",)"
                             R"("stopReason":"{}","content":{}}})",
                             provider, stop, content));
}

MessageRef result(std::string_view id, std::string_view content, std::string_view more = "") {
  return message(
      fmt::format(R"({{"role":"toolResult","toolCallId":"{}","toolName":"read","content":{}{}}})", id, content, more));
}

Tool tool(std::string name, std::string_view parameters = R"({"type":"object","properties":{}})") {
  return {std::move(name), "d", json::parse(parameters)->as_object(), {}};
}

json::object encode(const Context& context, const Model& model = model_of(),
                    const StreamOptions& options = with_key()) {
  auto body = encode_anthropic_messages(model, context, options);
  EXPECT_TRUE(body.has_value());
  return *std::move(body);
}

std::string messages_of(const Context& context, const Model& model = model_of(),
                        const StreamOptions& options = with_key()) {
  return json::to_text(encode(context, model, options).at("messages"));
}

std::string member(const json::object& o, std::string_view key) {
  const json::value* found = o.if_contains(key);
  return found == nullptr ? "" : json::to_text(*found);
}

std::map<std::string, std::string> headers_of(const Model& model, const Context& context,
                                              const StreamOptions& options) {
  std::map<std::string, std::string> headers;
  const auto list = anthropic_headers(model, context, options);
  for (const auto& [name, text] : *list)
    headers[name] = text;
  return headers;
}

// AI-102
TEST(AnthropicMessagesEncoder, WritesMembersInTheOrderOfTheReference) {
  for (const std::string& name : test::provider_cases("anthropic-messages")) {
    const json::value request =
        test::read_json(test::fixture_root() / "ai" / "anthropic-messages" / name / "request.json");
    if (!request.is_object()) continue;
    const json::object source = test::read_case("anthropic-messages", name);
    const json::object body =
        encode(test::case_context(source.at("context").as_object()), test::case_model(source.at("model").as_object()),
               test::case_options(source.at("options").as_object()));
    std::vector<std::string> expected;
    std::vector<std::string> found;
    for (const auto& m : request.as_object().at("body").as_object())
      expected.emplace_back(m.key());
    for (const auto& m : body)
      found.emplace_back(m.key());
    EXPECT_EQ(found, expected) << name;
  }
}

// ---- hand-over ---------------------------------------------------------------------------------------------------

// FF-1
TEST(AnthropicMessagesEncoder, ReplaysASignatureOnlyToItsOwnModel) {
  Context context;
  context.messages = {user("a"),
                      assistant(R"([{"type":"thinking","thinking":"plan","thinkingSignature":"SIG-A"},)"
                                R"({"type":"text","text":"ok"}])"),
                      user("b")};
  const std::string foreign = messages_of(context, model_of("p2"));
  EXPECT_THAT(foreign, Not(HasSubstr("SIG-A")));
  EXPECT_THAT(foreign, Not(HasSubstr("\"thinking\"")));
  EXPECT_THAT(messages_of(context), HasSubstr(R"({"type":"thinking","thinking":"plan","signature":"SIG-A"})"));
}

// FF-2
TEST(AnthropicMessagesEncoder, KeepsEmptyThinkingThatIsSigned) {
  Context context;
  context.messages = {user("a"),
                      assistant(R"([{"type":"thinking","thinking":"","thinkingSignature":"SIG-E"},)"
                                R"({"type":"toolCall","id":"t","name":"read","arguments":{}}])",
                                "toolUse"),
                      result("t", R"([{"type":"text","text":"x"}])")};
  EXPECT_THAT(messages_of(context),
              HasSubstr(R"([{"type":"thinking","thinking":"","signature":"SIG-E"},{"type":"tool_use")"));
}

TEST(AnthropicMessagesEncoder, SendsUnsignedThinkingAsTheModelTakesIt) {
  Context context;
  context.messages = {user("a"), assistant(R"([{"type":"thinking","thinking":"idea"},)"
                                           R"({"type":"thinking","thinking":"x","redacted":true}])")};
  EXPECT_THAT(messages_of(context), HasSubstr(R"([{"type":"text","text":"idea"}])"));
  Model model = model_of();
  model.compat["allowEmptySignature"] = true;
  EXPECT_THAT(messages_of(context, model), HasSubstr(R"([{"type":"thinking","thinking":"idea","signature":""}])"));
}

// FF-4
TEST(AnthropicMessagesEncoder, SendsNoLoneSurrogateAnywhere) {
  Context context;
  context.system_prompt = std::string("s \xED\xA0\xBC");
  context.messages = {
      message(R"({"role":"user","content":"u \ud83c end"})"),
      message(R"({"role":"user","content":[{"type":"text","text":"\ud83c"}]})"),
      assistant(
          R"([{"type":"toolCall","id":"t","name":"re\ud83cad","arguments":{"k\ud83c":["\udc00 x"],"e":"\ud83d\ude00"}}])",
          "toolUse"),
      result("t", R"([{"type":"text","text":"tag \ud83c end ok \ud83d\ude00"}])")};
  context.tools = {
      tool("n\xED\xA0\xBC", R"({"type":"object","properties":{"a":{"type":"string","description":"\ud83c"}}})")};
  const std::string text = json::to_text(encode(context));
  EXPECT_TRUE(utf8::is_valid(text));
  EXPECT_THAT(text, Not(HasSubstr("\\u")));
  EXPECT_THAT(text, HasSubstr("tag  end ok 😀"));
  EXPECT_THAT(text, HasSubstr(R"("input":{"k":[" x"],"e":"😀"})"));
  EXPECT_THAT(text, Not(HasSubstr(R"("text":"")")));  // FF-9: what is empty after that is left out
}

// FF-5
TEST(AnthropicMessagesEncoder, LeavesOutResultsOfDroppedReplies) {
  Context context;
  context.messages = {user("go"),
                      assistant(R"([{"type":"toolCall","id":"c1","name":"read","arguments":{}}])", "aborted"),
                      result("c1", R"([{"type":"text","text":"x"}])"), user("again")};
  EXPECT_EQ(messages_of(context), R"([{"role":"user","content":"go"},{"role":"user","content":"again"}])");
}

// FF-6
TEST(AnthropicMessagesEncoder, GivesEveryCallAResult) {
  Context context;
  context.messages = {user("go"),
                      assistant(R"([{"type":"toolCall","id":"c1","name":"read","arguments":{}},)"
                                R"({"type":"toolCall","id":"c2","name":"read","arguments":{}}])",
                                "toolUse"),
                      result("c2", R"([{"type":"text","text":"two"}])"), user("next")};
  EXPECT_THAT(
      messages_of(context),
      HasSubstr(
          R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"two","is_error":false},)"
          R"({"type":"tool_result","tool_use_id":"c1","content":"No result provided","is_error":true}]},)"
          R"({"role":"user","content":"next"})"));
}

// FF-7
TEST(AnthropicMessagesEncoder, MakesRepeatedIdsUniqueTheSameWayEachTime) {
  const std::string call = R"({"type":"toolCall","id":"call_0","name":"read","arguments":{}})";
  Context context;
  context.messages = {user("go"),
                      assistant("[" + call + "]", "toolUse"),
                      result("call_0", R"([{"type":"text","text":"A"}])"),
                      assistant("[" + call + "," + call + "]", "toolUse"),
                      result("call_0", R"([{"type":"text","text":"B"}])"),
                      result("call_0", R"([{"type":"text","text":"C"}])")};
  const json::object body = encode(context);
  std::vector<std::string> calls;
  std::vector<std::string> results;
  for (const json::value& m : body.at("messages").as_array()) {
    if (!m.as_object().at("content").is_array()) continue;
    for (const json::value& block : m.as_object().at("content").as_array()) {
      const json::object& o = block.as_object();
      if (o.at("type") == "tool_use") calls.push_back(json::string_or(o, "id"));
      if (o.at("type") == "tool_result")
        results.push_back(json::string_or(o, "tool_use_id") + " " + json::string_or(o, "content"));
    }
  }
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(std::set<std::string>(calls.begin(), calls.end()).size(), 3U);
  EXPECT_THAT(results, ElementsAre(calls[0] + " A", calls[1] + " B", calls[2] + " C"));
  EXPECT_EQ(json::to_text(encode(context)), json::to_text(body));
}

// FF-9
TEST(AnthropicMessagesEncoder, SendsNoBlankText) {
  for (const std::string_view content :
       {R"([{"type":"text","text":"\r\n"}])", R"([{"type":"text","text":""}])", "[]", "null"}) {
    Context context;
    context.messages = {user("go"),
                        assistant(R"([{"type":"toolCall","id":"t","name":"read","arguments":{}}])", "toolUse"),
                        result("t", content),
                        assistant(R"([{"type":"text","text":"   "}])"),
                        user("  \n"),
                        message(R"({"role":"user","content":[{"type":"text","text":" "}]})"),
                        user("on")};
    EXPECT_EQ(messages_of(context),
              R"([{"role":"user","content":"go"},)"
              R"({"role":"assistant","content":[{"type":"tool_use","id":"t","name":"read","input":{}}]},)"
              R"~({"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"(no tool output)",)~"
              R"("is_error":false}]},{"role":"user","content":"on"}])");
  }
}

// FF-10, FF-12
TEST(AnthropicMessagesEncoder, SendsAnImageAloneOrAPlaceholderForModelsThatSeeNone) {
  Context context;
  context.messages = {message(
      R"({"role":"user","content":[{"type":"text","text":""},{"type":"image","data":"QUJD","mimeType":"image/png"}]})")};
  EXPECT_EQ(messages_of(context),
            R"([{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png",)"
            R"("data":"QUJD"}}]}])");
  Model blind = model_of();
  blind.image_input = false;
  EXPECT_EQ(
      messages_of(context, blind),
      R"~([{"role":"user","content":[{"type":"text","text":"(image omitted: model does not support images)"}]}])~");
}

// FF-11: the rest of the conversation must still be accepted.
TEST(AnthropicMessagesEncoder, ReplacesAnImageThatTheServiceWouldRefuse) {
  // The header of a PNG of 9000 x 40 pixels.
  const std::string png = "iVBORw0KGgoAAAANSUhEUgAAIygAAAAoCAYAAAA=";
  Context context;
  context.messages = {user("a"), assistant(R"([{"type":"toolCall","id":"t","name":"read","arguments":{}}])", "toolUse"),
                      result("t", R"([{"type":"image","mimeType":"image/png","data":")" + png + R"("}])")};
  EXPECT_THAT(messages_of(context), HasSubstr("(image omitted: larger than the provider accepts)"));
  EXPECT_THAT(messages_of(context), Not(HasSubstr("base64")));

  UserMessage heavy;
  heavy.content = std::vector<UserBlock>{ImageContent{std::string((std::size_t{5} << 20) + 4, 'A'), "image/png", {}}};
  context.messages = {make_message(std::move(heavy))};
  EXPECT_THAT(messages_of(context), Not(HasSubstr("base64")));
}

// AI-105: `input` is an object, whatever a broken stream left.
TEST(AnthropicMessagesEncoder, SendsAnObjectAsInput) {
  Context context;
  context.messages = {user("a"),
                      assistant(R"([{"type":"toolCall","id":"t","name":"read","arguments":[1]}])", "toolUse")};
  EXPECT_THAT(messages_of(context), HasSubstr(R"("input":{})"));
}

// ---- tools -------------------------------------------------------------------------------------------------------

std::vector<std::string> tool_summary(const json::object& body) {
  std::vector<std::string> names;
  for (const json::value& t : body.at("tools").as_array()) {
    const json::object& o = t.as_object();
    names.push_back(json::string_or(o, "name") + (o.contains("defer_loading") ? " deferred" : ""));
  }
  return names;
}

Context deferring_context() {
  Context context;
  const auto call = [](std::string_view id, std::string_view name) {
    return assistant(fmt::format(R"([{{"type":"toolCall","id":"{}","name":"{}","arguments":{{}}}}])", id, name),
                     "toolUse");
  };
  context.messages = {user("go"), call("1", "early"),
                      result("1", R"([{"type":"text","text":"one"}])", R"(,"addedToolNames":["early","late","ghost"])"),
                      call("2", "late"), result("2", R"([])", R"(,"addedToolNames":["late"])")};
  context.tools = {tool("late"), tool("early"), tool("other")};
  return context;
}

// AI-77, AI-78, AI-110
TEST(AnthropicMessagesEncoder, DefersToolsUntilAResultNamesThem) {
  const Model model = model_of("anthropic", "claude-sonnet-4-5");
  const json::object body = encode(deferring_context(), model);
  EXPECT_THAT(tool_summary(body), ElementsAre("early", "other", "late deferred"));
  const std::string messages = json::to_text(body.at("messages"));
  EXPECT_THAT(
      messages,
      HasSubstr(R"({"type":"tool_result","tool_use_id":"1","content":[{"type":"tool_reference","tool_name":"late"}],)"
                R"("is_error":false},{"type":"text","text":"one"}])"));
  EXPECT_THAT(messages, HasSubstr(R"~("tool_use_id":"2","content":"(no tool output)")~"));
}

// AI-110: as pi 0.85.0 sends it.
TEST(AnthropicMessagesEncoder, MovesTheContentOfARevealingResultBehindAllResults) {
  const std::string image = R"({"type":"image","data":"QUJD","mimeType":"image/png"})";
  Context context;
  context.messages = {user("one"),
                      assistant(R"([{"type":"toolCall","id":"a","name":"read","arguments":{}},)"
                                R"({"type":"toolCall","id":"b","name":"read","arguments":{}},)"
                                R"({"type":"toolCall","id":"c","name":"read","arguments":{}}])",
                                "toolUse"),
                      result("a", R"([{"type":"text","text":"x"},)" + image + R"(,{"type":"text","text":"y"}])",
                             R"(,"addedToolNames":["bash"])"),
                      result("b", "[" + image + "]", R"(,"addedToolNames":["edit"],"isError":true)"),
                      result("c", R"([{"type":"text","text":"p"},{"type":"text","text":"q"}])",
                             R"(,"addedToolNames":["write","bash"])")};
  context.tools = {tool("read"), tool("bash"), tool("edit"), tool("write")};
  const std::string sent_image =
      R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}})";
  EXPECT_THAT(
      messages_of(context, model_of("anthropic", "claude-opus-4-6")),
      HasSubstr(R"([{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"bash"}],)"
                R"("is_error":false},)"
                R"({"type":"tool_result","tool_use_id":"b","content":[{"type":"tool_reference","tool_name":"edit"}],)"
                R"("is_error":true},)"
                R"({"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_reference","tool_name":"write"}],)"
                R"("is_error":false},)"
                R"({"type":"text","text":"x"},)" +
                sent_image + R"~(,{"type":"text","text":"y"},{"type":"text","text":"(see attached image)"},)~" +
                sent_image + R"(,{"type":"text","text":"p\nq"}])"));
}

// AI-79
TEST(AnthropicMessagesEncoder, DefersNothingWhenNoToolWouldBeLeft) {
  Context context = deferring_context();
  context.tools = {tool("late")};
  const json::object body = encode(context, model_of("anthropic", "claude-sonnet-4-5"));
  EXPECT_THAT(tool_summary(body), ElementsAre("late"));
  EXPECT_THAT(json::to_text(body), Not(HasSubstr("tool_reference")));
}

// AI-110
TEST(AnthropicMessagesEncoder, KnowsWhichModelsTakeToolReferences) {
  const std::vector<std::pair<std::string, bool>> ids{
      {"claude-sonnet-4-5", true},         {"claude-sonnet-4-5-20250929", true},
      {"claude-opus-4-1", false},          {"claude-opus-4-20250514", false},
      {"claude-sonnet-4-0", false},        {"claude-fable-5", true},
      {"claude-opus-5-20270101", true},    {"claude-haiku-4-5", false},
      {"claude-3-7-sonnet-latest", false}, {"claude-sonnet-latest", false},
      {"claude-sonnet-10", true}};
  for (const auto& [id, expected] : ids) {
    const auto deferred = [&](const Model& model) {
      return json::to_text(encode(deferring_context(), model)).find("tool_reference") != std::string::npos;
    };
    Model model = model_of("anthropic", id);
    EXPECT_EQ(deferred(model), expected) << id;
    EXPECT_FALSE(deferred(model_of("other", id))) << id;
    model.compat["supportsToolReferences"] = !expected;
    EXPECT_EQ(deferred(model), !expected) << id;
  }
}

// AI-77
TEST(AnthropicMessagesEncoder, SendsTheLastDefinitionInThePlaceOfTheFirst) {
  Context context;
  context.messages = {user("a")};
  context.tools = {tool("x"), tool("y"), tool("x", R"({"type":"object","properties":{"new":{}}})")};
  const json::object body = encode(context);
  EXPECT_THAT(tool_summary(body), ElementsAre("x", "y"));
  EXPECT_THAT(member(body, "tools"), HasSubstr(R"("properties":{"new":{}})"));
}

// AI-80
TEST(AnthropicMessagesEncoder, RefusesAToolThatRequiresWhatTheModelLacks) {
  Context context;
  context.messages = {user("a")};
  context.tools = {tool("x")};
  context.tools[0].constrained_sampling = json::object{{"type", "json_schema"}, {"strict", "require"}};
  const auto body = encode_anthropic_messages(model_of(), context, with_key());
  ASSERT_FALSE(body.has_value());
  EXPECT_THAT(body.error(), HasSubstr("Tool \"x\" requires JSON-schema constrained sampling"));
}

// AI-109, and the definitions that "$ref" needs
TEST(AnthropicMessagesEncoder, SendsSchemasWithoutWhatTheApiDoesNotTake) {
  Context context;
  context.messages = {user("a")};
  context.tools = {
      tool("x", R"({"$schema":"s","title":"t","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{}}})")};
  EXPECT_THAT(member(encode(context), "tools"),
              HasSubstr(R"("input_schema":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":[],)"
                        R"("$defs":{"A":{}}})"));
}

// ---- thinking, cache, the rest -----------------------------------------------------------------------------------

Context small_context() {
  Context context;
  context.messages = {user("a")};
  return context;
}

// AI-103
TEST(AnthropicMessagesEncoder, AsksForThinkingInTheFormOfTheModel) {
  Model model = model_of();
  StreamOptions options = with_key();
  options.temperature = 0.5;
  json::object body = encode(small_context(), model, options);
  EXPECT_EQ(member(body, "thinking"), "");
  EXPECT_EQ(member(body, "temperature"), "0.5");
  EXPECT_EQ(member(body, "max_tokens"), "8000");

  model.reasoning = true;
  EXPECT_EQ(member(encode(small_context(), model, options), "thinking"), R"({"type":"disabled"})");
  options.reasoning = ThinkingLevel::kOff;
  EXPECT_EQ(member(encode(small_context(), model, options), "thinking"), R"({"type":"disabled"})");
  model.thinking_level_map[ThinkingLevel::kOff] = std::nullopt;
  EXPECT_EQ(member(encode(small_context(), model, options), "thinking"), "");

  options.reasoning = ThinkingLevel::kHigh;  // 16384, more than the model can write
  body = encode(small_context(), model, options);
  EXPECT_EQ(member(body, "thinking"), R"({"type":"enabled","budget_tokens":6976,"display":"summarized"})");
  EXPECT_EQ(member(body, "temperature"), "");
  options.thinking_budgets[ThinkingLevel::kHigh] = 3000;
  options.max_tokens = 1000;
  body = encode(small_context(), model, options);
  EXPECT_EQ(member(body, "thinking"), R"({"type":"enabled","budget_tokens":2976,"display":"summarized"})");
  EXPECT_EQ(member(body, "max_tokens"), "4000");

  model.compat["forceAdaptiveThinking"] = true;
  for (const auto& [level, word] :
       std::vector<std::pair<ThinkingLevel, std::string>>{{ThinkingLevel::kMinimal, "low"},
                                                          {ThinkingLevel::kLow, "low"},
                                                          {ThinkingLevel::kMedium, "medium"},
                                                          {ThinkingLevel::kXhigh, "high"}}) {
    options.reasoning = level;
    body = encode(small_context(), model, options);
    EXPECT_EQ(member(body, "thinking"), R"({"type":"adaptive","display":"summarized"})");
    EXPECT_EQ(member(body, "output_config"), fmt::format(R"({{"effort":"{}"}})", word));
  }
}

// AI-104
TEST(AnthropicMessagesEncoder, SaysTheEffortOfEveryTurn) {
  Model model = model_of();
  model.reasoning = true;
  model.compat["supportsMidConvoEffort"] = true;
  const auto with_level = [](std::string_view provider, std::string_view level) {
    return message(fmt::format(R"({{"role":"assistant","api":"anthropic-messages","provider":"{}","model":"m1",)"
                               R"("providerThinkingLevel":"{}","content":[{{"type":"text","text":"x"}}]}})",
                               provider, level));
  };
  Context context;
  context.messages = {user("a"), with_level("p1", "max"), user("b"), with_level("p2", "low"),
                      user("c"), with_level("p1", "odd"), user("d")};
  const std::string text = messages_of(context, model);
  EXPECT_THAT(text,
              HasSubstr(R"({"role":"system","content":[],"output_config":{"effort":"max"}},{"role":"assistant")"));
  EXPECT_THAT(text, Not(HasSubstr(R"("effort":"low")")));
  EXPECT_THAT(text, Not(HasSubstr(R"("effort":"odd")")));
  EXPECT_TRUE(text.ends_with(R"({"role":"system","content":[],"output_config":{"effort":"high"}}])")) << text;
  EXPECT_EQ(anthropic_effort(model, with_key()), "high");
  EXPECT_EQ(anthropic_effort(model_of(), with_key()), std::nullopt);
}

// AI-107
TEST(AnthropicMessagesEncoder, MarksTheLastUserBlockOnly) {
  StreamOptions options = with_key();
  options.cache_retention = CacheRetention::kLong;
  Context context = small_context();
  EXPECT_EQ(
      messages_of(context, model_of(), options),
      R"([{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}])");
  context.messages.push_back(assistant(R"([{"type":"text","text":"x"}])"));
  EXPECT_THAT(messages_of(context, model_of(), options), Not(HasSubstr("cache_control")));
  context.messages.clear();
  EXPECT_EQ(messages_of(context, model_of(), options), "[]");
}

TEST(AnthropicMessagesEncoder, PassesAToolChoiceObjectAsItIs) {
  StreamOptions options = with_key();
  options.tool_choice = json::value(json::object{{"type", "tool"}, {"name", "x"}});
  EXPECT_EQ(member(encode(small_context(), model_of(), options), "tool_choice"), R"({"type":"tool","name":"x"})");
  options.tool_choice = json::value("none");
  EXPECT_EQ(member(encode(small_context(), model_of(), options), "tool_choice"), R"({"type":"none"})");
}

// ---- headers -----------------------------------------------------------------------------------------------------

// AI-18, AI-100
TEST(AnthropicMessagesHeaders, NeedAKeyOrAHeaderThatStandsForOne) {
  StreamOptions options;
  auto headers = anthropic_headers(model_of(), small_context(), options);
  ASSERT_FALSE(headers.has_value());
  EXPECT_EQ(headers.error(), "No API key for provider: p1");
  options.api_key = "  ";
  EXPECT_FALSE(anthropic_headers(model_of(), small_context(), options).has_value());
  options.headers = {{"Authorization", " "}};
  EXPECT_FALSE(anthropic_headers(model_of(), small_context(), options).has_value());
  for (const std::string name : {"Authorization", "X-Api-Key", "cf-aig-authorization"}) {
    options.headers = {{name, "token"}};
    EXPECT_EQ(headers_of(model_of(), small_context(), options).at(name), "token");
  }
}

// AI-48, AI-100
TEST(AnthropicMessagesHeaders, AreReplacedByLaterSourcesAndRemovedByNull) {
  Model model = model_of();
  model.headers = {{"X-One", "model"}, {"Anthropic-Version", "2027-01-01"}};
  StreamOptions options = with_key();
  options.headers = {{"x-one", "options"}, {"X-Api-Key", std::nullopt}};
  const auto headers = headers_of(model, small_context(), options);
  EXPECT_EQ(headers.at("x-one"), "options");
  EXPECT_FALSE(headers.contains("X-One"));
  EXPECT_EQ(headers.at("Anthropic-Version"), "2027-01-01");
  EXPECT_FALSE(headers.contains("x-api-key"));
  EXPECT_FALSE(headers.contains("X-Api-Key"));
  EXPECT_FALSE(headers.contains("anthropic-beta"));
}

// AI-101
TEST(AnthropicMessagesHeaders, TakeTheBetaListOfTheUser) {
  Model model = model_of();
  model.reasoning = true;
  StreamOptions options = with_key();
  options.reasoning = ThinkingLevel::kLow;
  EXPECT_EQ(headers_of(model, small_context(), options).at("anthropic-beta"), "interleaved-thinking-2025-05-14");
  model.headers = {{"Anthropic-Beta", " one, two ,one,"}};
  EXPECT_EQ(headers_of(model, small_context(), options).at("anthropic-beta"), "one,two");
  options.headers = {{"anthropic-beta", std::nullopt}};
  const auto headers = headers_of(model, small_context(), options);
  EXPECT_FALSE(headers.contains("anthropic-beta"));
  EXPECT_FALSE(headers.contains("Anthropic-Beta"));
}

// ---- error texts -------------------------------------------------------------------------------------------------

// AI-92, FF-44
TEST(AnthropicMessagesErrors, SayStatusAndBody) {
  EXPECT_EQ(anthropic_error_text(500, " \n"), "500 status code (no body)");
  EXPECT_EQ(anthropic_error_text(400, "{ \"a\" : 1 }"), R"(400 {"a":1})");
  EXPECT_EQ(anthropic_error_text(502, "<h1>Bad</h1>\n"), "502 <h1>Bad</h1>");
  const std::string page = anthropic_error_text(503, std::string(9000, 'x'));
  EXPECT_TRUE(page.ends_with("xx... [truncated 5000 chars]"));

  EXPECT_FALSE(is_retryable_text(anthropic_error_text(400, R"({"error":{"message":"bad request id req_503429"}})")));
  EXPECT_FALSE(is_retryable_text(anthropic_error_text(429, R"({"error":{"message":"insufficient_quota"}})")));
  EXPECT_TRUE(is_retryable_text(anthropic_error_text(429, R"({"error":{"type":"rate_limit_error"}})")));
  EXPECT_TRUE(is_retryable_text(anthropic_error_text(529, R"({"error":{"type":"overloaded_error"}})")));
}

}  // namespace
}  // namespace tau::ai
