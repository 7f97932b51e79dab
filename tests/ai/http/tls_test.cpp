// TLS against `openssl s_server` with a certificate made for the test.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ai/http/http_client.h"

#include "support/fixture.h"
#include "support/run.h"

namespace tau::ai::http {
namespace {

using ::testing::HasSubstr;

/// Serves one page to each request over TLS 1.2+ on a free port.
class TlsServer {
 public:
  explicit TlsServer(const test::TemporaryFolder& folder) {
    const std::string make = fmt::format(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout {0}/key.pem -out {0}/cert.pem >/dev/null 2>&1",
        folder.path().string());
    usable_ = std::system(make.c_str()) == 0;
    if (!usable_) return;
    int pipe_ends[2];
    usable_ = ::pipe(pipe_ends) == 0;
    if (!usable_) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(pipe_ends[1], STDOUT_FILENO);
      ::close(pipe_ends[0]);
      ::close(pipe_ends[1]);
      const std::string key = (folder / "key.pem").string();
      const std::string certificate = (folder / "cert.pem").string();
      ::execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-key", key.c_str(), "-cert",
               certificate.c_str(), "-www", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(pipe_ends[1]);
    output_ = ::fdopen(pipe_ends[0], "r");
    char line[256];
    int port = 0;
    while (port == 0 && ::fgets(line, sizeof line, output_) != nullptr) {
      const std::string_view text(line);
      if (text.starts_with("ACCEPT ")) port = std::atoi(line + text.rfind(':') + 1);
    }
    port_ = port;
    usable_ = port != 0;
  }
  ~TlsServer() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    if (output_ != nullptr) ::fclose(output_);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  bool usable() const { return usable_; }
  int port() const { return port_; }

 private:
  bool usable_ = false;
  pid_t child_ = -1;
  FILE* output_ = nullptr;
  int port_ = 0;
};

asio::awaitable<std::expected<std::string, Failure>> page(Client* client, Request request) {
  auto response = co_await client->send(std::move(request), {});
  if (!response) co_return std::unexpected(response.error());
  auto body = co_await Client::read_all(**response, 1 << 20);
  co_return body;
}

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!server.usable()) GTEST_SKIP() << "the openssl program is missing";
  }
  std::expected<std::string, Failure> get(const std::string& host, const std::string& certificates) {
    Request request;
    request.method = "GET";
    request.url = fmt::format("https://{}:{}/", host, server.port());
    if (!certificates.empty()) request.env = {{"NODE_EXTRA_CA_CERTS", certificates}};
    asio::io_context io;
    const auto client = make_client(io.get_executor());
    return test::run(io, page(client.get(), request));
  }

  test::TemporaryFolder folder;
  TlsServer server{folder};
};

TEST_F(Tls, AnUntrustedCertificateIsAClearErrorThatIsNotRetried) {
  const auto body = get("127.0.0.1", "");
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().kind, FailureKind::kSetup);
  EXPECT_THAT(body.error().message,
              HasSubstr(fmt::format("the certificate of 127.0.0.1:{} is not trusted", server.port())));
  EXPECT_THAT(body.error().message, HasSubstr("self-signed"));
  EXPECT_THAT(body.error().message, HasSubstr("NODE_EXTRA_CA_CERTS"));
}

TEST_F(Tls, CertificatesOfOnesOwnAreTrusted) {
  const auto body = get("127.0.0.1", (folder / "cert.pem").string());
  ASSERT_TRUE(body) << body.error().message;
  EXPECT_THAT(*body, HasSubstr("Cipher"));
}

TEST_F(Tls, AFileOfCertificatesThatIsMissingChangesNothing) {
  const auto body = get("127.0.0.1", (folder / "missing.pem").string());
  ASSERT_FALSE(body);
  EXPECT_THAT(body.error().message, HasSubstr("is not trusted"));
}

}  // namespace
}  // namespace tau::ai::http
