#include "base/clock.h"

#include <errno.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <span>
#include <system_error>

#include <fmt/format.h>

namespace tau {

namespace {

constexpr std::int64_t kMillisecondsPerDay = 86'400'000;
/// What JavaScript's Date can hold: 100,000,000 days around 1970.
constexpr std::int64_t kLargestTime = 100'000'000 * kMillisecondsPerDay;

struct Date {
  std::int64_t year;
  int month;  // 1 to 12
  int day;    // 1 to 31
};

// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": std::chrono's years end at 32767, JavaScript's do not.
Date date_of(std::int64_t days) {
  days += 719'468;
  const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const std::int64_t day_of_era = days - era * 146'097;
  const std::int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted_month = (5 * day_of_year + 2) / 153;
  const int month = static_cast<int>(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
  const int day = static_cast<int>(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

std::int64_t days_of(const Date& date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (date.month > 2 ? date.month - 3 : date.month + 9) + 2) / 5 + date.day - 1;
  const std::int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

/// Takes pieces of a time text from the left.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }

  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// Exactly `count` digits.
  bool digits(std::size_t count, std::int64_t& out) {
    if (rest_.size() < count) return false;
    std::int64_t number = 0;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return false;
      number = number * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    out = number;
    return true;
  }

  /// One or more digits of a fraction of a second, as whole milliseconds.
  bool fraction(std::int64_t& milliseconds) {
    std::int64_t weight = 100;
    milliseconds = 0;
    std::size_t count = 0;
    for (; count < rest_.size() && rest_[count] >= '0' && rest_[count] <= '9'; ++count) {
      milliseconds += (rest_[count] - '0') * weight;
      weight /= 10;
    }
    rest_.remove_prefix(count);
    return count > 0;
  }

 private:
  std::string_view rest_;
};

void fill_random(std::span<unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category(), "cannot get random bytes from the kernel");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::uint64_t random_bits() {
  std::array<unsigned char, 8> bytes{};
  fill_random(bytes);
  std::uint64_t bits = 0;
  for (const unsigned char byte : bytes)
    bits = (bits << 8) | byte;
  return bits;
}

std::string uuid_text(std::uint64_t high, std::uint64_t low) {
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xFFFF, high & 0xFFFF, low >> 48,
                     low & 0xFFFF'FFFF'FFFF);
}

constexpr std::uint64_t kVariant = std::uint64_t{0b10} << 62;

}  // namespace

std::int64_t now_milliseconds() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  return duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string iso_time(std::int64_t unix_milliseconds) {
  std::int64_t days = unix_milliseconds / kMillisecondsPerDay;
  std::int64_t rest = unix_milliseconds % kMillisecondsPerDay;
  if (rest < 0) {
    rest += kMillisecondsPerDay;
    --days;
  }
  const Date date = date_of(days);
  const std::string year = date.year >= 0 && date.year <= 9999
                               ? fmt::format("{:04}", date.year)
                               : fmt::format("{}{:06}", date.year < 0 ? '-' : '+', std::abs(date.year));
  return fmt::format("{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", year, date.month, date.day, rest / 3'600'000,
                     rest / 60'000 % 60, rest / 1000 % 60, rest % 1000);
}

std::optional<std::int64_t> parse_iso_time(std::string_view text) {
  TimeReader in(text);
  std::int64_t year = 0;
  std::int64_t month = 0;
  std::int64_t day = 0;
  const bool negative = in.take('-');
  const bool expanded = negative || in.take('+');
  if (!in.digits(expanded ? 6 : 4, year) || !in.take('-') || !in.digits(2, month) || !in.take('-') ||
      !in.digits(2, day)) {
    return std::nullopt;
  }
  if (negative && year == 0) return std::nullopt;  // ISO-8601 has no year -0
  const Date date{negative ? -year : year, static_cast<int>(month), static_cast<int>(day)};
  if (month < 1 || month > 12 || day < 1) return std::nullopt;
  const std::int64_t days = days_of(date);
  // A day that the month does not have comes back as another date.
  if (const Date back = date_of(days); back.month != date.month || back.day != date.day) return std::nullopt;

  std::int64_t time = days * kMillisecondsPerDay;
  if (!in.at_end()) {
    std::int64_t hour = 0;
    std::int64_t minute = 0;
    std::int64_t second = 0;
    std::int64_t millisecond = 0;
    if (!in.take('T') && !in.take('t') && !in.take(' ')) return std::nullopt;
    if (!in.digits(2, hour) || !in.take(':') || !in.digits(2, minute)) return std::nullopt;
    if (in.take(':')) {
      if (!in.digits(2, second)) return std::nullopt;
      if ((in.take('.') || in.take(',')) && !in.fraction(millisecond)) return std::nullopt;
    }
    const bool midnight_at_the_end = hour == 24 && minute == 0 && second == 0 && millisecond == 0;
    if ((hour > 23 && !midnight_at_the_end) || minute > 59 || second > 59) return std::nullopt;
    time += ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
    if (!in.take('Z') && !in.take('z')) {
      const bool west = in.take('-');
      if (!west && !in.take('+')) return std::nullopt;
      std::int64_t offset_hours = 0;
      std::int64_t offset_minutes = 0;
      if (!in.digits(2, offset_hours)) return std::nullopt;
      in.take(':');
      if (!in.at_end() && !in.digits(2, offset_minutes)) return std::nullopt;
      if (offset_hours > 23 || offset_minutes > 59) return std::nullopt;
      const std::int64_t offset = (offset_hours * 60 + offset_minutes) * 60'000;
      time += west ? offset : -offset;
    }
    if (!in.at_end()) return std::nullopt;
  }
  if (time < -kLargestTime || time > kLargestTime) return std::nullopt;
  return time;
}

std::string uuid_v7() {
  // 48 bits of time that never goes back, then 41 bits of a counter, then 33 random bits. The counter starts at 40
  // random bits, so that it does not overflow in the life of a process and ids of two processes do not collide.
  constexpr std::uint64_t kCounterSeed = (std::uint64_t{1} << 40) - 1;
  constexpr std::uint64_t kRandomTail = (std::uint64_t{1} << 33) - 1;
  static std::mutex mutex;
  static std::int64_t latest = 0;
  static std::uint64_t counter = random_bits() & kCounterSeed;

  const std::uint64_t tail = random_bits() & kRandomTail;
  const std::lock_guard lock(mutex);
  latest = std::max(latest, now_milliseconds());
  ++counter;
  const std::uint64_t counter_high = (counter >> 29) & 0xFFF;
  const std::uint64_t counter_low = counter & 0x1FFF'FFFF;
  return uuid_text((static_cast<std::uint64_t>(latest) << 16) | 0x7000 | counter_high,
                   kVariant | (counter_low << 33) | tail);
}

std::string uuid_v4() {
  const std::uint64_t high = (random_bits() & ~std::uint64_t{0xF000}) | 0x4000;
  const std::uint64_t low = (random_bits() >> 2) | kVariant;
  return uuid_text(high, low);
}

std::string random_hex(int count) {
  std::string out;
  out.reserve(static_cast<std::size_t>(count) + 15);
  while (out.size() < static_cast<std::size_t>(count))
    fmt::format_to(std::back_inserter(out), "{:016x}", random_bits());
  out.resize(static_cast<std::size_t>(count));
  return out;
}

}  // namespace tau
