#include "app/modes/rpc_framing.h"

#include <random>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace tau::app {
namespace {

std::vector<std::string> lines_of(const std::string& bytes, std::size_t piece) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    splitter.feed(std::string_view(bytes).substr(at, piece));
    while (auto line = splitter.next())
      lines.push_back(*line);
  }
  lines.push_back(splitter.rest());
  return lines;
}

TEST(RpcFraming, OnlyLineFeedsEndALineHoweverTheBytesArrive) {  // MO-90, FF-92
  const std::string bytes = "{\"a\":\"x\u2028y\u2029z\u0085\"}\r\n\r\n\nlast";
  const std::vector<std::string> expected{"{\"a\":\"x\u2028y\u2029z\u0085\"}", "", "", "last"};
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece)
    EXPECT_EQ(lines_of(bytes, piece), expected) << piece;
}

TEST(RpcFraming, TheIdComesBackAsItWasWritten) {  // MO-246
  for (const std::string id : {"\"a\"", "7", "123456789012345678901234567890", "1.50", "null", "{\"x\":[1,{}]}",
                               "\"\\u0041\\\"\"", "[]", "true"}) {
    const auto request = read_request("{ \"other\": {\"id\":3}, \"id\" : " + id + " , \"type\":\"abort\"}");
    ASSERT_TRUE(request.has_value()) << id;
    EXPECT_EQ(request->id, id);
    EXPECT_TRUE(reply_line(*request, std::string()).starts_with("{\"id\":" + id + ",\"type\":\"response\""));
  }
  EXPECT_EQ(read_request("{\"type\":\"abort\"}")->id, std::nullopt);
  EXPECT_EQ(read_request("{\"\\u0069d\":5,\"type\":\"abort\"}")->id, "5");
  EXPECT_EQ(read_request("{\"id\":1,\"id\":2,\"type\":\"abort\"}")->id, "2");
}

TEST(RpcFraming, WhatIsNoCommandGetsAnErrorThatCarriesItsId) {  // FF-93, MO-95
  for (const char* line : {"null", "[]", "42", "\"x\"", "{}", "true"}) {
    const auto request = read_request(line);
    ASSERT_FALSE(request.has_value()) << line;
    EXPECT_EQ(request.error().reply,
              "{\"type\":\"response\",\"success\":false,\"error\":\"Unknown command: undefined\"}\n");
  }
  EXPECT_TRUE(read_request("{\"id\":\"8\"}").error().reply.starts_with("{\"id\":\"8\",\"type\":\"response\""));
  EXPECT_NE(read_request("{\"id\":8,\"type\":5}").error().reply.find("Unknown command: 5"), std::string::npos);
  EXPECT_NE(read_request("{bad").error().reply.find("\"command\":\"parse\""), std::string::npos);
}

TEST(RpcFraming, AnyBytesGiveARequestOrAReplyOfValidUtf8) {  // MO-242, MO-247
  std::mt19937 random(7);
  const std::string seed = "{\"id\":\"\\ud83d\xff\",\"type\":\"prompt\",\"message\":\"\xed\xa0\x80\"}";
  for (int round = 0; round < 20000; ++round) {
    std::string line = seed;
    for (int change = 0; change < 3; ++change)
      line[random() % line.size()] = static_cast<char>(random() % 256);
    const auto request = read_request(line);
    const std::string reply = request ? reply_line(*request, std::unexpected(error(line))) : request.error().reply;
    EXPECT_EQ(utf8::replace_invalid(reply), reply) << line;
    EXPECT_TRUE(json::parse(std::string_view(reply).substr(0, reply.size() - 1)).has_value()) << line << reply;
    EXPECT_EQ(reply.find('\n'), reply.size() - 1);
  }
}

TEST(RpcFraming, ALongLineInSmallPiecesIsSearchedOnce) {
  LineSplitter splitter;
  const std::string piece(4096, 'x');
  for (int i = 0; i < 5000; ++i) {  // 20 MB; searching anew for each piece would take minutes
    splitter.feed(piece);
    ASSERT_FALSE(splitter.next().has_value());
  }
  splitter.feed("\n");
  EXPECT_EQ(splitter.next()->size(), piece.size() * 5000);
}

}  // namespace
}  // namespace tau::app
