#include "ai/provider_call.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "ai/http/retry.h"
#include "ai/surrogates.h"
#include "base/clock.h"
#include "base/printable.h"

namespace tau::ai {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kErrorBodyLimit = std::size_t{64} << 10;
constexpr std::string_view kAbortedText = "Request was aborted";
// After the reply's last event the end of the body is on its way; waiting for it keeps the connection (HTTP/1.1).
constexpr milliseconds kDrainLimit{20};

/// Texts of this call that must never be shown: its key, and the values of headers that hold keys or come from the
/// user's configuration (FF-108).
class Secrets {
 public:
  Secrets(const http::Request& request, const Model& model, const StreamOptions& options) {
    if (options.api_key) add(*options.api_key);
    for (const auto& [name, value] : request.headers) {
      if (holds_key(name)) add(value);
    }
    for (const Headers* headers : {&model.headers, &options.headers}) {
      for (const auto& [name, value] : *headers) {
        if (value) add(*value);
      }
    }
    // The longest first, so that a key inside a longer one does not leave the rest behind.
    std::sort(texts_.begin(), texts_.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  }

  /// Safe to show and to store.
  std::string masked(std::string text) const {
    for (const std::string& secret : texts_) {
      for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
        text.replace(at, secret.size(), "***");
      }
    }
    return printable(text);
  }

 private:
  static bool holds_key(std::string_view name) {
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    for (const std::string_view word : {"auth", "key", "token", "secret", "cookie"}) {
      if (lower.find(word) != std::string::npos) return true;
    }
    return false;
  }

  void add(std::string_view value) {
    if (const std::size_t blank = value.find(' '); value.starts_with("Bearer ") || value.starts_with("Basic ")) {
      value.remove_prefix(blank + 1);
    }
    // Shorter texts are no keys, and would be found inside ordinary words.
    if (value.size() >= 6) texts_.emplace_back(value);
  }

  std::vector<std::string> texts_;
};

struct Ending {
  StopReason reason = StopReason::kError;
  std::string text;
  std::function<void(AssistantMessage& message)> describe = {};  // may be empty
};

Ending ending_of(const http::Failure& failure) {  // AI-94
  switch (failure.kind) {
    case http::FailureKind::kAborted:
      return {StopReason::kAborted, std::string(kAbortedText)};
    case http::FailureKind::kTimeout:
      return {StopReason::kError, "Request timed out: " + failure.message};
    case http::FailureKind::kConnection:
      return {StopReason::kError, "Connection error: " + failure.message};
    case http::FailureKind::kSetup:
      return {StopReason::kError, "Cannot make the request: " + failure.message};
  }
  std::unreachable();
}

Ending aborted() {
  return {StopReason::kAborted, std::string(kAbortedText)};
}

/// False when the stop was requested before the time was over.
asio::awaitable<bool> sleep(milliseconds time, std::stop_token stop) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto timer = std::make_shared<asio::steady_timer>(executor, time);
  const std::stop_callback on_stop(stop, [executor, weak = std::weak_ptr(timer)] {
    asio::post(executor, [weak] {
      if (const auto waiting = weak.lock()) waiting->cancel();
    });
  });
  boost::system::error_code ignored;
  co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  co_return !stop.stop_requested();
}

double jitter() {
  thread_local std::minstd_rand engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.75, 1.0)(engine);
}

/// What there is of the body of an HTTP error.
asio::awaitable<std::string> error_body(http::Response& response) {
  std::string body;
  while (body.size() < kErrorBodyLimit) {
    const auto piece = co_await response.read();
    if (!piece || !*piece) break;
    body += (*piece)->substr(0, kErrorBodyLimit - body.size());
  }
  co_return body;
}

long long whole_seconds(milliseconds time) {
  return static_cast<long long>(std::ceil(static_cast<double>(time.count()) / 1000));
}

/// Sends until there is a 2xx answer, or until there is no point in trying (AI-91).
asio::awaitable<std::expected<std::unique_ptr<http::Response>, Ending>> open_stream(http::Client& client,
                                                                                    ProviderCall& call,
                                                                                    const StreamOptions& options,
                                                                                    std::stop_token stop) {
  for (int retry = 0;; ++retry) {
    const bool last = retry >= options.max_retries;
    http::Request request = last ? std::move(call.request) : call.request;
    auto sent = co_await client.send(std::move(request), stop);
    if (stop.stop_requested()) co_return std::unexpected(aborted());

    Ending failed;
    bool again = false;
    std::optional<milliseconds> delay;
    if (!sent) {
      failed = ending_of(sent.error());
      again = http::is_retryable(sent.error().kind);
    } else {
      http::Response& response = **sent;
      if (response.status >= 200 && response.status < 300) co_return std::move(*sent);
      const std::string body = co_await error_body(response);
      if (stop.stop_requested()) co_return std::unexpected(aborted());
      failed.text = call.error_text(response.status, response.reason, response.headers, body);
      if (call.describe_error) {
        failed.describe = [&call, status = response.status, reason = response.reason, headers = response.headers,
                           body](AssistantMessage& message) {
          call.describe_error(message, status, reason, headers, body);
        };
      }
      again = http::is_retryable(response.status, response.headers, body);
      delay = http::requested_delay(response.headers, now_milliseconds());
    }
    if (last || !again) co_return std::unexpected(std::move(failed));

    const milliseconds cap = options.max_retry_delay;
    if (delay && cap.count() > 0 && *delay > cap) {
      failed.text = fmt::format("Server requested {}s retry delay (max: {}s). {}", whole_seconds(*delay),
                                whole_seconds(cap), failed.text);
      co_return std::unexpected(std::move(failed));
    }
    sent = std::unexpected(http::Failure{});  // the connection is free during the wait
    const bool rested = co_await sleep(delay.value_or(http::backoff(retry, jitter())), stop);
    if (!rested) co_return std::unexpected(aborted());  // FF-50
  }
}

/// A stream of one event.
asio::awaitable<AssistantMessage> end_without_stream(AssistantMessage initial, Ending ending, EventSink sink) {
  MessageAssembler assembler(std::move(initial));
  assembler.fail(ending.reason, std::move(ending.text));
  while (std::optional<StreamEvent> event = assembler.next()) {
    std::optional<asio::awaitable<void>> wait = sink(*event);
    if (wait) co_await std::move(*wait);
  }
  co_return std::move(assembler.message());
}

std::optional<StreamEvent> next_event(StreamDecoder& decoder, const Secrets& secrets) {
  const auto masked = [&](std::optional<StreamEvent> event) {
    // A server may repeat the key in an error inside the stream.
    if (event && std::holds_alternative<StreamError>(event->what)) {
      std::optional<std::string>& text = decoder.message().error_message;
      if (text) text = secrets.masked(*std::move(text));
    }
    return event;
  };
  try {
    return masked(decoder.next());
  } catch (const std::exception& e) {
    decoder.fail(StopReason::kError, secrets.masked(e.what()));
  }
  return masked(decoder.next());
}

/// Gives the decoder what was read; true when nothing follows.
bool feed(StreamDecoder& decoder, const std::expected<std::optional<std::string_view>, http::Failure>& piece,
          const Secrets& secrets) {
  try {
    if (!piece) {
      Ending ending = ending_of(piece.error());
      if (ending.reason == StopReason::kAborted) {
        decoder.abort_now(std::move(ending.text));
      } else {
        decoder.fail(ending.reason, secrets.masked(std::move(ending.text)));
      }
      return true;
    }
    if (!*piece) {
      decoder.end_of_body();
      return true;
    }
    decoder.push(**piece);
    return false;
  } catch (const std::exception& e) {
    decoder.fail(StopReason::kError, secrets.masked(e.what()));
    return true;
  }
}

}  // namespace

asio::awaitable<AssistantMessage> run_provider_call(http::Client& client, ProviderCall call, Model model,
                                                    StreamOptions options, EventSink sink, std::stop_token stop) {
  call.request.header_timeout = options.header_timeout;
  call.request.idle_timeout = options.idle_timeout;
  call.request.env = options.env;
  const Secrets secrets(call.request, model, options);

  auto opened = co_await open_stream(client, call, options, stop);
  StreamDecoder& decoder = *call.decoder;
  if (!opened) {
    Ending ending = std::move(opened.error());
    ending.text = secrets.masked(std::move(ending.text));
    AssistantMessage initial = decoder.take();
    if (ending.describe) ending.describe(initial);
    AssistantMessage failed = co_await end_without_stream(std::move(initial), std::move(ending), std::move(sink));
    co_return failed;
  }
  http::Response& response = **opened;
  if (call.on_headers) call.on_headers(decoder, response.headers);
  if (options.on_response) options.on_response({response.status, response.headers}, model);

  bool over = false;
  bool given_up = false;
  while (true) {
    while (true) {
      // Also between the last byte and `done` (AI-29): what is queued is dropped, what was handed out stays.
      if (stop.stop_requested()) decoder.abort_now(std::string(kAbortedText));
      std::optional<StreamEvent> event = next_event(decoder, secrets);
      if (!event) break;
      std::optional<asio::awaitable<void>> wait = sink(*event);
      if (wait) co_await std::move(*wait);
    }
    if (decoder.settled() || given_up) break;
    if (over) {
      given_up = true;
      decoder.fail(StopReason::kError, "Connection error: the reply ended without its last event");
      continue;
    }
    const auto piece = co_await response.read();
    over = feed(decoder, piece, secrets);
  }
  AssistantMessage message = decoder.take();
  if (!over && message.stop_reason != StopReason::kAborted) co_await response.drain(kDrainLimit);
  co_return message;
}

// Not a coroutine: the request is made at once. The parameters are those of every ApiFunction.
// NOLINTBEGIN(performance-unnecessary-value-param)
asio::awaitable<AssistantMessage> call_provider(http::Client& client, PrepareCall prepare, Model model, Context context,
                                                StreamOptions options, EventSink sink, std::stop_token stop) {
  // NOLINTEND(performance-unnecessary-value-param)
  std::string failed;
  try {
    auto call = prepare(model, context, options);
    if (call) {
      return run_provider_call(client, *std::move(call), std::move(model), std::move(options), std::move(sink),
                               std::move(stop));
    }
    failed = std::move(call.error());
  } catch (const std::exception& e) {
    failed = e.what();
  }
  return fail_call(std::move(model), std::move(failed), std::move(sink));
}

std::string join_url(std::string_view base, std::string_view path) {
  while (base.ends_with('/'))
    base.remove_suffix(1);
  return std::string(base).append(path);
}

http::HeaderList present_headers(Headers headers) {
  http::HeaderList out;
  for (auto& [name, text] : headers) {
    if (text) out.emplace_back(std::move(name), *std::move(text));
  }
  return out;
}

void replace_payload(json::object& body, const Model& model, const StreamOptions& options) {
  if (!options.on_payload) return;
  auto replaced = options.on_payload(body, model);
  if (!replaced) return;
  json::value whole = *std::move(replaced);
  remove_lone_surrogates(whole);
  body = std::move(whole.get_object());
}

asio::awaitable<AssistantMessage> fail_call(Model model, std::string error_message, EventSink sink) {
  AssistantMessage initial = empty_reply(model);
  Ending ending{StopReason::kError, std::move(error_message)};
  AssistantMessage message = co_await end_without_stream(std::move(initial), std::move(ending), std::move(sink));
  co_return message;
}

}  // namespace tau::ai
