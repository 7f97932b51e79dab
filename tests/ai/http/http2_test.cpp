// HTTP/2 against nghttpd, the server of the nghttp2 project: whole replies side by side, held up, sent, aborted.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ai/http/http_client.h"

#include "support/fixture.h"
#include "support/run.h"

namespace tau::ai::http {
namespace {

using namespace std::chrono_literals;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

bool accepts(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(port);
  const bool connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

/// What one fetch saw.
struct Fetched {
  std::string protocol;
  int status = 0;
  std::string body;
  std::size_t largest_piece = 0;
  std::optional<Failure> failure;
};

/// `pause`: how long the reader takes for each piece.
asio::awaitable<Fetched> fetch(Client* client, Request request, std::stop_token stop, std::chrono::milliseconds pause) {
  Fetched fetched;
  const auto response = co_await client->send(std::move(request), std::move(stop));
  if (!response) {
    fetched.failure = response.error();
    co_return fetched;
  }
  fetched.protocol = (*response)->protocol;
  fetched.status = (*response)->status;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (true) {
    const auto piece = co_await (*response)->read();
    if (!piece) {
      fetched.failure = piece.error();
      co_return fetched;
    }
    if (!*piece) co_return fetched;
    fetched.body += **piece;
    fetched.largest_piece = std::max(fetched.largest_piece, (*piece)->size());
    if (pause.count() == 0) continue;
    timer.expires_after(pause);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

class Http2 : public testing::Test {
 protected:
  void SetUp() override {
    const std::string certificate = fmt::format(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=IP:127.0.0.1 -keyout {0}/key.pem -out {0}/cert.pem >/dev/null 2>&1",
        folder.path().string());
    ASSERT_EQ(std::system(certificate.c_str()), 0) << "the openssl program is needed";
    megabyte.resize(1 << 20);
    for (std::size_t i = 0; i < megabyte.size(); ++i)
      megabyte[i] = static_cast<char>('a' + i * i % 26);
    folder.write("megabyte", megabyte);
    folder.write("long", std::string(16'000'000, 'x'));
    port = free_port();
    child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const std::string root = "--htdocs=" + folder.path().string();
      const std::string key = (folder / "key.pem").string();
      const std::string cert = (folder / "cert.pem").string();
      const std::string number = std::to_string(port);
      ::execlp("nghttpd", "nghttpd", "--address=127.0.0.1", "--echo-upload", root.c_str(), number.c_str(), key.c_str(),
               cert.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    for (int tries = 0; tries < 500 && !accepts(port); ++tries)
      std::this_thread::sleep_for(10ms);
    ASSERT_TRUE(accepts(port)) << "nghttpd (Debian package nghttp2-server) does not start";
  }
  void TearDown() override {
    if (child <= 0) return;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  Request get(const std::string& path) const {
    Request request;
    request.method = "GET";
    request.url = fmt::format("https://127.0.0.1:{}/{}", port, path);
    request.env = {{"NODE_EXTRA_CA_CERTS", (folder / "cert.pem").string()}};
    return request;
  }

  test::TemporaryFolder folder;
  std::string megabyte;
  int port = 0;
  pid_t child = -1;
  asio::io_context io;
  std::unique_ptr<Client> client = make_client(io.get_executor());
};

TEST_F(Http2, IsNegotiatedOverTls) {
  const Fetched fetched = test::run(io, fetch(client.get(), get("megabyte"), {}, 0ms));
  EXPECT_FALSE(fetched.failure);
  EXPECT_EQ(fetched.protocol, "HTTP/2");
  EXPECT_EQ(fetched.status, 200);
  EXPECT_TRUE(fetched.body == megabyte);
}

TEST_F(Http2, AHundredRepliesAtTheSameTimeArriveWhole) {
  std::vector<std::future<Fetched>> all;
  for (int i = 0; i < 100; ++i)
    all.push_back(asio::co_spawn(io, fetch(client.get(), get("megabyte"), {}, 0ms), asio::use_future));
  io.run_for(30s);
  for (auto& one : all) {
    ASSERT_EQ(one.wait_for(0s), std::future_status::ready);
    const Fetched fetched = one.get();
    EXPECT_FALSE(fetched.failure) << fetched.failure->message;
    EXPECT_TRUE(fetched.body == megabyte);
  }
}

TEST_F(Http2, LargeBodiesLeaveWhole) {
  Request request = get("echo");
  request.method = "POST";
  request.body = megabyte + megabyte + megabyte;
  const std::string sent = request.body;
  const Fetched fetched = test::run(io, fetch(client.get(), std::move(request), {}, 0ms));
  EXPECT_FALSE(fetched.failure);
  EXPECT_TRUE(fetched.body == sent);
}

TEST_F(Http2, ASlowReaderHoldsTheServerUp) {
  const Fetched fetched = test::run(io, fetch(client.get(), get("long"), {}, 10ms));
  EXPECT_FALSE(fetched.failure);
  EXPECT_TRUE(fetched.body == std::string(16'000'000, 'x'));
  EXPECT_LT(fetched.largest_piece, 3'000'000U);
}

TEST_F(Http2, AnAbortedReplyLeavesTheOthersOnItsConnectionAlone) {
  std::stop_source stop;
  auto aborted = asio::co_spawn(io, fetch(client.get(), get("long"), stop.get_token(), 50ms), asio::use_future);
  auto other = asio::co_spawn(io, fetch(client.get(), get("long"), {}, 5ms), asio::use_future);
  asio::steady_timer timer(io, 100ms);
  timer.async_wait([&stop](const boost::system::error_code&) { stop.request_stop(); });
  io.run_for(30s);
  const Fetched first = aborted.get();
  ASSERT_TRUE(first.failure);
  EXPECT_EQ(first.failure->kind, FailureKind::kAborted);
  const Fetched second = other.get();
  EXPECT_FALSE(second.failure);
  EXPECT_EQ(second.body.size(), 16'000'000U);
}

}  // namespace
}  // namespace tau::ai::http
