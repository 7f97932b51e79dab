#include "ai/http/sse_decoder.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tau::ai::http {
namespace {

using Frames = std::vector<std::pair<std::string, std::string>>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

void drain(SseDecoder& decoder, Frames& frames) {
  while (const auto frame = decoder.next())
    frames.emplace_back(frame->event, frame->data);
}

/// Each piece lives in a buffer of its own that is overwritten before the next one, so that a view kept too long shows.
Frames decode(const std::vector<std::string_view>& pieces) {
  SseDecoder decoder;
  Frames frames;
  for (const std::string_view piece : pieces) {
    std::string buffer(piece);
    decoder.push(buffer);
    drain(decoder, frames);
    std::fill(buffer.begin(), buffer.end(), '#');
  }
  decoder.finish();
  drain(decoder, frames);
  EXPECT_FALSE(decoder.overflowed());
  return frames;
}

Frames decode(std::string_view text) {
  return decode(std::vector<std::string_view>{text});
}

std::string with_line_ends(std::string_view text, std::string_view end) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += end;
    } else {
      out += c;
    }
  }
  return out;
}

// Everything that the format has: a byte-order mark, comments, several data lines, characters of two to four bytes,
// unknown fields, a field without a colon, frames without data, no blank after the colon.
const std::string kStream =
    "\xEF\xBB\xBF"
    "event: message_start\ndata: {\"a\":1}\n\n"
    ": keep-alive\n\n"
    "data: ein Schl\xC3\xBCssel \xE2\x82\xAC \xF0\x9F\x94\x91\n\n"
    "event:two\ndata:first\ndata\ndata:  second\nid: 7\nretry: 10\n\n"
    "event: dropped\n\n"
    "data: x:y\n: inside\ndata: z\n\n\n"
    "event: last\ndata: [DONE]\n\n";

const Frames kFrames = {
    {"message_start", "{\"a\":1}"},
    {"", "ein Schl\xC3\xBCssel \xE2\x82\xAC \xF0\x9F\x94\x91"},
    {"two", "first\n\n second"},
    {"", "x:y\nz"},
    {"last", "[DONE]"},
};

TEST(SseDecoder, ReadsFieldsCommentsAndSeveralDataLines) {
  EXPECT_EQ(decode(kStream), kFrames);
}

TEST(SseDecoder, TakesAllThreeLineEnds) {  // FF-53, AI-115
  EXPECT_EQ(decode(with_line_ends(kStream, "\r\n")), kFrames);
  EXPECT_EQ(decode(with_line_ends(kStream, "\r")), kFrames);
  EXPECT_THAT(decode("data: a\r\rdata: b\n\ndata: c\r\n\r\ndata: d\n\r\n"),
              ElementsAre(Pair("", "a"), Pair("", "b"), Pair("", "c"), Pair("", "d")));
}

TEST(SseDecoder, EverySplitPositionGivesTheSameFrames) {  // FF-53
  for (const std::string_view end : {"\n", "\r\n", "\r"}) {
    const std::string text = with_line_ends(kStream, end);
    const std::string_view view = text;
    for (std::size_t cut = 0; cut <= view.size(); ++cut) {
      ASSERT_EQ(decode({view.substr(0, cut), view.substr(cut)}), kFrames) << "cut at " << cut;
    }
  }
}

TEST(SseDecoder, ByteByByteGivesTheSameFrames) {  // FF-53
  for (const std::string_view end : {"\n", "\r\n", "\r"}) {
    const std::string text = with_line_ends(kStream, end);
    std::vector<std::string_view> pieces;
    for (std::size_t i = 0; i < text.size(); ++i)
      pieces.push_back(std::string_view(text).substr(i, 1));
    EXPECT_EQ(decode(pieces), kFrames);
  }
}

TEST(SseDecoder, RandomCutsGiveTheSameFrames) {  // FF-53: 1,000 seeds
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::minstd_rand random(seed + 1);
    const std::string_view ends[] = {"\n", "\r\n", "\r"};
    const std::string text = with_line_ends(kStream, ends[seed % 3]);
    std::vector<std::string_view> pieces;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t size = random() % 20;  // 0 is a piece too
      pieces.push_back(rest.substr(0, size));
      rest.remove_prefix(pieces.back().size());
    }
    ASSERT_EQ(decode(pieces), kFrames) << "seed " << seed;
  }
}

TEST(SseDecoder, EndOfStreamHandsOutAFrameWithoutItsBlankLine) {  // FF-45
  EXPECT_THAT(decode("event: response.completed\ndata: {\"ok\":true}\n"),
              ElementsAre(Pair("response.completed", "{\"ok\":true}")));
  EXPECT_THAT(decode("data: a\r"), ElementsAre(Pair("", "a")));
}

TEST(SseDecoder, AnIncompleteLastLineIsNotData) {  // FF-45
  EXPECT_THAT(decode("data: {\"half"), IsEmpty());
  EXPECT_THAT(decode("data: one\ndata: tw"), ElementsAre(Pair("", "one")));
}

TEST(SseDecoder, AnEmptyDataLineIsAFrame) {
  EXPECT_THAT(decode("data:\n\ndata\n\n"), ElementsAre(Pair("", ""), Pair("", "")));
}

TEST(SseDecoder, OnlyAByteOrderMarkAtTheStartIsSkipped) {
  EXPECT_THAT(decode("data: a\n\n\xEF\xBB\xBF"
                     "data: b\n\n"),
              ElementsAre(Pair("", "a")));
}

TEST(SseDecoder, AFrameInOnePieceIsNotCopied) {
  const std::string text = "event: e\ndata: payload\n\n";
  SseDecoder decoder;
  decoder.push(text);
  const auto frame = decoder.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->data.data(), text.data() + text.find("payload"));
  EXPECT_EQ(frame->event.data(), text.data() + text.find("e\n"));
}

TEST(SseDecoder, AFrameBeyondTheLimitOverflowsForEverySplit) {
  const std::string text = "data: 0123456789\n\ndata: 0123456789\ndata: 0123456789\n\ndata: never\n\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    SseDecoder decoder(24);
    Frames frames;
    for (const std::string& piece : {text.substr(0, cut), text.substr(cut)}) {
      decoder.push(piece);
      drain(decoder, frames);
    }
    EXPECT_TRUE(decoder.overflowed());
    ASSERT_THAT(frames, ElementsAre(Pair("", "0123456789"))) << "cut at " << cut;
  }
}

TEST(SseDecoder, AnEndlessLineOverflows) {
  SseDecoder decoder(1000);
  for (int i = 0; i < 100 && !decoder.overflowed(); ++i) {
    decoder.push("data: never ends ");
    EXPECT_FALSE(decoder.next());
  }
  EXPECT_TRUE(decoder.overflowed());
}

TEST(SseDecoder, ManyCommentsAreNoOverflow) {
  SseDecoder decoder(100);
  for (int i = 0; i < 1000; ++i) {
    decoder.push(": still here\n");
    EXPECT_FALSE(decoder.next());
  }
  EXPECT_FALSE(decoder.overflowed());
}

}  // namespace
}  // namespace tau::ai::http
