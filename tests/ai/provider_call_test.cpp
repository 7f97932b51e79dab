#include "ai/provider_call.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ai/http/sse_decoder.h"

#include "support/http_server.h"
#include "support/run.h"

namespace tau::ai {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::ScriptedAnswer;
using Clock = std::chrono::steady_clock;
using Ending = ScriptedAnswer::Ending;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

/// The smallest wire format: `data: text` appends to the only block, the event "stop" ends the reply.
class LineDecoder final : public StreamDecoder {
 public:
  explicit LineDecoder(const Model& model) : StreamDecoder(empty_reply(model)) { assembler_.start(); }
  void push(std::string_view bytes) override { sse_.push(bytes); }
  void end_of_body() override {
    sse_.finish();
    over_ = true;
  }
  std::optional<StreamEvent> next() override {
    while (!assembler_.has_step()) {
      const auto frame = sse_.next();
      if (!frame) {
        if (over_ && !settled()) assembler_.fail(StopReason::kError, "stream ended without stop");
        break;
      }
      if (frame->event == "error") {
        assembler_.fail(StopReason::kError, std::string(frame->data));
        continue;
      }
      if (frame->event == "broken") throw std::runtime_error("the decoder broke");
      if (frame->event == "stop") {
        assembler_.close(0);
        assembler_.finish(StopReason::kStop);
      } else {
        if (assembler_.block_count() == 0) assembler_.open(TextContent{});
        assembler_.append(0, frame->data);
      }
    }
    return assembler_.next();
  }

 private:
  http::SseDecoder sse_;
  bool over_ = false;
};

std::string error_text(int status, std::string_view reason, const http::HeaderList&, std::string_view body) {
  return fmt::format("{} {} {}", status, reason, body);
}

const std::string kReply = "data: Hello\n\ndata:  world\n\nevent: stop\ndata: x\n\n";

class ProviderCallTest : public ::testing::Test {
 protected:
  ProviderCallTest() {
    model.id = "m1";
    model.api = "test-api";
    model.provider = "local";
  }

  EventSink recorder() {
    return [this](const StreamEvent& event) -> std::optional<asio::awaitable<void>> {
      const json::object o = to_json(event);
      std::string line = json::string_or(o, "type");
      if (const auto delta = json::find_string(o, "delta")) line += " " + std::string(*delta);
      events.push_back(line);
      return std::nullopt;
    };
  }

  ProviderCall provider_call() const {
    ProviderCall call;
    call.request.url = server.url() + "/v1/reply";
    call.request.headers = {{"content-type", "application/json"}, {"authorization", "Bearer sk-canary-9f3a"}};
    call.request.body = "{}";
    call.decoder = std::make_unique<LineDecoder>(model);
    call.error_text = error_text;
    return call;
  }

  AssistantMessage reply(std::stop_token stop = {}) { return reply(recorder(), std::move(stop)); }
  AssistantMessage reply(EventSink sink, std::stop_token stop = {}) {
    return test::run(io, run_provider_call(*client, provider_call(), model, options, std::move(sink), std::move(stop)));
  }

  std::chrono::milliseconds gap(std::size_t index) const {
    const auto seen = server.requests();
    return std::chrono::duration_cast<std::chrono::milliseconds>(seen.at(index + 1).time - seen.at(index).time);
  }

  HttpServer server;
  asio::io_context io;
  std::unique_ptr<http::Client> client = http::make_client(io.get_executor());
  Model model;
  StreamOptions options;
  std::vector<std::string> events;
};

TEST_F(ProviderCallTest, EventsAndMessageOfAReply) {
  server.add(test::sse_answer(kReply));
  const AssistantMessage message = reply();
  EXPECT_THAT(events, ElementsAre("start", "text_start", "text_delta Hello", "text_delta  world", "text_end", "done"));
  EXPECT_EQ(message.stop_reason, StopReason::kStop);
  EXPECT_EQ(text_of(message), "Hello world");
  EXPECT_EQ(message.model, "m1");
  EXPECT_FALSE(message.error_message);
}

TEST_F(ProviderCallTest, TheResponseHookComesBeforeTheBody) {
  ScriptedAnswer answer = test::sse_answer(kReply);
  answer.headers.emplace_back("X-Request-Id", "req_1");
  server.add(answer);
  options.on_response = [this](const HttpStatus& response, const Model& m) {
    events.push_back(fmt::format("hook {} {} {}", response.status, m.id,
                                 response.headers.back().first == "x-request-id" || response.headers.size() > 1));
  };
  reply();
  EXPECT_EQ(events.at(0), "hook 200 m1 true");
  EXPECT_EQ(events.at(1), "start");
}

// ---- HTTP errors ----

TEST_F(ProviderCallTest, AnHttpErrorIsALoneErrorEvent) {  // AI-21, AI-92
  server.add(test::json_answer(401, R"({"error":"no"})"));
  bool hook = false;
  options.on_response = [&](const HttpStatus&, const Model&) { hook = true; };
  const AssistantMessage message = reply();
  EXPECT_THAT(events, ElementsAre("error"));
  EXPECT_EQ(message.stop_reason, StopReason::kError);
  EXPECT_EQ(message.error_message, R"(401 Unauthorized {"error":"no"})");
  EXPECT_TRUE(message.content.empty());
  EXPECT_EQ(message.provider, "local");
  EXPECT_FALSE(hook);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(ProviderCallTest, OnlyTheBeginningOfALongErrorIsRead) {
  server.add(test::json_answer(400, std::string(1'000'000, 'x')));
  const AssistantMessage message = reply();
  EXPECT_EQ(message.error_message->size(), std::string("400 Bad Request ").size() + (64U << 10));
}

TEST_F(ProviderCallTest, KeysAndControlCharactersAreNotInErrors) {  // FF-107, FF-108
  options.api_key = "sk-other-canary";
  options.headers = {{"x-proxy-password", "hunter2-canary"}};
  server.add(test::json_answer(401, "bad key sk-canary-9f3a, sk-other-canary, hunter2-canary \x1b[2J\x07 M\xC3\xBCll"));
  const std::string text = *reply().error_message;
  EXPECT_THAT(text, Not(HasSubstr("canary")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
  EXPECT_THAT(text, HasSubstr("bad key ***, ***, ***"));
  EXPECT_THAT(text, HasSubstr("M\xC3\xBCll"));
}

TEST_F(ProviderCallTest, AKeyThatTheServerRepeatsInsideTheStreamIsNotKept) {  // FF-108
  server.add(test::sse_answer("data: Hello\n\nevent: error\ndata: sk-canary-9f3a is over its limit\n\n"));
  EXPECT_EQ(reply().error_message, "*** is over its limit");
}

// ---- retries (AI-91, FF-49) ----

TEST_F(ProviderCallTest, WithoutRetriesAFailureIsFinal) {
  server.add(test::json_answer(529, "overloaded"));
  EXPECT_EQ(reply().error_message, "529 Status overloaded");
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(ProviderCallTest, TheServersDelayIsObeyed) {
  ScriptedAnswer busy = test::json_answer(529, "{}");
  busy.headers.emplace_back("retry-after-ms", "5");
  server.add(busy);
  server.add(test::sse_answer(kReply));
  options.max_retries = 2;
  const AssistantMessage message = reply();
  EXPECT_EQ(text_of(message), "Hello world");
  EXPECT_EQ(events.front(), "start");
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_EQ(server.requests().at(1).body, "{}");
  EXPECT_EQ(server.requests().at(1).headers.at("authorization"), "Bearer sk-canary-9f3a");
  EXPECT_LT(gap(0), 400ms);
  EXPECT_EQ(server.accepted_connections(), 1);
}

TEST_F(ProviderCallTest, TransientFailuresAreRetriedWithGrowingWaits) {  // FF-49
  ScriptedAnswer unreadable = test::json_answer(503, "{}");
  unreadable.headers.emplace_back("retry-after", "soon");
  server.add({.silent = true, .ending = Ending::kReset});
  server.add(unreadable);
  server.add(test::sse_answer(kReply));
  options.max_retries = 2;
  EXPECT_EQ(text_of(reply()), "Hello world");
  ASSERT_EQ(server.requests().size(), 3U);
  EXPECT_GE(gap(0), 500ms);
  EXPECT_GE(gap(1), 740ms);
}

TEST_F(ProviderCallTest, AfterTheLastRetryTheLastErrorStands) {
  for (const char* text : {"one", "two"}) {
    ScriptedAnswer busy = test::json_answer(500, text);
    busy.headers.emplace_back("retry-after-ms", "1");
    server.add(busy);
  }
  options.max_retries = 1;
  EXPECT_EQ(reply().error_message, "500 Internal Server Error two");
  EXPECT_THAT(events, ElementsAre("error"));
}

TEST_F(ProviderCallTest, ADelayAboveTheCapFailsAtOnce) {
  ScriptedAnswer busy = test::json_answer(429, "Slow down");
  busy.headers.emplace_back("retry-after", "119.2");
  server.add(busy);
  options.max_retries = 2;
  EXPECT_EQ(reply().error_message, "Server requested 120s retry delay (max: 60s). 429 Too Many Requests Slow down");
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(ProviderCallTest, AnAbortEndsTheWait) {  // FF-50
  ScriptedAnswer busy = test::json_answer(429, "{}");
  busy.headers.emplace_back("retry-after", "60");
  server.add(busy);
  options.max_retries = 1;
  std::stop_source source;
  Clock::time_point asked;
  std::thread stopper([&] {
    server.wait_for_requests(1);
    std::this_thread::sleep_for(100ms);
    asked = Clock::now();
    source.request_stop();
  });
  const AssistantMessage message = reply(source.get_token());
  const auto end = Clock::now();
  stopper.join();
  EXPECT_LT(end - asked, 100ms);
  EXPECT_EQ(message.stop_reason, StopReason::kAborted);
  EXPECT_EQ(message.error_message, "Request was aborted");
  EXPECT_THAT(events, ElementsAre("error"));

  server.add(test::sse_answer(kReply));
  const auto begin = Clock::now();
  EXPECT_EQ(text_of(reply()), "Hello world");
  EXPECT_LT(Clock::now() - begin, 500ms);
}

TEST_F(ProviderCallTest, AReplyThatBreaksOffIsNotSentAgain) {
  ScriptedAnswer answer = test::sse_answer("data: Hello\n\n");
  answer.ending = Ending::kReset;
  answer.pieces = {13, 0};
  answer.piece_delay = 50ms;
  server.add(answer);
  options.max_retries = 3;
  const AssistantMessage message = reply();
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(message.stop_reason, StopReason::kError);
  EXPECT_EQ(text_of(message), "Hello");  // AI-28
  EXPECT_THAT(events, ElementsAre("start", "text_start", "text_delta Hello", "error"));
  EXPECT_THAT(*message.error_message, StartsWith("Connection error: lost the connection to 127.0.0.1:"));  // AI-94
}

// ---- limits (FF-47) ----

TEST_F(ProviderCallTest, MissingHeadersNameTheTimeWaited) {
  server.add({.silent = true, .ending = Ending::kHang});
  options.header_timeout = 200ms;
  const AssistantMessage message = reply();
  EXPECT_EQ(message.error_message,
            fmt::format("Request timed out: no response headers from 127.0.0.1:{} within 200 ms", server.port()));
  EXPECT_THAT(events, ElementsAre("error"));
}

TEST_F(ProviderCallTest, SilenceInTheReplyNamesTheTimeWaitedAndKeepsThePartial) {
  ScriptedAnswer answer = test::sse_answer("data: Hello\n\n");
  answer.ending = Ending::kHang;
  server.add(answer);
  options.idle_timeout = 300ms;
  const AssistantMessage message = reply();
  EXPECT_EQ(text_of(message), "Hello");
  EXPECT_EQ(message.stop_reason, StopReason::kError);
  EXPECT_EQ(
      message.error_message,
      fmt::format("Request timed out: 127.0.0.1:{} sent nothing for 300 ms in the middle of the reply", server.port()));
}

// ---- abort (AI-28, AI-29) ----

TEST_F(ProviderCallTest, AnAbortFromTheSinkKeepsThePartial) {
  ScriptedAnswer answer = test::sse_answer("data: Hello\n\n");
  answer.ending = Ending::kHang;
  server.add(answer);
  std::stop_source source;
  const EventSink record = recorder();
  const AssistantMessage message = reply(
      [&](const StreamEvent& event) {
        auto wait = record(event);
        if (events.size() == 3) source.request_stop();
        return wait;
      },
      source.get_token());
  EXPECT_THAT(events, ElementsAre("start", "text_start", "text_delta Hello", "error"));
  EXPECT_EQ(message.stop_reason, StopReason::kAborted);
  EXPECT_EQ(text_of(message), "Hello");
  EXPECT_TRUE(server.wait_for_open_connections(0));
}

TEST_F(ProviderCallTest, AnAbortAfterTheLastByteIsStillAnAbort) {  // AI-29
  ScriptedAnswer answer = test::sse_answer(kReply);
  answer.framing = ScriptedAnswer::Framing::kContentLength;
  server.add(answer);
  std::stop_source source;
  const EventSink record = recorder();
  const AssistantMessage message = reply(
      [&](const StreamEvent& event) {
        auto wait = record(event);
        if (events.back() == "text_end") source.request_stop();
        return wait;
      },
      source.get_token());
  EXPECT_EQ(events.back(), "error");
  EXPECT_EQ(message.stop_reason, StopReason::kAborted);
  EXPECT_EQ(text_of(message), "Hello world");
}

TEST_F(ProviderCallTest, AnAbortWhileWaitingForBytesEndsAtOnce) {
  ScriptedAnswer answer = test::sse_answer("data: Hello\n\n");
  answer.ending = Ending::kHang;
  server.add(answer);
  std::stop_source source;
  Clock::time_point asked;
  std::thread stopper([&] {
    std::this_thread::sleep_for(150ms);
    asked = Clock::now();
    source.request_stop();
  });
  const AssistantMessage message = reply(source.get_token());
  const auto end = Clock::now();
  stopper.join();
  EXPECT_LT(end - asked, 100ms);
  EXPECT_EQ(message.stop_reason, StopReason::kAborted);
  EXPECT_EQ(text_of(message), "Hello");
}

// ---- sinks ----

TEST_F(ProviderCallTest, ASinkThatWaitsHoldsTheNextEventUp) {
  struct Slow {
    static asio::awaitable<void> note(std::vector<std::string>* events) {
      asio::steady_timer timer(co_await asio::this_coro::executor, 5ms);
      co_await timer.async_wait(asio::use_awaitable);
      events->push_back("waited");
    }
  };
  server.add(test::sse_answer(kReply));
  const EventSink record = recorder();
  reply([&](const StreamEvent& event) -> std::optional<asio::awaitable<void>> {
    record(event);
    return Slow::note(&events);
  });
  EXPECT_THAT(events, ElementsAre("start", "waited", "text_start", "waited", "text_delta Hello", "waited",
                                  "text_delta  world", "waited", "text_end", "waited", "done", "waited"));
}

TEST_F(ProviderCallTest, WhatASinkThrowsLeavesTheCallAndClosesTheTransfer) {
  ScriptedAnswer answer = test::sse_answer("data: Hello\n\n");
  answer.ending = Ending::kHang;
  server.add(answer);
  EXPECT_THROW(reply([](const StreamEvent& event) -> std::optional<asio::awaitable<void>> {
                 if (std::holds_alternative<BlockDelta>(event.what)) throw std::runtime_error("listener");
                 return std::nullopt;
               }),
               std::runtime_error);
  EXPECT_TRUE(server.wait_for_open_connections(0));
}

// ---- ends ----

TEST_F(ProviderCallTest, ABodyWithoutAnEndIsTheDecodersError) {  // FF-46
  server.add(test::sse_answer("data: Hello\n\n"));
  const AssistantMessage message = reply();
  EXPECT_EQ(message.stop_reason, StopReason::kError);
  EXPECT_EQ(message.error_message, "stream ended without stop");
}

TEST_F(ProviderCallTest, ADecoderThatThrowsEndsInAnError) {
  server.add(test::sse_answer("data: Hello\n\nevent: broken\ndata: x\n\n"));
  const AssistantMessage message = reply();
  EXPECT_EQ(message.stop_reason, StopReason::kError);
  EXPECT_EQ(message.error_message, "the decoder broke");
  EXPECT_EQ(text_of(message), "Hello");
}

TEST_F(ProviderCallTest, CallsInARowUseOneConnection) {
  for (int i = 0; i < 5; ++i) {
    ScriptedAnswer answer = test::sse_answer(kReply + ": the end of the body comes a little later\n\n");
    answer.pieces = {kReply.size()};
    server.add(answer);
  }
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(reply().stop_reason, StopReason::kStop);
  EXPECT_EQ(server.accepted_connections(), 1);
}

TEST_F(ProviderCallTest, AConnectionThatHangsAfterTheReplyDoesNotHoldItUp) {
  ScriptedAnswer answer = test::sse_answer(kReply);
  answer.ending = Ending::kHang;
  server.add(answer);
  const auto begin = Clock::now();
  EXPECT_EQ(reply().stop_reason, StopReason::kStop);
  EXPECT_LT(Clock::now() - begin, 500ms);
}

TEST_F(ProviderCallTest, ACallThatCannotBeMadeIsOneErrorEvent) {  // AI-33
  const AssistantMessage message = test::run(io, fail_call(model, "No API key for provider: local", recorder()));
  EXPECT_THAT(events, ElementsAre("error"));
  EXPECT_EQ(message.stop_reason, StopReason::kError);
  EXPECT_EQ(message.error_message, "No API key for provider: local");
  EXPECT_TRUE(message.content.empty());
  EXPECT_EQ(message.api, "test-api");
}

TEST(UserAgent, NamesProgramSystemAndArchitecture) {  // AI-47
  EXPECT_THAT(user_agent(), MatchesRegex("tau/[0-9.]+ \\(linux [^ ;]+; [a-z0-9_]+\\)"));
}

}  // namespace
}  // namespace tau::ai
