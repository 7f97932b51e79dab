// Golden cases of the wire APIs (tests/fixtures/ai/<api>/<case>), and how they are compared.
//
// A case is what the reference program was given (context.json), what it sent (request.json), what the server answered
// (response.sse) and what came of it (events.jsonl, message.json). run_provider_case plays it against the real HTTP
// client and a loopback server. A new API needs one line:
//
//   TAU_PROVIDER_FIXTURES(AnthropicMessages, "anthropic-messages", kDifferences);
//
// Expected values are never edited. Where tau differs on purpose, the test names the case, the reason, and what tau
// does instead.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "ai/context.h"
#include "ai/message.h"
#include "ai/model.h"
#include "ai/stream.h"
#include "ai/stream_decoder.h"
#include "base/json.h"

namespace tau::test {

/// What a case says must happen.
struct Expectation {
  std::vector<json::object> requests;  // method, path, headers, body
  std::vector<json::value> events;     // without partial, message and error
  json::object message;                // the settled message
};

/// A deliberate difference from a golden case. Both fields are needed; `apply` writes what tau does instead.
struct Difference {
  std::string reason;
  std::function<void(Expectation& expected)> apply;
};
using Differences = std::map<std::string, Difference>;  // by case

/// Names of the cases of an API, in byte order.
std::vector<std::string> provider_cases(const std::string& api);

/// The name of a case as a test name may be.
std::string case_test_name(const ::testing::TestParamInfo<std::string>& info);

/// Plays one case and compares. Differences in these points are known and general:
///   - `user-agent` by presence only, where the case has a placeholder for it;
///   - transport headers and headers that identify an SDK are left out of the comparison (AI-96);
///   - the text of an abort is free; that of a lost connection must be a retryable one (AI-94, AI-220);
///   - costs are equal within 1e-12; timestamps must lie within the time of the call;
///   - where the reference throws for lack of a key, tau ends in an error event with the same text (AI-245).
void run_provider_case(const std::string& api, const std::string& name, const Differences& differences = {});

// ---- the pieces, for tests of their own --------------------------------------------------------------------------

/// What the JSON of a case (context.json) means.
ai::Model case_model(const json::object& source, int port = 1);
ai::Context case_context(const json::object& source);
ai::StreamOptions case_options(const json::object& source);
json::object read_case(const std::string& api, const std::string& name);
/// The bytes that the server sent as its answer number `index`, from 0.
std::string case_response(const std::string& api, const std::string& name, std::size_t index = 0);

/// Where two JSON values differ first ("$.messages[1].role: \"user\" != \"assistant\""); empty when they are equal.
/// Numbers are equal within a relative 1e-12. `expected` comes first.
std::string first_difference(const json::value& expected, const json::value& actual);

/// What a decoder makes of a body that comes in these pieces.
struct Decoded {
  std::vector<std::string> events;  // one JSON text each
  int terminal_events = 0;
  ai::AssistantMessage message;
};
Decoded decode(ai::StreamDecoder& decoder, const std::vector<std::string_view>& pieces);

/// `text` in pieces of `size` bytes.
std::vector<std::string_view> pieces_of(std::string_view text, std::size_t size);

/// The message without its timestamps.
json::object timeless(const ai::AssistantMessage& message);

}  // namespace tau::test

/// A parameterised test with one test a case, named after it.
#define TAU_PROVIDER_FIXTURES(Suite, api, differences)                                                    \
  class Suite##Fixture : public ::testing::TestWithParam<std::string> {};                                 \
  TEST_P(Suite##Fixture, IsReproduced) {                                                                  \
    ::tau::test::run_provider_case(api, GetParam(), differences);                                         \
  }                                                                                                       \
  INSTANTIATE_TEST_SUITE_P(Golden, Suite##Fixture, ::testing::ValuesIn(::tau::test::provider_cases(api)), \
                           ::tau::test::case_test_name)
