// Wall-clock time as our files write it, and identifiers made from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tau {

/// Unix time in milliseconds.
std::int64_t now_milliseconds();

/// "2026-02-03T09:00:00.000Z" (JavaScript's Date.toISOString).
std::string iso_time(std::int64_t unix_milliseconds);

/// Reads ISO-8601 with a zone ("Z" or an offset), or a date alone; nothing when it is neither.
std::optional<std::int64_t> parse_iso_time(std::string_view text);

/// A time-ordered UUID, version 7: ids made by one process never go backwards (AI-46, SES-10).
std::string uuid_v7();
/// A random UUID, version 4.
std::string uuid_v4();
/// `count` random lower-case hexadecimal digits.
std::string random_hex(int count);

}  // namespace tau
