// HTTP for the model layer: libcurl's multi interface driven by the caller's Asio loop.
//
// libcurl with TLS is 36 shared objects and 8 ms of dynamic linking, so it is not linked: it is loaded when the first
// request is made (a start without a request never pays). It speaks HTTP/2 where TLS
// negotiates it, else HTTP/1.1; connections are kept and reused, bodies may come compressed, proxies come from the
// environment (AI-265, FF-54).
//
// There is no limit on the total time of a request (FF-52): only one on the wait for headers and one on silence between
// two pieces of the body (FF-47).
#pragma once

#include <chrono>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace tau::ai::http {

namespace asio = boost::asio;

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method = "POST";
  std::string url;
  HeaderList headers;
  std::string body;
  std::chrono::milliseconds header_timeout{0};  // 0 = no limit
  std::chrono::milliseconds idle_timeout{0};    // 0 = no limit
  std::map<std::string, std::string> env;       // proxy variables that override the process environment
};

enum class FailureKind {
  kConnection,  // no connection, or lost before or in the middle of the answer
  kTimeout,     // header_timeout or idle_timeout ran out
  kAborted,     // stop was requested
  kSetup,       // bad URL or header, unusable proxy, untrusted certificate, no libcurl: trying again is pointless
};

struct Failure {
  FailureKind kind;
  std::string message;  // for a person; names host and what was waited for, never headers or keys
};

/// One response whose body is read piece by piece.
class Response {
 public:
  virtual ~Response() = default;
  int status = 0;
  std::string protocol;  // "HTTP/1.1", "HTTP/2"
  std::string reason;    // reason phrase, may be empty
  HeaderList headers;    // names in lower case
  std::optional<std::string> header(std::string_view lower_case_name) const;

  /// The next piece, decompressed. Nothing = the body is complete. The view is valid until the next call. A reader that
  /// takes its time holds the sender up: at most about two MiB wait in memory.
  virtual asio::awaitable<std::expected<std::optional<std::string_view>, Failure>> read() = 0;

  /// Drops what is left of the body, for at most `limit`. A body that was read to its end leaves a connection that the
  /// next request can use; an unfinished one is closed.
  virtual asio::awaitable<void> drain(std::chrono::milliseconds limit);
};

class Client {
 public:
  virtual ~Client() = default;
  /// Sends and returns when the headers are there. Destroying the response closes the transfer. `stop` ends it within
  /// 100 ms, also while the body is read.
  virtual asio::awaitable<std::expected<std::unique_ptr<Response>, Failure>> send(Request request,
                                                                                  std::stop_token stop) = 0;
  /// The whole body, at most `limit` bytes; the rest is left unread.
  static asio::awaitable<std::expected<std::string, Failure>> read_all(Response& response, std::size_t limit);
};

/// The client of this executor's loop. Must be used from that loop only and must not outlive it. Destroying it ends the
/// transfers that still run.
///
/// Redirects are not followed: a request carries keys in headers of its own, which must not reach another host.
/// Certificates are checked against the system's, and those in the file of NODE_EXTRA_CA_CERTS or SSL_CERT_FILE.
std::unique_ptr<Client> make_client(asio::any_io_executor executor);

}  // namespace tau::ai::http
