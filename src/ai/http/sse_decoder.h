// Incremental decoder of server-sent events (AI-90, AI-115, FF-45, FF-53).
//
// A stream of 67 MB is half a million frames. Each byte is looked at by two memchr calls (one for LF, one for CR) and a
// frame that lies whole in the pushed piece is handed out as views into it; only a frame that two pieces share is
// copied.
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
/// start is skipped; comments and unknown fields are ignored. A frame without data lines is skipped.
class SseDecoder {
 public:
  /// A frame with more bytes (or one line with more) is an error: `overflowed` becomes true and no more frames come.
  explicit SseDecoder(std::size_t max_frame_bytes = std::size_t{64} << 20);
  SseDecoder(const SseDecoder&) = delete;
  SseDecoder& operator=(const SseDecoder&) = delete;

  /// `bytes` must stay valid until `next` has returned nothing; that must have happened before the next push.
  void push(std::string_view bytes);
  /// The stream is over: a pending frame with complete data lines is handed out by `next`, an incomplete last line is
  /// not part of it (FF-45).
  void finish();
  /// The next frame; its views are valid until the next call.
  std::optional<SseFrame> next();
  bool overflowed() const { return overflowed_; }

 private:
  std::optional<std::string_view> take_line();
  void handle_field(std::string_view line);
  void add_data(std::string_view value);
  void keep_pending();
  void start_frame();

  std::size_t max_frame_bytes_;

  std::string_view input_;  // the pushed piece
  std::size_t position_ = 0;
  std::size_t line_feed_ = 0;        // the first LF at or after position_, or input_.size()
  std::size_t carriage_return_ = 0;  // same for CR
  bool skip_line_feed_ = false;      // the last line ended with a CR: an LF right after it belongs to it
  bool first_line_ = true;
  bool finished_ = false;
  bool overflowed_ = false;

  std::string partial_line_;  // the beginning of a line whose end has not come yet
  std::string joined_line_;   // a line that began in an earlier piece

  // The frame that is being read. Views point into the piece, into joined_line_ or into the two stores.
  std::string_view event_;
  std::string_view data_;
  bool has_data_ = false;
  bool data_stored_ = false;
  std::size_t frame_bytes_ = 0;
  std::string event_store_;
  std::string data_store_;
};

}  // namespace tau::ai::http
