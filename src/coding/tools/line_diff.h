// What an edit changed, line by line: for the screen and as a patch (CA-52, CA-53, CA-315, CA-316).
//
// A diff is a courtesy: it may never make an edit slow or a session file huge (FF-71). The shortest edit script (Myers,
// "An O(ND) Difference Algorithm", 1986) is looked for within a fixed amount of work, and where many lines lie between
// the first and the last change only in the ranges that the edit is known to have changed. When the work is used up,
// what differs is shown as it is, removed lines before added ones. Lines that fill screens are cut around the change,
// and both texts have a greatest size.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tau::coding {

/// Byte ranges that differ. Everything between two windows is equal in both texts.
struct TextWindow {
  std::size_t old_begin = 0, old_end = 0;
  std::size_t new_begin = 0, new_end = 0;
};

/// `old_count` lines from `old_line` on became `new_count` lines from `new_line` on. Lines count from 0.
struct LineChange {
  std::size_t old_line = 0, old_count = 0;
  std::size_t new_line = 0, new_count = 0;

  friend bool operator==(const LineChange&, const LineChange&) = default;
};

/// The shortest list of changes from one text to the other, in order. `known` keeps it quick, and close to the
/// shortest, where the texts are long.
std::vector<LineChange> diff_lines(std::string_view old_text, std::string_view new_text,
                                   std::span<const TextWindow> known = {});

struct DiffText {
  std::string diff;                               // for people: signs, line numbers, long lines cut; UTF-8
  std::string patch;                              // unified diff; empty when it would be larger than kLargestPatch
  std::optional<std::size_t> first_changed_line;  // in the new text, from 1
};

constexpr std::size_t kLargestPatch = 256 * 1024;  // bytes
constexpr std::size_t kLargestDiff = 256 * 1024;   // bytes
constexpr std::size_t kLongestDiffLine = 2000;     // bytes of the line that are shown

/// Both texts have LF line ends. `path` stands in the patch as it is.
DiffText describe_diff(std::string_view old_text, std::string_view new_text, std::string_view path,
                       std::span<const TextWindow> known = {});

}  // namespace tau::coding
