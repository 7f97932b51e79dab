#include "ai/http/event_stream_decoder.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::ai::http {
namespace {

std::string recorded() {
  return test::read_file(test::fixture_root() / "ai/bedrock-converse-stream/thinking-tools/response.bin");
}

std::vector<std::string> messages_of(std::string_view bytes, std::size_t piece) {
  EventStreamDecoder decoder;
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    decoder.push(bytes.substr(at, piece));
    while (const auto message = decoder.next())
      messages.push_back(std::string(message->header(":event-type")) + message->payload);
  }
  EXPECT_FALSE(decoder.error());
  return messages;
}

TEST(EventStreamDecoder, AnySplitGivesTheSameMessages) {  // FF-53
  const std::string bytes = recorded();
  const auto whole = messages_of(bytes, bytes.size());
  ASSERT_GT(whole.size(), 5U);
  EXPECT_TRUE(whole[0].starts_with("messageStart{"));
  for (const std::size_t piece : {1, 2, 3, 5, 7, 11, 64, 1000})
    EXPECT_EQ(messages_of(bytes, piece), whole) << piece;
}

TEST(EventStreamDecoder, AFlippedBitAnywhereIsFound) {
  const std::string bytes = recorded().substr(0, 200);
  for (std::size_t at = 0; at < 118; ++at) {  // the first message
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EventStreamDecoder decoder;
    decoder.push(damaged);
    EXPECT_FALSE(decoder.next()) << at;
    EXPECT_TRUE(decoder.error()) << at;
  }
}

TEST(EventStreamDecoder, LengthsThatDoNotFitAndHugeOnesAreErrors) {
  EventStreamDecoder small(50);
  small.push(recorded());
  EXPECT_FALSE(small.next());
  EXPECT_NE(small.error()->find("larger than 50 bytes"), std::string::npos);
  EventStreamDecoder garbage;
  garbage.push("this is not an event stream at all");
  EXPECT_FALSE(garbage.next());
  EXPECT_TRUE(garbage.error());
}

TEST(EventStreamDecoder, WhatIsNotWholeWaits) {
  const std::string bytes = recorded();
  EventStreamDecoder decoder;
  decoder.push(std::string_view(bytes).substr(0, 100));
  EXPECT_FALSE(decoder.next());
  EXPECT_FALSE(decoder.error());
  EXPECT_TRUE(decoder.has_rest());
}

}  // namespace
}  // namespace tau::ai::http
