// The output of a command: its end in memory, all of it in a file once it is long (CA-66, CA-67, FF-60, FF-61).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "coding/tools/truncate.h"

namespace tau::coding {

/// Memory does not grow with the output: about four times the byte limit is kept.
class OutputAccumulator {
 public:
  explicit OutputAccumulator(std::filesystem::path folder = std::filesystem::temp_directory_path(),
                             TruncationLimits limits = {});
  ~OutputAccumulator();
  OutputAccumulator(const OutputAccumulator&) = delete;
  OutputAccumulator& operator=(const OutputAccumulator&) = delete;

  /// Raw bytes in any split; decoded as UTF-8, invalid bytes become U+FFFD, a leading byte-order mark is dropped.
  void add(std::string_view bytes);
  /// No more bytes come: an unfinished character counts as an invalid one.
  void finish();

  /// The end of the output as it stands, cut to the limits; counts are of all of it.
  Truncation snapshot() const;
  /// The file with the raw bytes from the beginning; exists once the output is longer than what is shown.
  const std::optional<std::filesystem::path>& full_output() const { return file_path_; }
  /// Bytes of the last line, also when only its end is kept.
  std::size_t last_line_bytes() const { return last_line_bytes_; }

 private:
  void add_text(std::string_view text);
  void spill(std::string_view bytes);

  std::filesystem::path folder_;
  TruncationLimits limits_;
  std::string pending_;      // the beginning of a character
  std::string tail_;         // decoded
  bool tail_is_all_ = true;  // nothing was dropped from its front
  bool at_start_ = true;
  std::size_t total_bytes_ = 0;  // decoded
  std::size_t line_ends_ = 0;
  std::size_t last_line_bytes_ = 0;
  std::size_t raw_bytes_ = 0;
  std::string unspilled_;  // raw bytes, until there is a file
  std::optional<std::filesystem::path> file_path_;
  int file_ = -1;
};

}  // namespace tau::coding
