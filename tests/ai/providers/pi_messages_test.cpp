#include "ai/providers/pi_messages.h"

#include <gtest/gtest.h>

#include "ai/providers/provider_fixtures.h"

namespace tau::ai {
namespace {

/// The gateway's own members are in the message, not in the events (AI-20).
void only_the_protocol(test::Expectation& expected) {
  for (json::value& event : expected.events) {
    for (const char* key : {"contentSignature", "id", "toolName"})
      event.as_object().erase(key);
  }
}

const test::Differences& differences() {
  static const test::Differences all{
      {"plain-text", {"AI-20: events have the members of the protocol", only_the_protocol}}};
  return all;
}

TAU_PROVIDER_FIXTURES(PiMessages, "pi-messages", differences());

Model gateway() {
  Model m;
  m.id = "gw-1";
  m.api = "pi-messages";
  m.provider = "radius";
  return m;
}

test::Decoded decode(std::string_view body) {
  PiMessagesDecoder decoder(gateway());
  return test::decode(decoder, {body});
}

TEST(PiMessagesDecoder, AStreamWithoutItsEndKeepsNothing) {  // AI-228
  const test::Decoded decoded = decode(
      "data: {\"type\":\"start\"}\n\ndata: {\"type\":\"text_start\",\"contentIndex\":0}\n\n"
      "data: {\"type\":\"text_delta\",\"contentIndex\":0,\"delta\":\"half\"}\n\n");
  EXPECT_EQ(decoded.message.stop_reason, StopReason::kError);
  EXPECT_EQ(decoded.message.error_message, "radius stream ended without a terminal event");
  EXPECT_TRUE(decoded.message.content.empty());
}

TEST(PiMessagesDecoder, ErrorsAndAbortsOfTheGatewayAreKept) {
  EXPECT_EQ(
      decode("data: {\"type\":\"error\",\"reason\":\"aborted\",\"errorMessage\":\"gone\"}\n\n").message.stop_reason,
      StopReason::kAborted);
  EXPECT_EQ(decode("data: {\"type\":\"error\",\"reason\":\"error\",\"errorMessage\":\"no\"}\n\n").message.error_message,
            "no");
  EXPECT_EQ(decode("data: {\"type\":\"done\",\"reason\":\"invented\"}\n\n").message.stop_reason, StopReason::kError);
}

TEST(PiMessagesDecoder, GarbageEndsInOneTerminalEvent) {
  for (const char* body : {"", "data: x\n\n", "data: [1]\n\n", "data: {\"type\":\"text_end\",\"contentIndex\":9}\n\n",
                           "data: {\"type\":\"toolcall_start\",\"contentIndex\":0}\n\n"
                           "data: {\"type\":\"text_end\",\"contentIndex\":0,\"content\":\"x\"}\n\n"}) {
    EXPECT_EQ(decode(body).terminal_events, 1) << body;
  }
}

}  // namespace
}  // namespace tau::ai
