#include "ai/http/retry.h"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "ai/error_classification.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace tau::ai::http {

namespace {

// Keeps an absurd wait inside the range of the clock: 30 years.
constexpr double kLongestDelay = 1e12;

std::optional<std::string_view> find(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return utf8::trim(value);
  }
  return std::nullopt;
}

std::optional<double> number(std::string_view text) {
  double n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(n)) return std::nullopt;
  return n;
}

/// "Wed, 21 Oct 2026 07:28:00 GMT" or ISO 8601, as Unix time in milliseconds.
std::optional<std::int64_t> date(std::string_view text) {
  const std::string copy(text);
  tm parts{};
  const char* end = ::strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end != nullptr && *end == '\0') return static_cast<std::int64_t>(::timegm(&parts)) * 1000;
  return parse_iso_time(text);
}

}  // namespace

bool is_retryable(int status, const HeaderList& headers, std::string_view body) {
  if (const auto wish = find(headers, "x-should-retry")) {
    if (*wish == "true") return true;
    if (*wish == "false") return false;
  }
  if (status != 408 && status != 409 && status != 429 && status < 500) return false;
  return !is_quota_text(body);
}

bool is_retryable(FailureKind kind) {
  return kind == FailureKind::kConnection || kind == FailureKind::kTimeout;
}

std::optional<std::chrono::milliseconds> requested_delay(const HeaderList& headers, std::int64_t now) {
  std::optional<double> delay;
  if (const auto text = find(headers, "retry-after-ms")) delay = number(*text);
  if (!delay) {
    const auto text = find(headers, "retry-after");
    if (!text) return std::nullopt;
    if (const auto seconds = number(*text)) {
      delay = *seconds * 1000;
    } else if (const auto time = date(*text)) {
      delay = static_cast<double>(*time - now);
    }
  }
  if (!delay || *delay <= 0) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(std::min(*delay, kLongestDelay))));
}

std::chrono::milliseconds backoff(int retry, double factor) {
  const double seconds = std::min(0.5 * std::pow(2.0, retry), 8.0) * factor;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::max(seconds, 0.5) * 1000));
}

}  // namespace tau::ai::http
