#include "coding/tools/truncate.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::coding {

namespace {

Truncation measure(TruncationLimits limits, std::size_t total_lines, std::size_t total_bytes) {
  Truncation t;
  t.total_lines = total_lines;
  t.total_bytes = total_bytes;
  t.limits = limits;
  t.truncated = t.total_lines > limits.max_lines || t.total_bytes > limits.max_bytes;
  return t;
}

void keep(Truncation& t, std::string_view content, std::size_t lines) {
  t.content = std::string(content);
  t.output_lines = lines;
  t.output_bytes = content.size();
}

/// The end of a line, at most `max` bytes, from a character border on.
std::string_view end_of_line(std::string_view line, std::size_t max) {
  std::string_view end = line.substr(line.size() - std::min(max, line.size()));
  while (!end.empty() && (static_cast<unsigned char>(end.front()) & 0xC0) == 0x80)
    end.remove_prefix(1);
  return end;
}

}  // namespace

json::object to_json(const Truncation& t) {
  return {{"content", t.content},
          {"truncated", t.truncated},
          {"truncatedBy", t.truncated_by.empty() ? json::value(nullptr) : json::value(t.truncated_by)},
          {"totalLines", t.total_lines},
          {"totalBytes", t.total_bytes},
          {"outputLines", t.output_lines},
          {"outputBytes", t.output_bytes},
          {"lastLinePartial", t.last_line_partial},
          {"firstLineExceedsLimit", t.first_line_exceeds_limit},
          {"maxLines", t.limits.max_lines},
          {"maxBytes", t.limits.max_bytes}};
}

std::size_t count_lines(std::string_view text) {
  if (text.empty()) return 0;
  const auto ends = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return text.back() == '\n' ? ends : ends + 1;
}

Truncation truncate_head(std::string_view text, TruncationLimits limits) {
  return truncate_head(text, limits, count_lines(text), text.size());
}

Truncation truncate_head(std::string_view text, TruncationLimits limits, std::size_t total_lines,
                         std::size_t total_bytes) {
  Truncation t = measure(limits, total_lines, total_bytes);
  if (!t.truncated) {
    keep(t, text, t.total_lines);
    return t;
  }
  std::size_t taken = 0;  // bytes, without the last line end
  std::size_t lines = 0;
  bool over_bytes = false;
  for (std::size_t at = 0; at < text.size() && lines < limits.max_lines;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > limits.max_bytes) {
      over_bytes = true;
      break;
    }
    taken = end;
    ++lines;
    at = end + 1;
  }
  t.first_line_exceeds_limit = lines == 0;
  t.truncated_by = over_bytes ? "bytes" : "lines";
  keep(t, text.substr(0, taken), lines);
  return t;
}

Truncation truncate_tail(std::string_view text, TruncationLimits limits) {
  Truncation t = measure(limits, count_lines(text), text.size());
  if (!t.truncated) {
    keep(t, text, t.total_lines);
    return t;
  }
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::size_t start = text.size() + 1;  // of the first line taken
  std::size_t lines = 0;
  bool over_bytes = false;
  while (start > 0 && lines < limits.max_lines) {
    const std::size_t before = start - 1;  // the line end in front of what was taken, or the end of the text
    const std::size_t newline = before == 0 ? std::string_view::npos : text.rfind('\n', before - 1);
    const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (text.size() - line > limits.max_bytes) {
      over_bytes = true;
      break;
    }
    start = line;
    ++lines;
  }
  t.truncated_by = over_bytes ? "bytes" : "lines";
  if (lines == 0) {
    const std::size_t newline = text.rfind('\n');
    const std::string_view last = newline == std::string_view::npos ? text : text.substr(newline + 1);
    t.last_line_partial = true;
    keep(t, end_of_line(last, limits.max_bytes), 1);
    return t;
  }
  keep(t, text.substr(std::min(start, text.size())), lines);
  return t;
}

std::string format_size(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{}B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f}KB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f}MB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string truncate_line(std::string_view line, std::size_t max) {
  if (utf8::utf16_length(line) <= max) return std::string(line);
  return std::string(utf8::prefix_utf16(line, max)) + "... [truncated]";
}

}  // namespace tau::coding
