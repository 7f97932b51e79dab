#include "ai/http/sse_decoder.h"

#include <algorithm>
#include <cstring>

namespace tau::ai::http {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::size_t find_byte(std::string_view text, std::size_t from, char byte) {
  if (from >= text.size()) return text.size();
  const void* hit = std::memchr(text.data() + from, byte, text.size() - from);
  if (hit == nullptr) return text.size();
  return static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
}

}  // namespace

SseDecoder::SseDecoder(std::size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

void SseDecoder::push(std::string_view bytes) {
  input_ = bytes;
  position_ = 0;
  if (skip_line_feed_ && !input_.empty()) {
    if (input_.front() == '\n') position_ = 1;
    skip_line_feed_ = false;
  }
  line_feed_ = find_byte(input_, position_, '\n');
  carriage_return_ = find_byte(input_, position_, '\r');
}

void SseDecoder::finish() {
  finished_ = true;
}

std::optional<std::string_view> SseDecoder::take_line() {
  if (position_ >= input_.size()) return std::nullopt;
  const std::size_t end = std::min(line_feed_, carriage_return_);
  std::string_view line = input_.substr(position_, end - position_);
  if (end == input_.size()) {
    partial_line_ += line;
    position_ = end;
    if (frame_bytes_ + partial_line_.size() > max_frame_bytes_) overflowed_ = true;
    return std::nullopt;
  }
  position_ = end + 1;
  if (end == carriage_return_) {
    if (position_ == input_.size()) {
      skip_line_feed_ = true;
    } else if (input_[position_] == '\n') {
      ++position_;
    }
    carriage_return_ = find_byte(input_, position_, '\r');
  }
  // A position is looked for again only when it has been passed: with CR line ends, looking for the next LF in each
  // line would make the scan quadratic.
  if (line_feed_ < position_) line_feed_ = find_byte(input_, position_, '\n');

  if (!partial_line_.empty()) {
    partial_line_ += line;
    joined_line_.swap(partial_line_);
    partial_line_.clear();
    line = joined_line_;
  }
  if (frame_bytes_ + line.size() > max_frame_bytes_) {
    overflowed_ = true;
    return std::nullopt;
  }
  if (first_line_) {
    first_line_ = false;
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  }
  return line;
}

void SseDecoder::add_data(std::string_view value) {
  if (!has_data_) {
    has_data_ = true;
    data_ = value;
    return;
  }
  if (!data_stored_) {
    data_store_.assign(data_);
    data_stored_ = true;
  }
  data_store_ += '\n';
  data_store_ += value;
  data_ = data_store_;
}

void SseDecoder::handle_field(std::string_view line) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  const bool is_data = name == "data";
  if (!is_data && name != "event") return;  // a comment has an empty name
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  frame_bytes_ += line.size();
  if (is_data) {
    add_data(value);
  } else {
    event_ = value;
  }
}

void SseDecoder::start_frame() {
  event_ = {};
  data_ = {};
  has_data_ = false;
  data_stored_ = false;
  frame_bytes_ = 0;
}

/// The piece is used up: what the pending frame still needs of it is copied.
void SseDecoder::keep_pending() {
  if (!event_.empty() && event_.data() != event_store_.data()) {
    event_store_.assign(event_);
    event_ = event_store_;
  }
  if (has_data_ && !data_stored_) {
    data_store_.assign(data_);
    data_ = data_store_;
    data_stored_ = true;
  }
}

std::optional<SseFrame> SseDecoder::next() {
  while (!overflowed_) {
    const std::optional<std::string_view> line = take_line();
    if (!line) break;
    if (!line->empty()) {
      handle_field(*line);
      continue;
    }
    const bool complete = has_data_;
    const SseFrame frame{event_, data_};
    start_frame();
    if (complete) return frame;
  }
  if (overflowed_) return std::nullopt;
  keep_pending();
  if (finished_ && has_data_) {
    const SseFrame frame{event_, data_};
    start_frame();
    return frame;
  }
  return std::nullopt;
}

}  // namespace tau::ai::http
