// Incremental decoder of server-sent events (AI-90, AI-115, FF-45, FF-53).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tau::ai::http {

struct SseFrame {
  std::string_view event;  // empty when the stream named none
  std::string_view data;   // data lines joined with '\n'
};

/// Any split of the bytes gives the same frames: line ends are LF, CRLF and CR, also split; a byte-order mark at the
/// start is skipped; comments and unknown fields are ignored. A frame without data is skipped.
///
/// Costs one scan of the bytes: a frame that lies whole in the pushed piece is handed out as views into it.
class SseDecoder {
 public:
  /// A larger frame is an error: `overflowed` becomes true and no more frames come.
  explicit SseDecoder(std::size_t max_frame_bytes = std::size_t{64} << 20);

  /// `bytes` must stay valid until `next` has returned nothing.
  void push(std::string_view bytes);
  /// The stream is over: a pending frame with complete data lines is handed out by `next`, an incomplete last line is
  /// not part of it.
  void finish();
  /// The next frame; its views are valid until the next call.
  std::optional<SseFrame> next();
  bool overflowed() const { return overflowed_; }

 private:
  std::size_t max_frame_bytes_;
  bool overflowed_ = false;
};

}  // namespace tau::ai::http
