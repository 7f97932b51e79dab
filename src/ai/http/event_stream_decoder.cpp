#include "ai/http/event_stream_decoder.h"

#include <zlib.h>

#include <cstdint>

#include <fmt/format.h>

namespace tau::ai::http {

namespace {

constexpr std::size_t kPrelude = 12;  // the two lengths and their checksum
constexpr std::size_t kChecksum = 4;

std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = number << 8U | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

std::size_t u16_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])) << 8U |
         static_cast<unsigned char>(bytes[at + 1]);
}

std::uint32_t checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

/// Bytes of a value of this type, without its length; nothing for types with a length of their own and unknown ones.
std::optional<std::size_t> fixed_size(unsigned type) {
  constexpr std::size_t kSizes[] = {0, 0, 1, 2, 4, 8};  // true, false, byte, short, int, long
  if (type < std::size(kSizes)) return kSizes[type];
  if (type == 8) return 8;   // timestamp
  if (type == 9) return 16;  // UUID
  return std::nullopt;
}

/// False when the headers run over their end.
bool read_headers(std::string_view bytes, EventStreamMessage& message) {
  while (!bytes.empty()) {
    const std::size_t name_length = static_cast<unsigned char>(bytes[0]);
    if (bytes.size() < 2 + name_length) return false;
    std::string name(bytes.substr(1, name_length));
    const unsigned type = static_cast<unsigned char>(bytes[1 + name_length]);
    bytes.remove_prefix(2 + name_length);
    constexpr unsigned kBytes = 6;
    constexpr unsigned kString = 7;
    if (type == kBytes || type == kString) {
      if (bytes.size() < 2) return false;
      const std::size_t length = u16_at(bytes, 0);
      if (bytes.size() < 2 + length) return false;
      if (type == kString) message.headers.insert_or_assign(std::move(name), std::string(bytes.substr(2, length)));
      bytes.remove_prefix(2 + length);
      continue;
    }
    const auto size = fixed_size(type);
    if (!size || bytes.size() < *size) return false;
    bytes.remove_prefix(*size);
  }
  return true;
}

}  // namespace

std::string_view EventStreamMessage::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found != headers.end() ? std::string_view(found->second) : std::string_view();
}

EventStreamDecoder::EventStreamDecoder(std::size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

void EventStreamDecoder::push(std::string_view bytes) {
  if (position_ > 0 && position_ * 2 >= buffer_.size()) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  buffer_ += bytes;
}

std::optional<EventStreamMessage> EventStreamDecoder::next() {
  const std::string_view rest = std::string_view(buffer_).substr(position_);
  if (error_ || rest.size() < kPrelude) return std::nullopt;
  const std::size_t total = u32_at(rest, 0);
  const std::size_t headers = u32_at(rest, 4);
  if (u32_at(rest, 8) != checksum(rest.substr(0, 8))) {
    error_ = "the checksum of a message's beginning is wrong";
  } else if (total < kPrelude + kChecksum || headers > total - kPrelude - kChecksum) {
    error_ = "the lengths of a message do not fit";
  } else if (total > max_message_bytes_) {
    error_ = fmt::format("a message is larger than {} bytes", max_message_bytes_);
  }
  if (error_ || rest.size() < total) return std::nullopt;
  if (u32_at(rest, total - kChecksum) != checksum(rest.substr(0, total - kChecksum))) {
    error_ = "the checksum of a message is wrong";
    return std::nullopt;
  }
  EventStreamMessage message;
  if (!read_headers(rest.substr(kPrelude, headers), message)) {
    error_ = "the headers of a message do not fit";
    return std::nullopt;
  }
  message.payload = rest.substr(kPrelude + headers, total - kPrelude - headers - kChecksum);
  position_ += total;
  return message;
}

}  // namespace tau::ai::http
