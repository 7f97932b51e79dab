#include <string>

#include <gtest/gtest.h>

#include "ai/base_options.h"
#include "ai/thinking_budget.h"
#include "ai/token_estimate.h"

#include "support/fixture.h"

namespace tau::ai {
namespace {

json::value vectors(const char* name) {
  return test::read_json(test::fixture_root() / "ai/util" / name);
}

Context context_from(const json::object& o) {
  Context context;
  if (const auto prompt = json::find_string(o, "systemPrompt")) context.system_prompt = std::string(*prompt);
  for (const json::value& m : o.at("messages").get_array())
    context.messages.push_back(make_message(*message_from_json(m.get_object())));
  if (const json::array* tools = json::find_array(o, "tools")) {
    for (const json::value& tool : *tools)
      context.tools.push_back(tool_from_json(tool.get_object()));
  }
  return context;
}

Context sample() {
  return context_from(vectors("estimate.json").at("context").get_object());
}

MessageRef user(std::string text, Milliseconds timestamp = 1) {
  return make_message(UserMessage{std::move(text), timestamp, {}});
}

MessageRef reply(double total_tokens, StopReason reason, Milliseconds timestamp) {
  AssistantMessage m;
  m.usage.total_tokens = total_tokens;
  m.stop_reason = reason;
  m.timestamp = timestamp;
  return make_message(std::move(m));
}

// AI-56
TEST(ThinkingBudget, SharesTheLimitAsPiDoes) {
  const json::value cases = vectors("max-tokens.json");
  for (const json::value& v : cases.get_array()) {
    const json::object& o = v.get_object();
    ThinkingBudgets custom;
    if (const json::object* budgets = json::find_object(o, "thinkingBudgets")) {
      for (const auto& [level, budget] : *budgets)
        custom[*thinking_level_from(std::string_view(level.data(), level.size()))] = *json::as_number(budget);
    }
    const TokenLimits limits =
        limits_with_thinking(json::find_number(o, "baseMaxTokens"), json::number_or(o, "modelMaxTokens"),
                             *thinking_level_from(json::string_or(o, "level")), custom);
    EXPECT_EQ(limits.max_tokens, json::number_or(o.at("out").get_object(), "maxTokens")) << json::to_text(v);
    EXPECT_EQ(limits.thinking_budget, json::number_or(o.at("out").get_object(), "thinkingBudget")) << json::to_text(v);
  }
}

// AI-54, AI-55
TEST(ThinkingBudget, HasDefaultsAndLeavesRoomForTheAnswer) {
  EXPECT_EQ(thinking_budget(ThinkingLevel::kOff), 0);
  EXPECT_EQ(thinking_budget(ThinkingLevel::kMinimal), 1024);
  EXPECT_EQ(thinking_budget(ThinkingLevel::kLow), 2048);
  EXPECT_EQ(thinking_budget(ThinkingLevel::kMax), 16384);
  EXPECT_EQ(thinking_budget(ThinkingLevel::kXhigh, {{ThinkingLevel::kHigh, 5}, {ThinkingLevel::kXhigh, 6}}), 5);
  EXPECT_EQ(leave_answer_room(8192, 4096), 3072);
  EXPECT_EQ(leave_answer_room(8192, 500), 0);
  EXPECT_EQ(leave_answer_room(100, 4096), 100);
}

void expect_estimate(const ContextEstimate& estimate, const json::object& expected) {
  EXPECT_EQ(estimate.tokens, json::number_or(expected, "tokens"));
  EXPECT_EQ(estimate.usage_tokens, json::number_or(expected, "usageTokens"));
  EXPECT_EQ(estimate.trailing_tokens, json::number_or(expected, "trailingTokens"));
  const auto index = json::find_integer(expected, "lastUsageIndex");
  ASSERT_EQ(estimate.last_usage_index.has_value(), index.has_value());
  if (index) {
    EXPECT_EQ(estimate.last_usage_index, static_cast<std::size_t>(*index));
  }
}

// AI-57
TEST(TokenEstimate, CountsAsPiDoes) {
  const json::value v = vectors("estimate.json");
  Context context = sample();
  const json::array& each = v.at("messages").get_array();
  ASSERT_EQ(each.size(), context.messages.size());
  for (std::size_t i = 0; i < each.size(); ++i)
    EXPECT_EQ(estimate_tokens(*context.messages[i]), *json::as_number(each[i]));
  expect_estimate(estimate_context(context), v.at("estimate").get_object());
  context.messages.resize(1);
  expect_estimate(estimate_context(context), v.at("noUsage").get_object());
}

TEST(TokenEstimate, CountsUtf16UnitsNotBytes) {
  EXPECT_EQ(estimate_text_tokens(""), 0);
  EXPECT_EQ(estimate_text_tokens("abcd"), 1);
  EXPECT_EQ(estimate_text_tokens("abcde"), 2);
  EXPECT_EQ(estimate_text_tokens("\xC3\xA9\xC3\xA9\xF0\x9F\x98\x80"), 1);
}

// FF-36
TEST(TokenEstimate, UsageFromBeforeACompactionDoesNotCount) {
  Context context;
  context.messages = {user("summary of it all", 100), reply(90000, StopReason::kStop, 50), user("go on", 101)};
  const ContextEstimate estimate = estimate_context(context);
  EXPECT_EQ(estimate.usage_tokens, 0);
  EXPECT_FALSE(estimate.last_usage_index);
  context.messages.push_back(reply(5000, StopReason::kStop, 102));
  EXPECT_EQ(estimate_context(context).tokens, 5000);
}

TEST(TokenEstimate, FailedRepliesAndEmptyReportsDoNotCount) {
  Context context;
  context.messages = {reply(100, StopReason::kStop, 1), reply(900, StopReason::kError, 2),
                      reply(900, StopReason::kAborted, 3), reply(0, StopReason::kStop, 4)};
  EXPECT_EQ(estimate_context(context).last_usage_index, 0U);
  AssistantMessage parts;
  parts.usage.input = 10;
  parts.usage.cache_read = 5;
  parts.timestamp = 5;
  context.messages.push_back(make_message(std::move(parts)));
  EXPECT_EQ(estimate_context(context).usage_tokens, 15) << "without a total the parts count";
}

TEST(TokenEstimate, ToolsThatWereAddedSinceAreCounted) {
  Context context = sample();
  const double before = estimate_context(context).trailing_tokens;
  ToolResultMessage result;
  result.added_tool_names = {"log_tide"};
  context.messages.push_back(make_message(std::move(result)));
  EXPECT_EQ(estimate_context(context).trailing_tokens, before + estimate_tokens(std::vector<Tool>{context.tools[1]}));
}

// AI-58
TEST(BaseOptions, TheReplyIsCutToTheWindow) {
  const Context context = sample();
  const json::value v = vectors("estimate.json");
  for (const json::value& c : v.at("clampMaxTokens").get_array()) {
    Model model;
    model.context_window = json::number_or(c.get_object(), "contextWindow");
    EXPECT_EQ(clamp_max_tokens(json::number_or(c.get_object(), "maxTokens"), model, context),
              json::number_or(c.get_object(), "out"))
        << json::to_text(c);
  }
}

// AI-59
TEST(BaseOptions, MergesTheModelsSettingsWithTheCalls) {
  Model model;
  model.context_window = 100000;
  model.max_tokens = 8000;
  model.sampling_params = {{"top_p", 0.5}, {"seed", 1}};
  StreamOptions options;
  EXPECT_EQ(base_options(model, {}, options).max_tokens, 8000);
  EXPECT_FALSE(base_options(model, {}, options).temperature);
  options.max_tokens = 500;
  options.temperature = 0.25;
  options.sampling_params = {{"seed", 2}, {"top_k", 3}};
  const BaseOptions base = base_options(model, {}, options);
  EXPECT_EQ(base.max_tokens, 500);
  EXPECT_EQ(base.temperature, 0.25);
  EXPECT_EQ(json::to_text(base.sampling_params), R"({"top_p":0.5,"seed":2,"top_k":3})");
}

// AI-61
TEST(BaseOptions, CacheRetentionComesFromTheCallThenTheEnvironment) {
  StreamOptions options;
  options.env["PI_CACHE_RETENTION"] = "long";
  EXPECT_EQ(cache_retention(options), CacheRetention::kLong);
  options.cache_retention = CacheRetention::kNone;
  EXPECT_EQ(cache_retention(options), CacheRetention::kNone);
  options.cache_retention.reset();
  options.env["PI_CACHE_RETENTION"] = "other";
  EXPECT_EQ(cache_retention(options), CacheRetention::kShort);
}

}  // namespace
}  // namespace tau::ai
