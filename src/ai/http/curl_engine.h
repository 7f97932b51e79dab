// libcurl's multi interface on an Asio loop: sockets and the one timer are Asio's, transfers are libcurl's.
//
// libcurl tells which sockets it wants to be woken for; each gets a descriptor that does not own it. One call of
// multi_socket_action follows each wake-up. No code of ours beyond the small callbacks below runs inside libcurl:
// whoever waits for a transfer is woken through its timer and continues from the loop.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "ai/http/curl_library.h"
#include "ai/http/http_client.h"

namespace tau::ai::http {

class CurlEngine;

/// One request and its answer, shared by the reader (who waits) and the engine (which receives).
class Transfer : public std::enable_shared_from_this<Transfer> {
 public:
  Transfer(std::shared_ptr<CurlEngine> engine, Request request);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Ends the transfer with `failure`, unless it is over already.
  void fail(Failure failure);
  /// Waits until `ready` or the deadline; false = the time is over. One waiter at a time.
  template <class Ready>
  asio::awaitable<bool> wait(Ready ready, std::chrono::steady_clock::time_point deadline);

  Request request;
  std::shared_ptr<CurlEngine> engine;
  CURL* easy = nullptr;  // null before the start and after the end
  curl_slist* header_lines = nullptr;
  std::string proxy;
  std::array<char, CURL_ERROR_SIZE> error_text{};

  int status = 0;
  std::string protocol;
  std::string reason;
  HeaderList headers;
  bool headers_complete = false;

  std::string unread;   // body bytes that nobody has taken yet
  bool paused = false;  // libcurl was told to stop reading because `unread` is long
  bool finished = false;
  std::optional<Failure> failure;

  std::stop_token stop;
  std::optional<std::stop_callback<std::function<void()>>> on_stop;

  void wake();

 private:
  asio::steady_timer signal_;
  bool waiting_ = false;
};

class CurlEngine : public std::enable_shared_from_this<CurlEngine> {
 public:
  CurlEngine(const CurlLibrary& curl, asio::any_io_executor executor);
  ~CurlEngine();
  CurlEngine(const CurlEngine&) = delete;
  CurlEngine& operator=(const CurlEngine&) = delete;

  /// Fails at once when the request cannot be made.
  std::expected<void, Failure> start(Transfer& transfer);
  /// Takes the transfer out of libcurl. Its connection is kept when the answer was complete.
  void remove(Transfer& transfer);
  void resume(Transfer& transfer);
  /// Ends all transfers; the engine is unusable afterwards.
  void close();

  const asio::any_io_executor& executor() const { return executor_; }
  /// Whether the connection has been made and the request has begun to leave.
  bool request_sent(const Transfer& transfer) const;

 private:
  struct Socket {
    Socket(const asio::any_io_executor& executor, curl_socket_t fd) : descriptor(executor, fd) {}
    asio::posix::stream_descriptor descriptor;
    bool want_read = false;
    bool want_write = false;
    bool waits_read = false;
    bool waits_write = false;
    bool removed = false;
  };

  static int on_socket(CURL* easy, curl_socket_t fd, int what, void* engine, void* socket);
  static int on_timer(CURLM* multi, long milliseconds, void* engine);
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* transfer);
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* transfer);

  void watch(const std::shared_ptr<Socket>& socket);
  void forget(curl_socket_t fd);
  void act(curl_socket_t fd, int events);
  void collect();
  std::expected<void, Failure> set_up(Transfer& transfer);
  Failure describe(CURLcode code, const Transfer& transfer) const;

  const CurlLibrary& curl_;
  asio::any_io_executor executor_;
  CURLM* multi_ = nullptr;
  asio::steady_timer timer_;
  std::unordered_map<curl_socket_t, std::shared_ptr<Socket>> sockets_;
  std::unordered_set<Transfer*> transfers_;
};

template <class Ready>
asio::awaitable<bool> Transfer::wait(Ready ready, std::chrono::steady_clock::time_point deadline) {
  while (!ready()) {
    if (std::chrono::steady_clock::now() >= deadline) co_return false;
    signal_.expires_at(deadline);
    waiting_ = true;
    boost::system::error_code ignored;
    co_await signal_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    waiting_ = false;
  }
  co_return true;
}

}  // namespace tau::ai::http
