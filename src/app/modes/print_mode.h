// Modes that run the prompts of the command line and end: text, JSON lines, and plain linear text.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "app/first_prompt.h"
#include "app/output.h"
#include "app/startup.h"

namespace tau::app {

struct Prompts {
  FirstPrompt first;
  std::vector<std::string> rest;  // sent one after the other, each when the one before has settled
};

/// `-p`: nothing but the text of the last reply goes to stdout (MO-70). Returns the exit code: 0 for an answer, 1 when
/// the last reply failed, was aborted or was cut at the output limit (FF-97).
boost::asio::awaitable<int> run_text_mode(Runtime& runtime, Prompts prompts, Output& out);

/// `--mode json`: the session's header, then one line an event, each written as it happens (MO-80 to MO-84).
boost::asio::awaitable<int> run_json_mode(Runtime& runtime, Prompts prompts, Output& out);

/// `--plain`: everything as it arrives, as linear text with role markers: no cursor movement, no colours. With
/// `interactive` it then asks for further messages on stdin until its end.
boost::asio::awaitable<int> run_plain_mode(Runtime& runtime, Prompts prompts, Output& out, bool interactive);

/// One line on stderr, safe to show.
void tell(std::string_view kind, std::string_view message);

}  // namespace tau::app
