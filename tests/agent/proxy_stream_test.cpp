// Calls through a proxy, against a server on the loopback interface (PX-3 to PX-8).
#include "agent/proxy_stream.h"

#include <gtest/gtest.h>

#include "agent/faux_provider.h"

#include "support/http_server.h"
#include "support/run.h"

namespace {

using namespace tau;
namespace asio = boost::asio;

class ProxyStream : public testing::Test {
 protected:
  ai::AssistantMessage call(ai::StreamOptions options = {}, std::stop_token stop = {}) {
    ai::StreamFunction stream = agent::make_proxy_stream(*client, {server.url(), "token-1234"});
    ai::Context context;
    context.system_prompt = "SYS";
    context.messages = {ai::make_message(ai::UserMessage{"hi", 1, {}})};
    ai::EventSink sink = [this](const ai::StreamEvent& event) -> std::optional<asio::awaitable<void>> {
      events.push_back(json::string_or(ai::to_json(event), "type"));
      return std::nullopt;
    };
    return test::run(io, stream(test::faux_model(), std::move(context), std::move(options), std::move(sink), stop));
  }

  asio::io_context io;
  std::unique_ptr<ai::http::Client> client = ai::http::make_client(io.get_executor());
  test::HttpServer server;
  std::vector<std::string> events;
};

constexpr std::string_view kReply =
    ": a comment\n"
    "data: {\"type\":\"start\"}\n\n"
    "data: \n"
    "data:{\"type\":\"text_start\",\"contentIndex\":9}\n"  // no blank: not an event
    "data: {\"type\":\"thinking_start\",\"contentIndex\":0}\n"
    "data: {\"type\":\"thinking_delta\",\"contentIndex\":0,\"delta\":\"hm\"}\n"
    "data: {\"type\":\"thinking_end\",\"contentIndex\":0,\"contentSignature\":\"sig\"}\n"
    "data: {\"type\":\"text_start\",\"contentIndex\":1}\n"
    "data: {\"type\":\"text_delta\",\"contentIndex\":1,\"delta\":\"Hel\"}\n"
    "data: {\"type\":\"text_delta\",\"contentIndex\":1,\"delta\":\"lo\"}\n"
    "data: {\"type\":\"text_end\",\"contentIndex\":1}\n"
    "data: {\"type\":\"sparkle\",\"contentIndex\":1}\n"
    "data: {\"type\":\"toolcall_start\",\"contentIndex\":2,\"id\":\"c1\",\"toolName\":\"read\"}\n"
    "data: {\"type\":\"toolcall_delta\",\"contentIndex\":2,\"delta\":\"{\\\"pa\"}\n"
    "data: {\"type\":\"toolcall_end\",\"contentIndex\":2,\"toolCall\":{\"type\":\"toolCall\",\"id\":\"c1\","
    "\"name\":\"read\",\"arguments\":{\"path\":\"a.txt\"},\"thoughtSignature\":\"ts\"}}\n"
    "data: {\"type\":\"done\",\"reason\":\"toolUse\",\"usage\":{\"input\":3,\"output\":4},"
    "\"providerThinkingLevel\":\"high\"}";  // the last line has no end

TEST_F(ProxyStream, RebuildsTheMessageFromEventsInAnySplit) {
  for (const std::size_t piece : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
    events.clear();
    test::ScriptedAnswer answer = test::sse_answer(std::string(kReply));
    answer.piece_delay = std::chrono::milliseconds(0);
    if (piece > 0) answer.pieces.assign(kReply.size() / piece, piece);
    server.add(std::move(answer));
    const ai::AssistantMessage reply = call();
    EXPECT_EQ(events, (std::vector<std::string>{"start", "thinking_start", "thinking_delta", "thinking_end",
                                                "text_start", "text_delta", "text_delta", "text_end", "toolcall_start",
                                                "toolcall_delta", "toolcall_end", "done"}));
    ASSERT_EQ(reply.content.size(), 3U);
    EXPECT_EQ(std::get<ai::ThinkingContent>(reply.content[0]).thinking_signature, "sig");
    EXPECT_EQ(ai::text_of(reply), "Hello");
    const auto& tool_call = std::get<ai::ToolCall>(reply.content[2]);
    EXPECT_EQ(json::to_text(tool_call.arguments), R"({"path":"a.txt"})");
    EXPECT_EQ(tool_call.thought_signature, "ts");
    EXPECT_FALSE(tool_call.malformed_arguments);
    EXPECT_EQ(reply.stop_reason, ai::StopReason::kToolUse);
    EXPECT_EQ(reply.usage.output, 4);
    EXPECT_EQ(reply.provider_thinking_level, "high");
    EXPECT_EQ(reply.provider, "faux");
  }
}

TEST_F(ProxyStream, SendsWhatAServerNeedsAndNoKey) {  // PX-3
  server.add(test::sse_answer("data: {\"type\":\"done\",\"reason\":\"stop\",\"usage\":{}}\n"));
  ai::StreamOptions options;
  options.api_key = "sk-secret";
  options.env = {{"SOME_KEY", "sk-other-secret"}};
  options.reasoning = ai::ThinkingLevel::kHigh;
  options.session_id = "s-1";
  call(std::move(options));
  const test::RecordedRequest request = server.requests().at(0);
  EXPECT_EQ(request.method + " " + request.path, "POST /api/stream");
  EXPECT_EQ(request.headers.at("authorization"), "Bearer token-1234");
  EXPECT_EQ(request.headers.at("content-type"), "application/json");
  EXPECT_EQ(request.body.find("secret"), std::string::npos);
  const json::object body = request.json();
  EXPECT_EQ(json::to_text(body.at("options")),
            R"({"reasoning":"high","sessionId":"s-1","transport":"auto","maxRetryDelayMs":60000})");
  EXPECT_EQ(json::to_text(body.at("context")),
            R"({"systemPrompt":"SYS","messages":[{"role":"user","content":"hi","timestamp":1}]})");
  EXPECT_EQ(json::string_or(body.at("model").as_object(), "id"), "faux-1");
}

TEST_F(ProxyStream, AFailureIsOneErrorEvent) {  // PX-7
  server.add(test::json_answer(403, R"({"error":"no budget left"})"));
  EXPECT_EQ(call().error_message, "Proxy error: no budget left");
  EXPECT_EQ(events, std::vector<std::string>{"error"});

  events.clear();
  test::ScriptedAnswer broken = test::json_answer(418, "teapot");
  broken.reason = "I'm a teapot";
  server.add(std::move(broken));
  EXPECT_EQ(call().error_message, "Proxy error: 418 I'm a teapot");
  EXPECT_EQ(events, std::vector<std::string>{"error"});
}

TEST_F(ProxyStream, KeepsWhatCameBeforeABreak) {  // PX-7
  const std::string begin =
      "data: {\"type\":\"start\"}\ndata: {\"type\":\"text_start\",\"contentIndex\":0}\n"
      "data: {\"type\":\"text_delta\",\"contentIndex\":0,\"delta\":\"half\"}\n";
  for (const std::string end : {"", "data: {broken\n", "data: {\"type\":\"toolcall_delta\",\"contentIndex\":0}\n"}) {
    server.add(test::sse_answer(begin + end));
    const ai::AssistantMessage reply = call();
    EXPECT_EQ(reply.stop_reason, ai::StopReason::kError) << end;
    EXPECT_TRUE(reply.error_message) << end;
    EXPECT_EQ(ai::text_of(reply), "half") << end;
    EXPECT_EQ(events.back(), "error");
  }
}

TEST_F(ProxyStream, TakesTheServersOwnError) {
  server.add(
      test::sse_answer("data: {\"type\":\"start\"}\ndata: {\"type\":\"error\",\"reason\":\"aborted\","
                       "\"errorMessage\":\"stopped there\",\"usage\":{\"input\":7}}\n"
                       "data: {\"type\":\"done\",\"reason\":\"stop\"}\n"));
  const ai::AssistantMessage reply = call();
  EXPECT_EQ(reply.stop_reason, ai::StopReason::kAborted);
  EXPECT_EQ(reply.error_message, "stopped there");
  EXPECT_EQ(reply.usage.input, 7);
  EXPECT_EQ(events, (std::vector<std::string>{"start", "error"}));  // PX-8
}

TEST_F(ProxyStream, AnAbortedCallSaysSo) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(call({}, stop.get_token()).stop_reason, ai::StopReason::kAborted);
}

}  // namespace
