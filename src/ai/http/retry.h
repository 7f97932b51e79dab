// When a request is sent again, and how long to wait before (AI-91, FF-44, FF-49). Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ai/http/http_client.h"

namespace tau::ai::http {

/// Whether an answer with this status may be followed by another try: x-should-retry decides, else 408, 409, 429 and
/// everything from 500 on. A used-up quota or budget is not retried, whatever the status (FF-44).
bool is_retryable(int status, const HeaderList& headers, std::string_view body);

/// Whether another try can help: not after an abort, nor with a request that cannot be made.
bool is_retryable(FailureKind kind);

/// The wait that the server asks for: retry-after-ms, else retry-after in seconds or as a date. Nothing when there is
/// none, when it cannot be read, or when it lies in the past. `now` is Unix time in milliseconds.
std::optional<std::chrono::milliseconds> requested_delay(const HeaderList& headers, std::int64_t now);

/// The wait before retry number `retry` (from 0): min(0.5 s * 2^retry, 8 s) times `factor` (0.75 to 1, random), and
/// never less than 0.5 s (FF-49).
std::chrono::milliseconds backoff(int retry, double factor);

}  // namespace tau::ai::http
