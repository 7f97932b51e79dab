#include "ai/error_classification.h"

#include <string>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::ai {
namespace {

AssistantMessage failed(std::string text) {
  AssistantMessage m;
  m.stop_reason = StopReason::kError;
  m.error_message = std::move(text);
  return m;
}

// AI-215 to AI-221
TEST(ErrorClassification, JudgesAsPiDoes) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/error-classification.json");
  ASSERT_GE(vectors.get_array().size(), 29U);
  for (const json::value& v : vectors.get_array()) {
    const AssistantMessage m = failed(json::string_or(v.get_object(), "errorMessage"));
    EXPECT_EQ(is_context_overflow(m), json::bool_or(v.get_object(), "overflow")) << *m.error_message;
    EXPECT_EQ(is_retryable(m), json::bool_or(v.get_object(), "retryable")) << *m.error_message;
  }
}

// AI-215
TEST(ErrorClassification, SeesAnInputThatWasCutSilently) {
  const json::value vectors = test::read_json(test::fixture_root() / "ai/util/silent-overflow.json");
  for (const json::value& v : vectors.get_array()) {
    AssistantMessage m;
    m.stop_reason = *stop_reason_from(json::string_or(v.get_object(), "stopReason"));
    m.usage = usage_from_json(v.at("usage").get_object());
    EXPECT_EQ(is_context_overflow(m, json::number_or(v.get_object(), "contextWindow")),
              json::bool_or(v.get_object(), "overflow"))
        << json::to_text(v);
    EXPECT_FALSE(is_context_overflow(m)) << "unknown without a window";
  }
}

// AI-216
TEST(ErrorClassification, KnowsHowEachProviderSaysTooLong) {
  for (const char* text : {"Error: prompt exceeds the model's maximum context length of 131,072 tokens",
                           "exceeds models maximum context length (8,192)",
                           "exceeds maximum context length of 1 token",
                           "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                           "This model's maximum prompt length is 131072 but",
                           "Please reduce the length of the messages or completion.",
                           "This endpoint's maximum context length is 8192 tokens. However",
                           "exceeds the maximum allowed input length of 128,000 tokens",
                           "The input (9000 tokens) is longer than the model's context length (8192 tokens)",
                           "prompt token count of 9000 exceeds the limit of 8000",
                           "the request exceeds the available context size. try increasing it",
                           "tokens to keep from the initial prompt is greater than the context length",
                           "invalid params, context window exceeds limit",
                           "Your request exceeded model token limit: 262144",
                           "Prompt contains 9000 tokens, too large for model with 8192 maximum context length",
                           "prompt has 9,000 tokens, but the configured context size is 8,192 tokens",
                           "prompt too long; exceeded max context length by 5 tokens",
                           "prompt too long; exceeded context length",
                           "error code context_length_exceeded",
                           "Context Length Exceeded",
                           "413 (no body)"}) {
    EXPECT_TRUE(is_overflow_text(text)) << text;
    EXPECT_FALSE(is_retryable(failed(text))) << text;
  }
  for (const char* text : {"exceeds the maximum context length of tokens", "the limit of 8000", "x 400 (no body)",
                           "Service unavailable: too many tokens", "Too many requests: too many tokens"}) {
    EXPECT_FALSE(is_overflow_text(text)) << text;
  }
}

// FF-44
TEST(ErrorClassification, DigitsInsideIdsAndCountsAreNoStatus) {
  EXPECT_FALSE(is_retryable(failed(R"(400 {"error":{"message":"bad request id req_503429"}})")));
  EXPECT_FALSE(is_retryable(failed(R"(400 {"error":{"message":"bad request","request_id":"503"}})")));
  for (const char* text :
       {"bad request id req_503429", "Invalid request (request id: 500-429)", "the image has 503 bytes too many",
        "failed with 500 bytes left", "id 503", "field x must be below 500", "temperature 0.500 is invalid",
        "limit 1,500 reached", "limit 500,000 reached", "see section 5.500", "version 500a"}) {
    EXPECT_FALSE(is_retryable(failed(text))) << text;
  }
  for (const char* text :
       {"529", "503: gone", "429. Slow down", "HTTP 502", "HTTP/1.1 503", "status 524", "status=500",
        "OpenAI API error (503): x", R"({"code":503})", R"({"status_code": 429})", R"({"httpStatus":"502"})",
        "The upstream returned 500", "It broke. 503 was the answer", "408 status code (no body)", "521 x",
        "Rate exceeded (429)", "upstream 502", "SomeException: 500", "Mistral API error (500): x"}) {
    EXPECT_TRUE(is_retryable(failed(text))) << text;
  }
  EXPECT_EQ(status_in("Mistral API error (422): upstream said status 503"), 422) << "the first one counts";
  EXPECT_EQ(status_in("nothing"), std::nullopt);
}

// FF-44, AI-221
TEST(ErrorClassification, QuotaAndBillingAreFinal) {
  for (const char* text :
       {R"(429 {"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}})",
        "429 Your credit balance is too low to access the API", "429 usage_limit_reached: resets in 3 h",
        "You have hit your ChatGPT usage limit (plus plan). Try again in ~3 min.", "402 Payment Required timeout",
        "GoUsageLimitError 503", "Insufficient Balance 500"}) {
    EXPECT_TRUE(is_quota_text(text)) << text;
    EXPECT_FALSE(is_retryable(failed(text))) << text;
  }
  EXPECT_TRUE(is_retryable(failed(R"(429 {"error":{"type":"rate_limit"}})")));
  EXPECT_TRUE(is_retryable(failed(R"(529 {"type":"error","error":{"type":"overloaded_error"}})")));
}

// FF-49
TEST(ErrorClassification, BrokenConnectionsAreWorthAnotherTry) {
  for (const char* text :
       {"Connection error.", "Request timed out.", "read ECONNRESET", "connect ECONNREFUSED 127.0.0.1:1", "write EPIPE",
        "Recv failure: Connection reset by peer", "connection closed", "Broken pipe", "unexpected EOF",
        "Premature close", "502 Bad Gateway", "bad gateway",
        "Client network socket disconnected before secure TLS connection was established"}) {
    EXPECT_TRUE(is_retryable(failed(text))) << text;
  }
  EXPECT_FALSE(is_retryable(failed("certificate has expired")));
}

TEST(ErrorClassification, OnlyFailedRepliesAreErrors) {
  AssistantMessage m = failed("503");
  m.stop_reason = StopReason::kAborted;
  EXPECT_FALSE(is_retryable(m));
  m.stop_reason = StopReason::kError;
  m.error_message.reset();
  EXPECT_FALSE(is_retryable(m));
  EXPECT_FALSE(is_context_overflow(m));
}

// AI-218
TEST(ErrorClassification, ALengthStopBelowTheWantedLimitIsRecoverable) {
  AssistantMessage m;
  m.stop_reason = StopReason::kLength;
  m.usage.output = 100;
  EXPECT_TRUE(is_recoverable_length(m, 200));
  EXPECT_FALSE(is_recoverable_length(m, 100));
  EXPECT_FALSE(is_recoverable_length(m, 0));
  m.stop_reason = StopReason::kStop;
  EXPECT_FALSE(is_recoverable_length(m, 200));
}

TEST(ErrorClassification, LongTextsAreNoProblem) {
  const std::string long_text = "<html>" + std::string(200000, 'e') + " input token count";
  EXPECT_FALSE(is_overflow_text(long_text));
  EXPECT_FALSE(is_retryable(failed(long_text)));
}

}  // namespace
}  // namespace tau::ai
