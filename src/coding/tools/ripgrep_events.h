// What ripgrep reports with --json, in bounded memory.
//
// An event holds a whole line of a file, and every match in it: the one line of a 500 MB file would be one event of
// 500 MB. So events pass a filter first that cuts long strings and empties arrays (the matches within the line, which
// nobody needs here); what is left is a few kilobytes whatever the file holds.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tau::coding {

struct GrepLine {
  std::string path;  // as ripgrep was given it
  std::size_t number = 0;
  std::string text;    // without its line end; valid UTF-8
  bool match = false;  // otherwise a line of context
  bool ended = false;  // had a line end
};

class RipgrepEvents {
 public:
  explicit RipgrepEvents(std::function<void(GrepLine)> on_line) : on_line_(std::move(on_line)) {}

  /// Output in any split.
  void add(std::string_view bytes);
  /// Whether ripgrep came to its end, which it does not when the pattern is no regular expression.
  bool complete() const { return complete_; }

 private:
  void add_in_string(std::string_view& bytes);
  void add_outside(std::string_view& bytes);
  void end_event();

  std::function<void(GrepLine)> on_line_;
  std::string event_;  // filtered
  bool in_string_ = false;
  bool escaped_ = false;         // the next character of the string belongs to a backslash
  bool keep_escape_ = false;     // and that backslash was kept
  std::size_t string_size_ = 0;  // kept of the current string
  int array_depth_ = 0;          // inside of arrays nothing is kept
  bool complete_ = false;
};

}  // namespace tau::coding
