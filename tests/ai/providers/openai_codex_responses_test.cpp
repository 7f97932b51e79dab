#include "ai/providers/openai_codex_responses.h"

#include <gtest/gtest.h>

#include "ai/error_classification.h"
#include "ai/providers/provider_fixtures.h"

namespace tau::ai {
namespace {

/// tau's own sentence, and the clock of today.
void own_sentence(test::Expectation& expected) {
  expected.message["errorMessage"] =
      "The usage limit of your ChatGPT account is reached (plus plan). "
      "Try again in about 0 min.";
}

const test::Differences& differences() {
  static const test::Differences all{{"usage-limit", {"wording, and a clock that stood still", own_sentence}}};
  return all;
}

TAU_PROVIDER_FIXTURES(OpenAiCodexResponses, "openai-codex-responses", differences());

TEST(OpenAiCodexResponses, TheAccountComesFromTheToken) {  // AI-188
  EXPECT_EQ(codex_account_id("e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xIn19."
                             "sig"),
            "acct-1");
  for (const char* token : {"", "abc", "a.b", "a.b.c", "e30.e30.sig", "e30.!!!.sig"})
    EXPECT_FALSE(codex_account_id(token)) << token;
}

TEST(OpenAiCodexResponses, PartsOfTheAddressAreNotDoubled) {  // AI-188
  for (const char* base : {"https://h/b", "https://h/b/", "https://h/b/codex", "https://h/b/codex/responses"})
    EXPECT_EQ(codex_url(base), "https://h/b/codex/responses") << base;
  EXPECT_EQ(codex_url(""), "https://chatgpt.com/backend-api/codex/responses");
}

TEST(OpenAiCodexResponses, AUsageLimitNamesPlanAndWaitAndIsNotRetried) {  // AI-193
  constexpr std::int64_t kNow = 1767225600000;
  const std::string text = codex_error_text(
      429, "Too Many Requests",
      R"({"error":{"type":"usage_limit_reached","message":"limit","plan_type":"PLUS","resets_at":1767227400}})", kNow);
  EXPECT_EQ(text, "The usage limit of your ChatGPT account is reached (plus plan). Try again in about 30 min.");
  AssistantMessage message;
  message.stop_reason = StopReason::kError;
  message.error_message = text;
  EXPECT_FALSE(is_retryable(message));
  EXPECT_EQ(codex_error_text(400, "Bad Request", R"({"error":{"message":"no such model"}})", kNow), "no such model");
  EXPECT_EQ(codex_error_text(502, "Bad Gateway", "<h1>Bad</h1>", kNow), "<h1>Bad</h1>");
  EXPECT_EQ(codex_error_text(500, "Internal Server Error", "", kNow), "Internal Server Error");
}

}  // namespace
}  // namespace tau::ai
