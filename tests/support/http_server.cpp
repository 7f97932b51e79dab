#include "support/http_server.h"

#include <sys/socket.h>
#include <zstd.h>

#include <array>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

namespace tau::test {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::string_view usual_reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 418:
      return "I'm a teapot";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

void append_little_endian(std::string& out, std::uint32_t n, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>((n >> (8 * i)) & 0xFF);
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

/// A gzip file (RFC 1952) whose deflate blocks are stored, not compressed: valid, and needs no library.
std::string gzip(std::string_view bytes) {
  std::string out("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
  std::string_view rest = bytes;
  do {
    const std::string_view block = rest.substr(0, 1000);
    rest.remove_prefix(block.size());
    out += rest.empty() ? '\x01' : '\x00';
    append_little_endian(out, static_cast<std::uint32_t>(block.size()), 2);
    append_little_endian(out, ~static_cast<std::uint32_t>(block.size()), 2);
    out += block;
  } while (!rest.empty());
  append_little_endian(out, crc32(bytes), 4);
  append_little_endian(out, static_cast<std::uint32_t>(bytes.size()), 4);
  return out;
}

std::string head_of(const ScriptedAnswer& answer, std::size_t body_bytes) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", answer.status,
                                 answer.reason.empty() ? usual_reason(answer.status) : answer.reason);
  for (const auto& [name, value] : answer.headers)
    head += fmt::format("{}: {}\r\n", name, value);
  if (answer.gzip) head += "content-encoding: gzip\r\n";
  if (answer.close || answer.framing == ScriptedAnswer::Framing::kUntilClose) head += "connection: close\r\n";
  if (answer.framing == ScriptedAnswer::Framing::kChunked) head += "transfer-encoding: chunked\r\n";
  if (answer.framing == ScriptedAnswer::Framing::kContentLength) {
    // An answer that does not end properly promises more than comes.
    const std::size_t promised = body_bytes + (answer.ending == ScriptedAnswer::Ending::kComplete ? 0 : 1000);
    head += fmt::format("content-length: {}\r\n", promised);
  }
  return head + "\r\n";
}

}  // namespace

json::object RecordedRequest::json() const {
  std::string text = body;
  if (const auto encoding = headers.find("content-encoding"); encoding != headers.end() && encoding->second == "zstd") {
    text.resize(ZSTD_getFrameContentSize(body.data(), body.size()));
    if (ZSTD_isError(ZSTD_decompress(text.data(), text.size(), body.data(), body.size())) != 0)
      throw std::runtime_error("the request body is no zstd frame");
  }
  auto parsed = json::parse(text);
  if (!parsed) throw std::runtime_error("the request body is not JSON: " + parsed.error().describe());
  if (!parsed->is_object()) throw std::runtime_error("the request body is no object");
  return parsed->get_object();
}

ScriptedAnswer sse_answer(std::string body) {
  ScriptedAnswer answer;
  answer.headers = {{"content-type", "text/event-stream"}};
  answer.body = std::move(body);
  return answer;
}

ScriptedAnswer json_answer(int status, std::string body) {
  ScriptedAnswer answer;
  answer.status = status;
  answer.headers = {{"content-type", "application/json"}};
  answer.body = std::move(body);
  answer.framing = ScriptedAnswer::Framing::kContentLength;
  return answer;
}

struct HttpServer::State {
  asio::io_context io{1};
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  const int port = acceptor.local_endpoint().port();
  std::thread thread;

  mutable std::mutex mutex;  // guards what follows
  mutable std::condition_variable changed;
  std::deque<ScriptedAnswer> answers;
  std::function<ScriptedAnswer(const RecordedRequest&)> handler;
  std::vector<RecordedRequest> requests;
  std::vector<RecordedRequest> tunnels;
  int accepted = 0;
  int open = 0;

  asio::awaitable<void> accept_all();
  asio::awaitable<void> serve(tcp::socket socket, int number);
  asio::awaitable<bool> answer(tcp::socket& socket, ScriptedAnswer answer);
  asio::awaitable<bool> send_body(tcp::socket& socket, const ScriptedAnswer& answer, std::string body);
  asio::awaitable<void> hang_until_closed(tcp::socket& socket);
  asio::awaitable<void> sleep(std::chrono::milliseconds time);
  ScriptedAnswer record(RecordedRequest request);
};

asio::awaitable<void> HttpServer::State::accept_all() {
  while (true) {
    error_code ec;
    tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return;
    int number = 0;
    {
      const std::lock_guard lock(mutex);
      number = accepted++;
      ++open;
    }
    changed.notify_all();
    asio::co_spawn(io, serve(std::move(socket), number), asio::detached);
  }
}

ScriptedAnswer HttpServer::State::record(RecordedRequest request) {
  ScriptedAnswer answer;
  {
    const std::lock_guard lock(mutex);
    if (!answers.empty()) {
      answer = std::move(answers.front());
      answers.pop_front();
    } else if (handler) {
      answer = handler(request);
    } else {
      answer = json_answer(500, R"({"error":{"message":"the test has no answer for this request"}})");
    }
    requests.push_back(std::move(request));
  }
  changed.notify_all();
  return answer;
}

asio::awaitable<void> HttpServer::State::serve(tcp::socket socket, int number) {
  socket.set_option(tcp::no_delay(true));
  std::string buffer;
  bool more = true;
  while (more) {
    error_code ec;
    const std::size_t head_size = co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer), "\r\n\r\n",
                                                                  asio::redirect_error(asio::use_awaitable, ec));
    if (ec) break;
    RecordedRequest request;
    request.connection = number;
    request.time = std::chrono::steady_clock::now();
    std::string_view head = std::string_view(buffer).substr(0, head_size);
    const std::string_view first = head.substr(0, head.find("\r\n"));
    head.remove_prefix(first.size() + 2);
    request.method = first.substr(0, first.find(' '));
    request.path = first.substr(request.method.size() + 1, first.rfind(' ') - request.method.size() - 1);
    while (head != "\r\n") {
      const std::string_view line = head.substr(0, head.find("\r\n"));
      head.remove_prefix(line.size() + 2);
      const std::size_t colon = line.find(':');
      std::string& value = request.headers[lower(line.substr(0, colon))];
      if (!value.empty()) value += ", ";
      value += trimmed(line.substr(colon + 1));
    }
    buffer.erase(0, head_size);

    if (request.method == "CONNECT") {
      {
        const std::lock_guard lock(mutex);
        tunnels.push_back(std::move(request));
      }
      changed.notify_all();
      const std::string reply = "HTTP/1.1 200 Connection established\r\n\r\n";
      co_await asio::async_write(socket, asio::buffer(reply), asio::redirect_error(asio::use_awaitable, ec));
      continue;
    }
    std::size_t length = 0;
    if (const auto it = request.headers.find("content-length"); it != request.headers.end()) {
      std::from_chars(it->second.data(), it->second.data() + it->second.size(), length);
    }
    while (buffer.size() < length && !ec) {
      std::string more_bytes(std::min<std::size_t>(length - buffer.size(), 1 << 16), '\0');
      const std::size_t n =
          co_await socket.async_read_some(asio::buffer(more_bytes), asio::redirect_error(asio::use_awaitable, ec));
      buffer.append(more_bytes, 0, n);
    }
    if (ec) break;
    request.body = buffer.substr(0, length);
    buffer.erase(0, length);
    ScriptedAnswer next = record(std::move(request));
    more = co_await answer(socket, std::move(next));
  }
  error_code ignored;
  socket.close(ignored);
  {
    const std::lock_guard lock(mutex);
    --open;
  }
  changed.notify_all();
}

asio::awaitable<void> HttpServer::State::sleep(std::chrono::milliseconds time) {
  asio::steady_timer timer(io, time);
  error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> HttpServer::State::hang_until_closed(tcp::socket& socket) {
  error_code ec;
  while (!ec) {
    char byte = 0;
    co_await socket.async_read_some(asio::buffer(&byte, 1), asio::redirect_error(asio::use_awaitable, ec));
  }
}

/// True when the connection stays usable.
asio::awaitable<bool> HttpServer::State::answer(tcp::socket& socket, ScriptedAnswer answer) {
  using Ending = ScriptedAnswer::Ending;
  if (answer.header_delay.count() > 0) co_await sleep(answer.header_delay);
  if (!answer.silent) {
    std::string body = answer.gzip ? gzip(answer.body) : std::move(answer.body);
    std::string head = head_of(answer, body.size());
    error_code ec;
    co_await asio::async_write(socket, asio::buffer(head), asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return false;
    const bool sent = co_await send_body(socket, answer, std::move(body));
    if (!sent) co_return false;
  }
  if (answer.ending == Ending::kHang) co_await hang_until_closed(socket);
  if (answer.ending == Ending::kReset) socket.set_option(asio::socket_base::linger(true, 0));
  co_return answer.ending == Ending::kComplete && !answer.silent && !answer.close &&
      answer.framing != ScriptedAnswer::Framing::kUntilClose;
}

asio::awaitable<bool> HttpServer::State::send_body(tcp::socket& socket, const ScriptedAnswer& answer,
                                                   std::string body) {
  const bool chunked = answer.framing == ScriptedAnswer::Framing::kChunked;
  std::string_view rest = body;
  error_code ec;
  for (std::size_t i = 0; !rest.empty(); ++i) {
    if (i > 0) co_await sleep(answer.piece_delay);
    const std::string_view piece = i < answer.pieces.size() ? rest.substr(0, answer.pieces[i]) : rest;
    rest.remove_prefix(piece.size());
    if (piece.empty()) continue;
    const std::string before = chunked ? fmt::format("{:x}\r\n", piece.size()) : "";
    const std::string_view after = chunked ? "\r\n" : "";
    const std::array<asio::const_buffer, 3> buffers{asio::buffer(before), asio::buffer(piece.data(), piece.size()),
                                                    asio::buffer(after.data(), after.size())};
    co_await asio::async_write(socket, buffers, asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return false;
  }
  if (chunked && answer.ending == ScriptedAnswer::Ending::kComplete) {
    co_await asio::async_write(socket, asio::buffer("0\r\n\r\n", 5), asio::redirect_error(asio::use_awaitable, ec));
  }
  co_return !ec;
}

HttpServer::HttpServer() : state_(std::make_unique<State>()) {
  asio::co_spawn(state_->io, state_->accept_all(), asio::detached);
  state_->thread = std::thread([state = state_.get()] { state->io.run(); });
}

HttpServer::~HttpServer() {
  state_->io.stop();
  state_->thread.join();
}

int HttpServer::port() const {
  return state_->port;
}

std::string HttpServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port());
}

void HttpServer::add(ScriptedAnswer answer) {
  const std::lock_guard lock(state_->mutex);
  state_->answers.push_back(std::move(answer));
}

void HttpServer::answer_with(std::function<ScriptedAnswer(const RecordedRequest&)> handler) {
  const std::lock_guard lock(state_->mutex);
  state_->handler = std::move(handler);
}

std::vector<RecordedRequest> HttpServer::requests() const {
  const std::lock_guard lock(state_->mutex);
  return state_->requests;
}

std::vector<RecordedRequest> HttpServer::tunnels() const {
  const std::lock_guard lock(state_->mutex);
  return state_->tunnels;
}

int HttpServer::accepted_connections() const {
  const std::lock_guard lock(state_->mutex);
  return state_->accepted;
}

int HttpServer::open_connections() const {
  const std::lock_guard lock(state_->mutex);
  return state_->open;
}

bool HttpServer::wait_for_requests(std::size_t count, std::chrono::milliseconds limit) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, limit, [&] { return state_->requests.size() >= count; });
}

bool HttpServer::wait_for_open_connections(int at_most, std::chrono::milliseconds limit) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, limit, [&] { return state_->open <= at_most; });
}

}  // namespace tau::test
