// Incremental decoder of Amazon's binary event streams (application/vnd.amazon.eventstream, AI-226).
//
//   u32 total length | u32 length of the headers | u32 CRC-32 of the eight bytes before
//   headers: u8 length of the name, name, u8 type, value     payload     u32 CRC-32 of everything before
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tau::ai::http {

struct EventStreamMessage {
  std::map<std::string, std::string, std::less<>> headers;  // those whose value is a string
  std::string payload;

  /// Empty when the header is missing.
  std::string_view header(std::string_view name) const;
};

class EventStreamDecoder {
 public:
  explicit EventStreamDecoder(std::size_t max_message_bytes = std::size_t{64} << 20);

  /// The bytes are copied.
  void push(std::string_view bytes);
  /// The next whole message; nothing when more bytes are needed or after an error.
  std::optional<EventStreamMessage> next();
  /// What is wrong with the stream: a checksum, a length. Nothing more comes then.
  const std::optional<std::string>& error() const { return error_; }
  /// Bytes of a message that is not complete.
  bool has_rest() const { return position_ < buffer_.size(); }

 private:
  std::size_t max_message_bytes_;
  std::string buffer_;
  std::size_t position_ = 0;
  std::optional<std::string> error_;
};

}  // namespace tau::ai::http
