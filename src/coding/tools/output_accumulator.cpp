#include "coding/tools/output_accumulator.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/utf8.h"

namespace tau::coding {

namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

OutputAccumulator::OutputAccumulator(std::filesystem::path folder, TruncationLimits limits)
    : folder_(std::move(folder)), limits_(limits) {}

OutputAccumulator::~OutputAccumulator() {
  if (file_ >= 0) ::close(file_);
}

void OutputAccumulator::add(std::string_view bytes) {
  raw_bytes_ += bytes.size();
  if (pending_.empty()) {
    const std::size_t whole = bytes.size() - utf8::incomplete_tail(bytes);
    add_text(bytes.substr(0, whole));
    pending_ = bytes.substr(whole);
  } else {
    std::string joined = std::move(pending_);
    joined += bytes;
    const std::size_t whole = joined.size() - utf8::incomplete_tail(joined);
    add_text(std::string_view(joined).substr(0, whole));
    pending_ = joined.substr(whole);
  }
  spill(bytes);
}

void OutputAccumulator::finish() {
  const std::string rest = std::exchange(pending_, {});
  if (!rest.empty()) add_text(rest);
  spill({});
}

void OutputAccumulator::add_text(std::string_view text) {
  if (text.empty()) return;
  if (std::exchange(at_start_, false) && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string repaired;
  if (!utf8::is_valid(text)) {
    repaired = utf8::replace_invalid(text);
    text = repaired;
  }
  total_bytes_ += text.size();
  line_ends_ += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t newline = text.rfind('\n');
  if (newline == std::string_view::npos) {
    last_line_bytes_ += text.size();
  } else if (newline + 1 < text.size()) {
    last_line_bytes_ = text.size() - newline - 1;
  } else {  // ends with a line end: the last line is the one before it
    const std::size_t before = newline == 0 ? std::string_view::npos : text.rfind('\n', newline - 1);
    last_line_bytes_ = before == std::string_view::npos ? last_line_bytes_ + newline : newline - before - 1;
  }
  // Of a large piece only its end can be shown.
  if (text.size() > 2 * limits_.max_bytes) {
    text = text.substr(text.size() - 2 * limits_.max_bytes);
    while (!text.empty() && is_continuation(text.front()))
      text.remove_prefix(1);
    tail_.clear();
    tail_is_all_ = false;
  }
  tail_ += text;
  if (tail_.size() > 4 * limits_.max_bytes) {
    std::size_t cut = tail_.size() - 2 * limits_.max_bytes;
    while (cut < tail_.size() && is_continuation(tail_[cut]))
      ++cut;
    tail_.erase(0, cut);
    tail_is_all_ = false;
  }
}

/// Once the output is longer than what is shown all of it goes to a file, from the first byte on.
void OutputAccumulator::spill(std::string_view bytes) {
  if (!file_path_) {
    unspilled_ += bytes;
    const bool long_enough = raw_bytes_ > limits_.max_bytes || total_bytes_ > limits_.max_bytes ||
                             line_ends_ > limits_.max_lines ||
                             (line_ends_ == limits_.max_lines && !tail_.empty() && tail_.back() != '\n');
    if (!long_enough) return;
    const std::filesystem::path path = folder_ / fmt::format("pi-bash-{}.log", random_hex(16));
    file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file_ < 0) return;  // no room for temporary files: the end of the output is shown all the same
    file_path_ = path;
    const std::string all = std::exchange(unspilled_, {});
    spill(all);
    return;
  }
  while (!bytes.empty() && file_ >= 0) {
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      ::close(std::exchange(file_, -1));
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

Truncation OutputAccumulator::snapshot() const {
  std::string_view shown = tail_;
  if (!tail_is_all_) {  // its first line may be a part of one
    const std::size_t newline = shown.find('\n');
    if (newline != std::string_view::npos && newline + 1 < shown.size()) shown.remove_prefix(newline + 1);
  }
  Truncation t = truncate_tail(shown, limits_);
  const std::size_t lines = total_bytes_ == 0 ? 0 : line_ends_ + (tail_.ends_with('\n') ? 0 : 1);
  if (!tail_is_all_ && !t.truncated) {
    t.truncated = true;
    t.truncated_by = "bytes";
  }
  if (t.truncated && lines > limits_.max_lines && t.output_lines == limits_.max_lines) t.truncated_by = "lines";
  t.total_lines = lines;
  t.total_bytes = total_bytes_;
  return t;
}

}  // namespace tau::coding
