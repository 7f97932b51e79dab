#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "ai/http/curl_engine.h"
#include "ai/http/http_client.h"
#include "ai/http/proxy.h"

namespace tau::ai::http {

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point deadline_after(std::chrono::milliseconds limit) {
  return limit.count() <= 0 ? Clock::time_point::max() : Clock::now() + limit;
}

/// "2 s", "1.5 s", "250 ms"
std::string duration_text(std::chrono::milliseconds time) {
  if (time.count() < 1000) return fmt::format("{} ms", time.count());
  return fmt::format("{:.12g} s", static_cast<double>(time.count()) / 1000);
}

Failure aborted() {
  return {FailureKind::kAborted, "Request was aborted"};
}

class CurlResponse final : public Response {
 public:
  explicit CurlResponse(std::shared_ptr<Transfer> transfer) : transfer_(std::move(transfer)) {
    status = transfer_->status;
    protocol = transfer_->protocol;
    reason = transfer_->reason;
    headers = transfer_->headers;
  }

  asio::awaitable<std::expected<std::optional<std::string_view>, Failure>> read() override {
    Transfer& t = *transfer_;
    if (t.stop.stop_requested()) {
      t.fail(aborted());
      co_return std::unexpected(aborted());
    }
    if (t.unread.empty() && !t.finished) {
      const std::chrono::milliseconds limit = t.request.idle_timeout;
      const auto ready = [&t] { return !t.unread.empty() || t.finished; };
      const bool in_time = co_await t.wait(ready, deadline_after(limit));
      if (!in_time) {  // FF-47
        t.fail({FailureKind::kTimeout, fmt::format("{} sent nothing for {} in the middle of the reply",
                                                   host_and_port(t.request.url), duration_text(limit))});
      }
    }
    if (t.failure && t.failure->kind == FailureKind::kAborted) co_return std::unexpected(*t.failure);
    if (!t.unread.empty()) {
      piece_.clear();
      piece_.swap(t.unread);
      t.engine->resume(t);
      co_return std::string_view(piece_);
    }
    if (t.failure) co_return std::unexpected(*t.failure);
    co_return std::nullopt;
  }

  asio::awaitable<void> drain(std::chrono::milliseconds limit) override {
    Transfer& t = *transfer_;
    const Clock::time_point deadline = Clock::now() + limit;
    while (!t.finished) {
      t.unread.clear();
      t.engine->resume(t);
      const bool more = co_await t.wait([&t] { return !t.unread.empty() || t.finished; }, deadline);
      if (!more) co_return;
    }
  }

 private:
  std::shared_ptr<Transfer> transfer_;
  std::string piece_;
};

class CurlClient final : public Client {
 public:
  explicit CurlClient(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  ~CurlClient() override {
    if (engine_) engine_->close();
  }
  CurlClient(const CurlClient&) = delete;
  CurlClient& operator=(const CurlClient&) = delete;

  asio::awaitable<std::expected<std::unique_ptr<Response>, Failure>> send(Request request,
                                                                          std::stop_token stop) override {
    if (stop.stop_requested()) co_return std::unexpected(aborted());
    if (!engine_) {
      const auto library = curl_library();
      if (!library) co_return std::unexpected(Failure{FailureKind::kSetup, library.error().message});
      engine_ = std::make_shared<CurlEngine>(**library, executor_);
    }
    const auto transfer = std::make_shared<Transfer>(engine_, std::move(request));
    const auto started = engine_->start(*transfer);
    if (!started) co_return std::unexpected(started.error());
    transfer->stop = stop;
    // The stop may be requested on any thread, and while libcurl is at work on this one.
    transfer->on_stop.emplace(std::move(stop), [weak = std::weak_ptr(transfer), executor = executor_] {
      asio::post(executor, [weak] {
        if (const auto t = weak.lock()) t->fail(aborted());
      });
    });

    Transfer& t = *transfer;
    const std::chrono::milliseconds limit = t.request.header_timeout;
    const bool in_time = co_await t.wait([&t] { return t.headers_complete || t.finished; }, deadline_after(limit));
    if (t.stop.stop_requested()) t.fail(aborted());
    if (!in_time) {  // FF-47
      const std::string host = host_and_port(t.request.url);
      const std::string time = duration_text(limit);
      t.fail({FailureKind::kTimeout, t.engine->request_sent(t)
                                         ? fmt::format("no response headers from {} within {}", host, time)
                                         : fmt::format("no connection to {} within {}", host, time)});
    }
    if (t.failure && (!t.headers_complete || t.failure->kind == FailureKind::kAborted)) {
      co_return std::unexpected(*t.failure);
    }
    co_return std::make_unique<CurlResponse>(transfer);
  }

 private:
  asio::any_io_executor executor_;
  std::shared_ptr<CurlEngine> engine_;  // made by the first request
};

}  // namespace

std::unique_ptr<Client> make_client(asio::any_io_executor executor) {
  return std::make_unique<CurlClient>(std::move(executor));
}

}  // namespace tau::ai::http
