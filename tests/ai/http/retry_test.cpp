#include "ai/http/retry.h"

#include <gtest/gtest.h>

namespace tau::ai::http {
namespace {

using namespace std::chrono_literals;

TEST(Retry, StatusDecides) {  // AI-91, FF-49
  for (const int status : {408, 409, 429, 500, 502, 503, 504, 520, 524, 529})
    EXPECT_TRUE(is_retryable(status, {}, "")) << status;
  for (const int status : {301, 400, 401, 403, 404, 413, 422})
    EXPECT_FALSE(is_retryable(status, {}, "")) << status;
}

TEST(Retry, TheServerMayDecide) {  // AI-91
  EXPECT_TRUE(is_retryable(400, {{"x-should-retry", "true"}}, ""));
  EXPECT_FALSE(is_retryable(503, {{"x-should-retry", "false"}}, ""));
  EXPECT_TRUE(is_retryable(503, {{"x-should-retry", "maybe"}}, ""));
}

TEST(Retry, LimitErrorsAndDigitsInIdsAreNotRetried) {  // FF-44
  EXPECT_FALSE(is_retryable(400, {}, R"({"error":{"message":"bad request id req_503429"}})"));
  EXPECT_FALSE(is_retryable(429, {}, R"({"error":{"code":"insufficient_quota"}})"));
  EXPECT_FALSE(is_retryable(429, {}, R"({"error":{"message":"Quota exceeded for this month"}})"));
  EXPECT_TRUE(is_retryable(429, {}, R"({"error":{"code":"rate_limit"}})"));
}

TEST(Retry, FailuresOfTheConnectionAreRetried) {  // AI-91, FF-49
  EXPECT_TRUE(is_retryable(FailureKind::kConnection));
  EXPECT_TRUE(is_retryable(FailureKind::kTimeout));
  EXPECT_FALSE(is_retryable(FailureKind::kAborted));
  EXPECT_FALSE(is_retryable(FailureKind::kSetup));
}

TEST(Retry, TheServersDelayIsReadInAllForms) {  // AI-91, FF-49
  constexpr std::int64_t kNow = 1792567680000;  // 2026-10-21 07:28:00 GMT
  EXPECT_EQ(requested_delay({{"retry-after-ms", "5"}}, kNow), 5ms);
  EXPECT_EQ(requested_delay({{"retry-after-ms", "250.2"}, {"retry-after", "9"}}, kNow), 251ms);
  EXPECT_EQ(requested_delay({{"retry-after", "120"}}, kNow), 120s);
  EXPECT_EQ(requested_delay({{"retry-after", " 1.5 "}}, kNow), 1500ms);
  EXPECT_EQ(requested_delay({{"retry-after-ms", "soon"}, {"retry-after", "2"}}, kNow), 2s);
  EXPECT_EQ(requested_delay({{"retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"}}, kNow), 30s);
  EXPECT_EQ(requested_delay({{"retry-after", "2026-10-21T07:28:01Z"}}, kNow), 1s);
}

TEST(Retry, UnreadablePastOrMissingDelaysAreNone) {  // FF-49
  constexpr std::int64_t kNow = 1792567680000;
  EXPECT_EQ(requested_delay({}, kNow), std::nullopt);
  for (const char* text : {"", "soon", "0", "-5", "nan", "inf", "1e999", "Wed, 21 Oct 2020 07:28:30 GMT", "5 s"})
    EXPECT_EQ(requested_delay({{"retry-after", text}}, kNow), std::nullopt) << text;
}

TEST(Retry, AnAbsurdDelayStaysANumber) {
  EXPECT_EQ(requested_delay({{"retry-after", "1e300"}}, 0), std::chrono::milliseconds(1'000'000'000'000));
}

TEST(Retry, BackoffGrowsAndEndsAtEightSeconds) {  // AI-91, FF-49
  EXPECT_EQ(backoff(0, 1.0), 500ms);
  EXPECT_EQ(backoff(0, 0.75), 500ms);  // never two tries within half a second
  EXPECT_EQ(backoff(1, 1.0), 1s);
  EXPECT_EQ(backoff(1, 0.75), 750ms);
  EXPECT_EQ(backoff(4, 1.0), 8s);
  EXPECT_EQ(backoff(40, 1.0), 8s);
  EXPECT_EQ(backoff(5000, 0.75), 6s);
}

}  // namespace
}  // namespace tau::ai::http
