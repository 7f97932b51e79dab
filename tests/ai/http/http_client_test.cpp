#include "ai/http/http_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/http_server.h"
#include "support/run.h"

namespace tau::ai::http {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::ScriptedAnswer;
using Clock = std::chrono::steady_clock;
using Ending = ScriptedAnswer::Ending;
using Framing = ScriptedAnswer::Framing;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int status = 0;
  std::string reason;
  HeaderList headers;
  std::string body;
  std::optional<Failure> failure;
  std::size_t largest_piece = 0;
};

asio::awaitable<Outcome> fetch(Client* client, Request request, std::stop_token stop = {},
                               std::chrono::milliseconds pause = 0ms) {
  Outcome outcome;
  auto response = co_await client->send(std::move(request), stop);
  if (!response) {
    outcome.failure = response.error();
    co_return outcome;
  }
  outcome.status = (*response)->status;
  outcome.reason = (*response)->reason;
  outcome.headers = (*response)->headers;
  while (true) {
    if (pause.count() > 0) {
      asio::steady_timer timer(co_await asio::this_coro::executor, pause);
      co_await timer.async_wait(asio::use_awaitable);
    }
    auto piece = co_await (*response)->read();
    if (!piece) {
      outcome.failure = piece.error();
      co_return outcome;
    }
    if (!*piece) co_return outcome;
    outcome.body += **piece;
    outcome.largest_piece = std::max(outcome.largest_piece, (*piece)->size());
  }
}

Request post(std::string url, std::string body = "{}") {
  Request request;
  request.url = std::move(url);
  request.headers = {{"content-type", "application/json"}};
  request.body = std::move(body);
  return request;
}

class HttpClient : public ::testing::Test {
 protected:
  Outcome get(Request request, std::stop_token stop = {}) {
    return test::run(io, fetch(client.get(), std::move(request), std::move(stop)));
  }

  HttpServer server;
  asio::io_context io;
  std::unique_ptr<Client> client = make_client(io.get_executor());
};

TEST_F(HttpClient, SendsMethodPathHeadersAndBody) {
  server.add({.status = 201, .reason = "Made It", .headers = {{"X-Note", "one"}}, .body = "hello"});
  Request request = post(server.url() + "/v1/messages?beta=true", R"({"a":1})");
  request.headers.emplace_back("X-Empty", "");
  const Outcome outcome = get(request);
  EXPECT_FALSE(outcome.failure);
  EXPECT_EQ(outcome.status, 201);
  EXPECT_EQ(outcome.reason, "Made It");
  EXPECT_EQ(outcome.body, "hello");
  EXPECT_THAT(outcome.headers, ::testing::Contains(::testing::Pair("x-note", "one")));

  const test::RecordedRequest seen = server.requests().at(0);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/v1/messages?beta=true");
  EXPECT_EQ(seen.body, R"({"a":1})");
  EXPECT_EQ(seen.headers.at("content-type"), "application/json");
  EXPECT_EQ(seen.headers.at("x-empty"), "");
  EXPECT_THAT(seen.headers.at("accept-encoding"), HasSubstr("gzip"));  // AI-95
  EXPECT_FALSE(seen.headers.contains("expect"));
}

TEST_F(HttpClient, OtherMethodsCarryABodyOnlyWhenThereIsOne) {
  for (int i = 0; i < 3; ++i)
    server.add(test::json_answer(200, "{}"));
  Request request = post(server.url() + "/", "");
  request.headers.clear();
  for (const char* method : {"GET", "DELETE", "PUT"}) {
    request.method = method;
    request.body = request.method == "PUT" ? "text" : "";
    EXPECT_FALSE(get(request).failure);
  }
  const auto seen = server.requests();
  EXPECT_EQ(seen.at(0).method, "GET");
  EXPECT_EQ(seen.at(1).method, "DELETE");
  EXPECT_FALSE(seen.at(1).headers.contains("content-length"));
  EXPECT_EQ(seen.at(2).method, "PUT");
  EXPECT_EQ(seen.at(2).body, "text");
  EXPECT_FALSE(seen.at(2).headers.contains("content-type"));
}

TEST_F(HttpClient, LargeBodiesArriveWhole) {
  server.add(test::json_answer(200, "{}"));
  std::string body(5'000'000, 'x');
  for (std::size_t i = 0; i < body.size(); i += 997)
    body[i] = static_cast<char>('a' + i % 26);
  EXPECT_FALSE(get(post(server.url() + "/", body)).failure);
  EXPECT_TRUE(server.requests().at(0).body == body);
}

TEST_F(HttpClient, ConnectionsAreReused) {
  for (int i = 0; i < 5; ++i) {
    server.add({.body = "chunked"});
    server.add(test::json_answer(400, "{}"));
  }
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(get(post(server.url() + "/")).failure);
  EXPECT_EQ(server.accepted_connections(), 1);
}

TEST_F(HttpClient, AKeptConnectionThatTheServerClosedIsReplaced) {
  server.add({.body = "one", .close = true});
  server.add({.body = "two"});
  EXPECT_EQ(get(post(server.url() + "/")).body, "one");
  ASSERT_TRUE(server.wait_for_open_connections(0));
  EXPECT_EQ(get(post(server.url() + "/")).body, "two");
}

TEST_F(HttpClient, CompressedBodiesAreDecompressed) {  // AI-95
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format("data: {}\n\n", i);
  ScriptedAnswer answer{.body = text, .pieces = std::vector<std::size_t>(20, 700), .gzip = true};
  server.add(answer);
  const Outcome outcome = get(post(server.url() + "/"));
  EXPECT_FALSE(outcome.failure);
  EXPECT_EQ(outcome.body, text);
}

TEST_F(HttpClient, AllFramingsGiveTheWholeBody) {
  const std::string text = "Schl\xC3\xBCssel \xF0\x9F\x94\x91 \xE2\x82\xAC";
  for (const Framing framing : {Framing::kChunked, Framing::kContentLength, Framing::kUntilClose}) {
    server.add(
        {.body = text, .pieces = std::vector<std::size_t>(text.size(), 1), .piece_delay = 0ms, .framing = framing});
    const Outcome outcome = get(post(server.url() + "/"));
    EXPECT_FALSE(outcome.failure);
    EXPECT_EQ(outcome.body, text);  // FF-53: characters cut by chunks stay whole
  }
}

TEST_F(HttpClient, PiecesAreHandedOutAsTheyArrive) {
  ScriptedAnswer answer{.body = "onetwo", .pieces = {3}, .ending = Ending::kHang};
  server.add(answer);
  Request request = post(server.url() + "/");
  request.idle_timeout = 300ms;
  EXPECT_EQ(get(request).body, "onetwo");
}

// ---- limits (FF-47, FF-52) ----

TEST_F(HttpClient, WaitingForHeadersEndsAtTheLimit) {
  server.add({.silent = true, .ending = Ending::kHang});
  Request request = post(server.url() + "/");
  request.header_timeout = 200ms;
  const auto begin = Clock::now();
  const Outcome outcome = get(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kTimeout);
  EXPECT_EQ(outcome.failure->message,
            fmt::format("no response headers from 127.0.0.1:{} within 200 ms", server.port()));
  EXPECT_GE(Clock::now() - begin, 200ms);
  EXPECT_LT(Clock::now() - begin, 1s);
  EXPECT_TRUE(server.wait_for_open_connections(0));
}

TEST_F(HttpClient, SilenceInTheBodyEndsAtTheLimit) {
  server.add({.body = "data: 1\n\n", .ending = Ending::kHang});
  Request request = post(server.url() + "/");
  request.header_timeout = 50s;
  request.idle_timeout = 1500ms;
  const auto begin = Clock::now();
  const Outcome outcome = get(request);
  EXPECT_EQ(outcome.body, "data: 1\n\n");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kTimeout);
  EXPECT_EQ(outcome.failure->message,
            fmt::format("127.0.0.1:{} sent nothing for 1.5 s in the middle of the reply", server.port()));
  EXPECT_LT(Clock::now() - begin, 2500ms);
}

TEST_F(HttpClient, CommentsCountAsLife) {
  std::string body;
  for (int i = 0; i < 8; ++i)
    body += ": wait\n\n";
  server.add({.body = body + "data: x\n\n", .pieces = std::vector<std::size_t>(8, 8), .piece_delay = 100ms});
  Request request = post(server.url() + "/");
  request.idle_timeout = 400ms;
  const Outcome outcome = get(request);
  EXPECT_FALSE(outcome.failure);
  EXPECT_THAT(outcome.body, HasSubstr("data: x"));
}

TEST_F(HttpClient, WithoutLimitsSlowAnswersAreAwaited) {  // FF-52, scaled
  server.add({.body = "data: 1\n\ndata: 2\n\n", .pieces = {9}, .piece_delay = 1200ms, .header_delay = 1200ms});
  const Outcome outcome = get(post(server.url() + "/"));
  EXPECT_FALSE(outcome.failure);
  EXPECT_EQ(outcome.body.size(), 18U);
}

// ---- lost connections (FF-49) ----

TEST_F(HttpClient, AConnectionLostInTheBodyIsAnErrorAfterWhatCame) {
  for (const Ending ending : {Ending::kFin, Ending::kReset}) {
    for (const Framing framing : {Framing::kChunked, Framing::kContentLength}) {
      server.add({.body = "data: 1\n\n", .pieces = {9, 0}, .piece_delay = 50ms, .framing = framing, .ending = ending});
      const Outcome outcome = get(post(server.url() + "/"));
      EXPECT_EQ(outcome.status, 200);
      EXPECT_EQ(outcome.body, "data: 1\n\n");
      ASSERT_TRUE(outcome.failure);
      EXPECT_EQ(outcome.failure->kind, FailureKind::kConnection);
      EXPECT_THAT(outcome.failure->message, HasSubstr("in the middle of the reply"));
    }
  }
}

TEST_F(HttpClient, AConnectionLostBeforeTheAnswerIsAnError) {
  for (const Ending ending : {Ending::kFin, Ending::kReset}) {
    server.add({.silent = true, .ending = ending});
    const Outcome outcome = get(post(server.url() + "/"));
    ASSERT_TRUE(outcome.failure);
    EXPECT_EQ(outcome.failure->kind, FailureKind::kConnection);
    EXPECT_THAT(outcome.failure->message, HasSubstr("closed the connection before it answered"));
  }
}

TEST_F(HttpClient, AResetWhileALargeBodyIsSentDoesNotKillTheProcess) {  // SIGPIPE
  std::thread peer;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  peer = std::thread([listener] { ::close(::accept(listener, nullptr, nullptr)); });
  const Outcome outcome =
      get(post(fmt::format("http://127.0.0.1:{}/", ntohs(address.sin_port)), std::string(20'000'000, 'x')));
  peer.join();
  ::close(listener);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kConnection);
}

TEST_F(HttpClient, ARefusedConnectionNamesHostAndReason) {
  int port = 0;
  {
    const HttpServer gone;
    port = gone.port();
  }
  const Outcome outcome = get(post(fmt::format("http://127.0.0.1:{}/v1?key=sk-canary", port)));
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kConnection);
  EXPECT_EQ(outcome.failure->message, fmt::format("cannot connect to 127.0.0.1:{}: Connection refused", port));
}

TEST_F(HttpClient, AnUnknownHostIsNamed) {
  const Outcome outcome = get(post("http://no-such-host.invalid/v1?key=sk-canary"));
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kConnection);
  EXPECT_EQ(outcome.failure->message, "no address found for no-such-host.invalid");
}

TEST_F(HttpClient, WhatCannotBeSentIsRefused) {
  Request broken_header = post(server.url() + "/");
  broken_header.headers.emplace_back("x-key", "sk-canary\r\nx-other: 1");
  Request bad_proxy = post("http://api.test/");
  bad_proxy.env = {{"http_proxy", "socks5://localhost:1"}};
  for (const Request& request : {broken_header, post("file:///etc/passwd"), post("http://"), bad_proxy}) {
    const Outcome outcome = get(request);
    ASSERT_TRUE(outcome.failure) << request.url;
    EXPECT_EQ(outcome.failure->kind, FailureKind::kSetup);
    EXPECT_THAT(outcome.failure->message, Not(HasSubstr("sk-canary")));  // FF-108
  }
  EXPECT_TRUE(server.requests().empty());
}

// ---- abort ----

/// Requests the stop from another thread when `ready` returns, and gives the time from then to the end of the fetch.
std::chrono::milliseconds abort_time(asio::io_context& io, Client* client, Request request, std::function<void()> ready,
                                     Outcome& outcome) {
  std::stop_source source;
  Clock::time_point asked;
  std::thread stopper([&] {
    ready();
    asked = Clock::now();
    source.request_stop();
  });
  outcome = test::run(io, fetch(client, std::move(request), source.get_token()));
  const auto end = Clock::now();
  stopper.join();
  return std::chrono::duration_cast<std::chrono::milliseconds>(end - asked);
}

TEST_F(HttpClient, AbortWhileWaitingForHeaders) {
  server.add({.silent = true, .ending = Ending::kHang});
  Outcome outcome;
  const auto took =
      abort_time(io, client.get(), post(server.url() + "/"), [&] { server.wait_for_requests(1); }, outcome);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kAborted);
  EXPECT_LT(took, 100ms);
  EXPECT_TRUE(server.wait_for_open_connections(0));
}

TEST_F(HttpClient, AbortInTheBody) {
  server.add({.body = "data: 1\n\n", .ending = Ending::kHang});
  Outcome outcome;
  const auto took =
      abort_time(io, client.get(), post(server.url() + "/"), [&] { std::this_thread::sleep_for(100ms); }, outcome);
  EXPECT_EQ(outcome.body, "data: 1\n\n");
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kAborted);
  EXPECT_LT(took, 100ms);
  EXPECT_TRUE(server.wait_for_open_connections(0));
}

TEST_F(HttpClient, AbortBeforeTheStartSendsNothing) {
  std::stop_source source;
  source.request_stop();
  const Outcome outcome = get(post(server.url() + "/"), source.get_token());
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kAborted);
  EXPECT_EQ(server.accepted_connections(), 0);
}

/// A port whose queue of connections is full: further attempts to connect get no reply.
class DeafPort {
 public:
  DeafPort() {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address_), length);
    ::listen(listener_, 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &length);
    for (int& client : clients_) {
      client = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      ::connect(client, reinterpret_cast<sockaddr*>(&address_), length);
    }
  }
  ~DeafPort() {
    for (const int client : clients_)
      ::close(client);
    ::close(listener_);
  }
  DeafPort(const DeafPort&) = delete;
  DeafPort& operator=(const DeafPort&) = delete;
  std::string url() const { return fmt::format("http://127.0.0.1:{}/", ntohs(address_.sin_port)); }

 private:
  int listener_ = -1;
  sockaddr_in address_{};
  std::array<int, 4> clients_{};
};

TEST_F(HttpClient, AbortWhileConnecting) {
  const DeafPort deaf;
  Outcome outcome;
  const auto took = abort_time(io, client.get(), post(deaf.url()), [] { std::this_thread::sleep_for(100ms); }, outcome);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kAborted);
  EXPECT_LT(took, 100ms);
}

TEST_F(HttpClient, TheLimitForHeadersCoversConnecting) {
  const DeafPort deaf;
  Request request = post(deaf.url());
  request.header_timeout = 200ms;
  const Outcome outcome = get(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kTimeout);
  EXPECT_THAT(outcome.failure->message, HasSubstr("no connection to 127.0.0.1"));
  EXPECT_THAT(outcome.failure->message, HasSubstr("200 ms"));
}

// ---- many and much ----

TEST_F(HttpClient, TenRequestsRunAtTheSameTime) {
  server.answer_with([](const test::RecordedRequest& request) {
    ScriptedAnswer answer{.body = "answer to " + request.body, .pieces = {5, 5}, .piece_delay = 100ms};
    return answer;
  });
  std::vector<std::future<Outcome>> outcomes;
  const auto begin = Clock::now();
  for (int i = 0; i < 10; ++i) {
    outcomes.push_back(
        asio::co_spawn(io, fetch(client.get(), post(server.url() + "/", std::to_string(i))), asio::use_future));
  }
  io.run();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(outcomes[static_cast<std::size_t>(i)].get().body, fmt::format("answer to {}", i));
  EXPECT_LT(Clock::now() - begin, 1500ms);  // one after the other: 2 s
}

TEST_F(HttpClient, ASlowReaderHoldsTheServerUp) {
  std::string body(16'000'000, 'x');
  for (std::size_t i = 0; i < body.size(); i += 1009)
    body[i] = static_cast<char>('a' + i % 26);
  server.add({.body = body});
  const Outcome outcome = test::run(io, fetch(client.get(), post(server.url() + "/"), {}, 30ms));
  EXPECT_FALSE(outcome.failure);
  EXPECT_TRUE(outcome.body == body);
  EXPECT_LT(outcome.largest_piece, 3'000'000U);
}

TEST_F(HttpClient, DrainingKeepsTheConnection) {
  struct Half {
    static asio::awaitable<bool> read(Client* client, std::string url) {
      auto response = co_await client->send(post(std::move(url)), {});
      auto piece = co_await (*response)->read();
      const bool started = piece.has_value();
      co_await (*response)->drain(5s);
      co_return started;
    }
  };
  server.add({.body = "data: 1\n\ndata: 2\n\n", .pieces = {9}, .piece_delay = 50ms});
  server.add({.body = "next"});
  EXPECT_TRUE(test::run(io, Half::read(client.get(), server.url() + "/")));
  EXPECT_EQ(get(post(server.url() + "/")).body, "next");
  EXPECT_EQ(server.accepted_connections(), 1);
}

TEST_F(HttpClient, DrainingAHangingBodyEndsAtTheLimit) {
  struct Half {
    static asio::awaitable<bool> read(Client* client, std::string url) {
      auto response = co_await client->send(post(std::move(url)), {});
      co_await (*response)->drain(50ms);
      co_return true;
    }
  };
  server.add({.body = "data: 1\n\n", .ending = Ending::kHang});
  EXPECT_TRUE(test::run(io, Half::read(client.get(), server.url() + "/")));
  EXPECT_TRUE(server.wait_for_open_connections(0));
}

// ---- lifetimes ----

TEST_F(HttpClient, DestroyingAResponseClosesItsTransfer) {
  struct Half {
    static asio::awaitable<int> status(Client* client, std::string url) {
      auto response = co_await client->send(post(std::move(url)), {});
      co_return (*response)->status;
    }
  };
  server.add({.body = "data: 1\n\n", .ending = Ending::kHang});
  EXPECT_EQ(test::run(io, Half::status(client.get(), server.url() + "/")), 200);
  EXPECT_TRUE(server.wait_for_open_connections(0));
  server.add({.body = "ok"});
  EXPECT_EQ(get(post(server.url() + "/")).body, "ok");
}

TEST_F(HttpClient, DestroyingTheClientEndsWhatRuns) {
  server.add({.body = "data: 1\n\n", .ending = Ending::kHang});
  server.add({.silent = true, .ending = Ending::kHang});
  auto reading = asio::co_spawn(io, fetch(client.get(), post(server.url() + "/")), asio::use_future);
  auto waiting = asio::co_spawn(io, fetch(client.get(), post(server.url() + "/")), asio::use_future);
  while (server.requests().size() < 2)
    io.run_for(10ms);
  client.reset();
  io.restart();
  io.run();
  EXPECT_TRUE(reading.get().failure);
  EXPECT_TRUE(waiting.get().failure);
  EXPECT_TRUE(server.wait_for_open_connections(0));
}

TEST_F(HttpClient, ALoopThatIsDestroyedWithARunningTransferIsSafe) {
  server.add({.silent = true, .ending = Ending::kHang});
  auto loop = std::make_unique<asio::io_context>();
  auto own = make_client(loop->get_executor());
  auto pending = asio::co_spawn(*loop, fetch(own.get(), post(server.url() + "/")), asio::use_future);
  while (server.requests().empty())
    loop->run_for(10ms);
  own.reset();
  loop.reset();
  EXPECT_TRUE(server.wait_for_open_connections(0));
}

TEST_F(HttpClient, AnIdleClientKeepsNoLoopRunning) {
  server.add({.body = "ok"});
  auto outcome = asio::co_spawn(io, fetch(client.get(), post(server.url() + "/")), asio::use_future);
  io.run();  // returns although the connection is kept
  EXPECT_EQ(outcome.get().body, "ok");
  EXPECT_EQ(server.open_connections(), 1);
}

// ---- proxies (FF-54) ----

TEST_F(HttpClient, PlainHttpGoesThroughATunnelToo) {  // AI-265
  server.add({.body = "through the tunnel"});
  Request request = post("http://api.test/v1");
  request.env = {{"http_proxy", fmt::format("http://user:pw@127.0.0.1:{}", server.port())}};
  const Outcome outcome = get(request);
  EXPECT_FALSE(outcome.failure);
  EXPECT_EQ(outcome.body, "through the tunnel");
  ASSERT_EQ(server.tunnels().size(), 1U);
  EXPECT_EQ(server.tunnels().at(0).path, "api.test:80");
  EXPECT_EQ(server.tunnels().at(0).headers.at("proxy-authorization"), "Basic dXNlcjpwdw==");
  EXPECT_EQ(server.requests().at(0).path, "/v1");
  EXPECT_FALSE(server.requests().at(0).headers.contains("proxy-authorization"));
}

TEST_F(HttpClient, TheTableOfRulesHoldsAgainstAProxyThatLogs) {  // FF-54
  struct Row {
    std::string host;
    std::string no_proxy;
    bool tunnel;
  };
  const std::vector<Row> rows = {
      {"api.test", "", true},           {"api.test", "api.test", false},     {"v1.api.test", "api.test", false},
      {"myapi.test", "api.test", true}, {"v1.api.test", ".api.test", false}, {"api.test:8080", "api.test:80", true},
      {"localhost", "", false},         {"localhost", "<-loopback>", true},  {"127.0.0.1", "", false},
      {"api.test", "*", false},
  };
  server.answer_with([](const test::RecordedRequest&) { return test::json_answer(200, "{}"); });
  std::size_t tunnels = 0;
  for (const Row& row : rows) {
    Request request = post(fmt::format("http://{}{}/", row.host, row.host.find(':') == std::string::npos ? ":1" : ""));
    request.env = {{"HTTP_PROXY", server.url()}, {"NO_PROXY", row.no_proxy}};
    const Outcome outcome = get(request);
    EXPECT_EQ(outcome.failure.has_value(), !row.tunnel) << row.host << " " << row.no_proxy;  // nobody else answers
    if (row.tunnel) ++tunnels;
    EXPECT_EQ(server.tunnels().size(), tunnels) << row.host << " " << row.no_proxy;
  }
}

TEST_F(HttpClient, AProxyThatCannotBeReachedIsNamedWithoutItsPassword) {  // FF-108
  Request request = post("http://api.test/v1");
  request.env = {{"http_proxy", "http://user:hunter2@127.0.0.1:1"}};
  const Outcome outcome = get(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind, FailureKind::kConnection);
  EXPECT_EQ(outcome.failure->message, "cannot connect to api.test through the proxy 127.0.0.1:1: Connection refused");
}

}  // namespace
}  // namespace tau::ai::http
