// The output of a user's command as it is kept, shown and sent: text, without what steers a terminal (CA-87).
//
// Escape sequences and characters may be split between two pieces of output, so this is a machine, not a function.
#pragma once

#include <string>
#include <string_view>

namespace tau::coding {

class PlainOutput {
 public:
  /// Raw bytes in any split; returns what they add to the text. Invalid bytes become U+FFFD; a leading byte-order mark,
  /// escape sequences, control characters other than tab and line feed, and U+FFF9 to U+FFFB are left out.
  std::string add(std::string_view bytes);
  /// The end: what is left of an unfinished character.
  std::string finish();

 private:
  enum class State {
    kText,
    kEscape,        // behind ESC
    kIntermediate,  // ESC and one or more of space to '/'
    kControl,       // CSI …
    kString,        // OSC and its like, up to BEL or ST
    kStringEscape,  // ESC within
  };

  void take(std::string& out, std::string_view text);
  void step(std::string& out, char32_t c, std::string_view bytes);

  std::string pending_;  // the beginning of a character
  bool at_start_ = true;
  State state_ = State::kText;
};

}  // namespace tau::coding
