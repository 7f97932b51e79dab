#include "ai/http/curl_engine.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "ai/http/proxy.h"

namespace tau::ai::http {

namespace {

constexpr std::size_t kUnreadLimit = std::size_t{1} << 20;
constexpr long kReceiveBuffer = 128L << 10;
// libcurl gives up connecting after 300 s of its own accord; the only limit shall be the caller's (FF-52).
constexpr long kNoConnectLimit = 24L * 3600 * 1000;

/// A write to a connection that the peer has closed raises SIGPIPE; the TLS library does not always prevent it, and
/// the program's disposition is not ours to change. So the signal is blocked in this thread, and one that came is
/// taken.
class BrokenPipeGuard {
 public:
  BrokenPipeGuard() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~BrokenPipeGuard() {
    if (::sigismember(&before_, SIGPIPE) == 1) return;
    const timespec now{0, 0};
    while (::sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// File of certificates to trust besides the system's, or "".
std::string extra_certificates(const EnvironmentLookup& environment) {
  for (const char* name : {"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"}) {
    const std::optional<std::string> path = environment(name);
    if (path && !path->empty() && ::access(path->c_str(), R_OK) == 0) return *path;
  }
  return {};
}

constexpr bool breaks_line(char c) {
  return c == '\r' || c == '\n' || c == '\0';
}

}  // namespace

// ---- Transfer ----------------------------------------------------------------------------------------------------

Transfer::Transfer(std::shared_ptr<CurlEngine> used_engine, Request sent)
    : request(std::move(sent)), engine(std::move(used_engine)), signal_(engine->executor()) {}

Transfer::~Transfer() {
  on_stop.reset();
  engine->remove(*this);
}

void Transfer::wake() {
  if (waiting_) signal_.cancel();
}

void Transfer::fail(Failure why) {
  if (finished) return;
  finished = true;
  failure = std::move(why);
  engine->remove(*this);
  wake();
}

// ---- CurlEngine --------------------------------------------------------------------------------------------------

CurlEngine::CurlEngine(const CurlLibrary& curl, asio::any_io_executor executor)
    : curl_(curl), executor_(std::move(executor)), multi_(curl.multi_init()), timer_(executor_) {
  if (multi_ == nullptr) throw std::bad_alloc();
  curl_.multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlEngine::on_socket);
  curl_.multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_.multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlEngine::on_timer);
  curl_.multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

CurlEngine::~CurlEngine() {
  close();
}

void CurlEngine::close() {
  if (multi_ == nullptr) return;
  const std::vector<Transfer*> running(transfers_.begin(), transfers_.end());
  for (Transfer* transfer : running)
    transfer->fail({FailureKind::kConnection, "the HTTP client was closed"});
  {
    const BrokenPipeGuard guard;
    curl_.multi_cleanup(multi_);
  }
  multi_ = nullptr;
  timer_.cancel();
  while (!sockets_.empty())
    forget(sockets_.begin()->first);
}

std::expected<void, Failure> CurlEngine::set_up(Transfer& t) {
  const Request& request = t.request;
  const auto refuse = [](std::string message) {
    return std::unexpected(Failure{FailureKind::kSetup, std::move(message)});
  };
  if (!split_url(request.url)) return refuse("the URL is not an http:// or https:// URL with a host");
  const EnvironmentLookup environment = environment_of(request.env);
  auto proxy = proxy_for(request.url, environment);
  if (!proxy) return refuse(proxy.error().message);
  t.proxy = *std::move(proxy);

  bool has_content_type = false;
  const auto add_line = [&](const std::string& line) {
    curl_slist* longer = curl_.slist_append(t.header_lines, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    t.header_lines = longer;
  };
  for (const auto& [name, value] : request.headers) {
    if (name.empty() || name.find_first_of(": \t") != std::string::npos ||
        std::any_of(name.begin(), name.end(), breaks_line) || std::any_of(value.begin(), value.end(), breaks_line)) {
      return refuse("a request header has an invalid name, or a line break in its value");
    }
    has_content_type = has_content_type || lower(name) == "content-type";
    const std::string_view content = trimmed(value);
    add_line(content.empty() ? name + ";" : fmt::format("{}: {}", name, content));
  }
  if (!has_content_type) add_line("Content-Type:");  // libcurl would call it a form
  add_line("Expect:");                               // and would wait a second before sending a large body

  const auto set = [&](CURLoption option, auto value) { return curl_.easy_setopt(t.easy, option, value) == CURLE_OK; };
  bool ok = set(CURLOPT_URL, request.url.c_str()) && set(CURLOPT_PRIVATE, &t) &&
            set(CURLOPT_ERRORBUFFER, t.error_text.data()) && set(CURLOPT_HTTPHEADER, t.header_lines) &&
            set(CURLOPT_WRITEFUNCTION, &CurlEngine::on_body) && set(CURLOPT_WRITEDATA, &t) &&
            set(CURLOPT_HEADERFUNCTION, &CurlEngine::on_header) && set(CURLOPT_HEADERDATA, &t) &&
            set(CURLOPT_NOSIGNAL, 1L) && set(CURLOPT_CONNECTTIMEOUT_MS, kNoConnectLimit) &&
            set(CURLOPT_PROXY, t.proxy.c_str()) && set(CURLOPT_NOPROXY, "");
  if (!t.proxy.empty()) {
    ok = ok && set(CURLOPT_HTTPPROXYTUNNEL, 1L) && set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  }
  if (request.method == "HEAD") {
    ok = ok && set(CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET") {
    if (request.method == "POST" || !request.body.empty()) {
      ok = ok && set(CURLOPT_POST, 1L) && set(CURLOPT_POSTFIELDS, request.body.data()) &&
           set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    }
    ok = ok && set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  if (const std::string file = extra_certificates(environment); !file.empty()) {
    // The system's certificates stay trusted through the folder.
    ok = ok && set(CURLOPT_CAINFO, file.c_str()) && set(CURLOPT_PROXY_CAINFO, file.c_str());
    set(CURLOPT_CAPATH, "/etc/ssl/certs");
    set(CURLOPT_PROXY_CAPATH, "/etc/ssl/certs");
  }
  if (!ok) return refuse("the request cannot be set up");
  // HTTP/2 where TLS lets both sides agree on it: an old proxy or a local server must not meet an upgrade.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  // What a libcurl may lack without harm: compression, and leaving a name look-up behind when aborted (7.87).
  set(CURLOPT_ACCEPT_ENCODING, "");
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
  return {};
}

std::expected<void, Failure> CurlEngine::start(Transfer& t) {
  if (multi_ == nullptr) return std::unexpected(Failure{FailureKind::kConnection, "the HTTP client was closed"});
  t.easy = curl_.easy_init();
  if (t.easy == nullptr) throw std::bad_alloc();
  transfers_.insert(&t);
  const auto ready = set_up(t);
  if (!ready) {
    t.finished = true;
    remove(t);
    return ready;
  }
  const BrokenPipeGuard guard;
  if (curl_.multi_add_handle(multi_, t.easy) != CURLM_OK) {
    t.finished = true;
    remove(t);
    return std::unexpected(Failure{FailureKind::kSetup, "libcurl does not take the request"});
  }
  return {};
}

void CurlEngine::remove(Transfer& t) {
  if (transfers_.erase(&t) == 0) return;
  {
    const BrokenPipeGuard guard;
    curl_.multi_remove_handle(multi_, t.easy);
    curl_.easy_cleanup(t.easy);
  }
  t.easy = nullptr;
  curl_.slist_free_all(t.header_lines);
  t.header_lines = nullptr;
}

void CurlEngine::resume(Transfer& t) {
  if (!t.paused || t.easy == nullptr) return;
  t.paused = false;
  const BrokenPipeGuard guard;
  curl_.easy_pause(t.easy, CURLPAUSE_CONT);
}

bool CurlEngine::request_sent(const Transfer& t) const {
  double seconds = 0;
  if (t.easy != nullptr) curl_.easy_getinfo(t.easy, CURLINFO_PRETRANSFER_TIME, &seconds);
  return seconds > 0;
}

int CurlEngine::on_socket(CURL*, curl_socket_t fd, int what, void* data, void*) {
  auto* self = static_cast<CurlEngine*>(data);
  if (what == CURL_POLL_REMOVE) {
    self->forget(fd);
    return 0;
  }
  try {
    std::shared_ptr<Socket>& socket = self->sockets_[fd];
    if (!socket) socket = std::make_shared<Socket>(self->executor_, fd);
    socket->want_read = what == CURL_POLL_IN || what == CURL_POLL_INOUT;
    socket->want_write = what == CURL_POLL_OUT || what == CURL_POLL_INOUT;
    self->watch(socket);
  } catch (const std::exception&) {
    self->sockets_.erase(fd);
    return -1;  // out of memory or of epoll watches: libcurl fails the transfers
  }
  return 0;
}

int CurlEngine::on_timer(CURLM*, long milliseconds, void* data) {
  auto* self = static_cast<CurlEngine*>(data);
  if (milliseconds < 0) {
    self->timer_.cancel();
    return 0;
  }
  self->timer_.expires_after(std::chrono::milliseconds(milliseconds));
  self->timer_.async_wait([weak = self->weak_from_this()](const boost::system::error_code& ec) {
    if (ec) return;
    if (const auto engine = weak.lock()) engine->act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

void CurlEngine::forget(curl_socket_t fd) {
  const auto it = sockets_.find(fd);
  if (it == sockets_.end()) return;
  it->second->removed = true;
  it->second->descriptor.release();  // libcurl closes it; the waits end
  sockets_.erase(it);
}

void CurlEngine::watch(const std::shared_ptr<Socket>& socket) {
  using Descriptor = asio::posix::stream_descriptor;
  const auto wait = [&](Descriptor::wait_type type, bool Socket::* wants, bool Socket::* waits, int event) {
    if (!(*socket.*wants) || *socket.*waits) return;
    *socket.*waits = true;
    const auto fd = socket->descriptor.native_handle();
    socket->descriptor.async_wait(
        type, [weak = weak_from_this(), socket, fd, wants, waits, event](const boost::system::error_code& ec) {
          *socket.*waits = false;
          const auto engine = weak.lock();
          if (ec || socket->removed || !engine || engine->multi_ == nullptr) return;
          if (*socket.*wants) engine->act(fd, event);
          if (!socket->removed) engine->watch(socket);
        });
  };
  wait(Descriptor::wait_read, &Socket::want_read, &Socket::waits_read, CURL_CSELECT_IN);
  wait(Descriptor::wait_write, &Socket::want_write, &Socket::waits_write, CURL_CSELECT_OUT);
}

void CurlEngine::act(curl_socket_t fd, int events) {
  if (multi_ == nullptr) return;
  {
    const BrokenPipeGuard guard;
    int running = 0;
    curl_.multi_socket_action(multi_, fd, events, &running);
  }
  collect();
}

void CurlEngine::collect() {
  int left = 0;
  while (const CURLMsg* message = curl_.multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    void* data = nullptr;
    curl_.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &data);
    auto* transfer = static_cast<Transfer*>(data);
    if (code != CURLE_OK || !transfer->headers_complete) {
      transfer->fail(describe(code, *transfer));
    } else {
      transfer->finished = true;
      remove(*transfer);
      transfer->wake();
    }
  }
}

std::size_t CurlEngine::on_body(char* bytes, std::size_t size, std::size_t count, void* data) {
  auto* t = static_cast<Transfer*>(data);
  try {
    t->unread.append(bytes, size * count);
    if (!t->paused && t->unread.size() > kUnreadLimit) {
      // Here and not after multi_socket_action: one call of that can read a hundred buffers.
      t->paused = true;
      t->engine->curl_.easy_pause(t->easy, CURLPAUSE_RECV);
    }
  } catch (const std::bad_alloc&) {
    return 0;
  }
  t->wake();
  return size * count;
}

std::size_t CurlEngine::on_header(char* bytes, std::size_t size, std::size_t count, void* data) {
  auto* t = static_cast<Transfer*>(data);
  const std::size_t taken = size * count;
  if (t->headers_complete) return taken;  // trailers
  const std::string_view line(bytes, taken);
  try {
    if (line.starts_with("HTTP/")) {
      t->headers.clear();
      t->status = 0;
      const std::size_t space = std::min(line.find(' '), line.size());
      t->protocol = line.substr(0, space);
      const std::string_view rest = line.substr(space);
      const std::string_view words = trimmed(rest);
      std::from_chars(words.data(), words.data() + words.size(), t->status);
      t->reason = trimmed(words.substr(std::min<std::size_t>(3, words.size())));
    } else if (trimmed(line).empty()) {
      t->headers_complete = t->status >= 200;  // 100 and 103 come before the answer
      if (t->headers_complete) t->wake();
    } else if ((line.front() == ' ' || line.front() == '\t') && !t->headers.empty()) {
      t->headers.back().second += ' ';
      t->headers.back().second += trimmed(line);
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      t->headers.emplace_back(lower(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
    }
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return taken;
}

/// Why libcurl gave up, in our words: libcurl's own can hold the URL, and with it keys in its query.
Failure CurlEngine::describe(CURLcode code, const Transfer& t) const {
  const std::string host = host_and_port(t.request.url);
  const std::string via = t.proxy.empty() ? "" : fmt::format(" through the proxy {}", host_and_port(t.proxy));
  long system_error = 0;
  long connect_status = 0;
  curl_.easy_getinfo(t.easy, CURLINFO_OS_ERRNO, &system_error);
  curl_.easy_getinfo(t.easy, CURLINFO_HTTP_CONNECTCODE, &connect_status);
  const std::string why = system_error == 0 ? "" : fmt::format(": {}", std::strerror(static_cast<int>(system_error)));
  const auto connection = [](std::string message) { return Failure{FailureKind::kConnection, std::move(message)}; };
  const auto setup = [](std::string message) { return Failure{FailureKind::kSetup, std::move(message)}; };

  if (connect_status >= 400 && !t.headers_complete) {
    return connection(fmt::format("the proxy {} refused a connection to {} with status {}", host_and_port(t.proxy),
                                  host, connect_status));
  }
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return setup(fmt::format("the URL of {} is not valid", host));
    case CURLE_COULDNT_RESOLVE_HOST:
      return connection(fmt::format("no address found for {}", host));
    case CURLE_COULDNT_RESOLVE_PROXY:
      return connection(fmt::format("no address found for the proxy {}", host_and_port(t.proxy)));
    case CURLE_COULDNT_CONNECT:
      return connection(fmt::format("cannot connect to {}{}{}", host, via, why));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
      return setup(
          fmt::format("the certificate of {}{} is not trusted ({}); if it should be, name a file with its issuer in "
                      "NODE_EXTRA_CA_CERTS",
                      host, via, t.error_text[0] == '\0' ? curl_.easy_strerror(code) : t.error_text.data()));
    case CURLE_SSL_CACERT_BADFILE:
      return setup("the file of trusted certificates cannot be used");
    case CURLE_SSL_CONNECT_ERROR:
      return connection(fmt::format("no TLS connection to {}{}", host, via));
    case CURLE_BAD_CONTENT_ENCODING:
      return connection(fmt::format("the reply of {} cannot be decompressed", host));
    case CURLE_OUT_OF_MEMORY:
    case CURLE_WRITE_ERROR:
      return setup(fmt::format("not enough memory for the reply of {}", host));
    default:
      break;
  }
  if (t.headers_complete) {
    return connection(fmt::format("lost the connection to {} in the middle of the reply{}", host, why));
  }
  if (code == CURLE_OK || code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR) {
    return connection(fmt::format("{} closed the connection before it answered{}", host, why));
  }
  return connection(fmt::format("no answer from {}{}: {}", host, via, curl_.easy_strerror(code)));
}

}  // namespace tau::ai::http
