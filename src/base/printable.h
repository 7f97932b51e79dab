// Text made safe to show: whatever a model, a server, a file name or a tool says cannot steer the terminal (FF-107).
#pragma once

#include <string>
#include <string_view>

namespace tau {

/// UTF-8 without escape sequences (CSI, OSC and the other string controls) and without control characters; '\n' and
/// '\t' stay. Invalid bytes become U+FFFD.
std::string printable(std::string_view text);

/// The same on one line: line ends and tabs become blanks.
std::string printable_line(std::string_view text);

}  // namespace tau
