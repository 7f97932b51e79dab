// Cutting long texts for a model: whole lines, from the beginning or from the end (CA-10 to CA-15).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"

namespace tau::coding {

struct TruncationLimits {
  std::size_t max_lines = 2000;
  std::size_t max_bytes = 50 * 1024;
};

/// What was cut, as it is stored with a tool result.
struct Truncation {
  std::string content;
  bool truncated = false;
  std::string_view truncated_by;  // "lines" or "bytes"; empty when nothing was cut
  std::size_t total_lines = 0;
  std::size_t total_bytes = 0;
  std::size_t output_lines = 0;
  std::size_t output_bytes = 0;
  bool last_line_partial = false;         // tail: the last line alone is over the limit, its end is shown (FF-60)
  bool first_line_exceeds_limit = false;  // head: nothing could be shown
  TruncationLimits limits;
};

json::object to_json(const Truncation& t);

/// The first lines that fit. Text within both limits is returned unchanged.
Truncation truncate_head(std::string_view text, TruncationLimits limits = {});
/// The same when only the beginning of the text is at hand: more than `limits.max_bytes` of it, and the totals.
Truncation truncate_head(std::string_view beginning, TruncationLimits limits, std::size_t total_lines,
                         std::size_t total_bytes);
/// The last lines that fit; of a last line that alone is too long its end, from a character border on.
Truncation truncate_tail(std::string_view text, TruncationLimits limits = {});

/// Pieces between line ends; a final line end begins no further line.
std::size_t count_lines(std::string_view text);

/// "512B", "1.5KB", "50.0KB", "1.0MB"
std::string format_size(std::size_t bytes);

/// At most `max` UTF-16 units, then a mark that the line was cut.
std::string truncate_line(std::string_view line, std::size_t max = 500);

}  // namespace tau::coding
