// Lines in and replies out of the RPC protocol (MO-90 to MO-96, FF-92, FF-93).
//
// LF is the only delimiter: U+2028 and its kind are data. A line may be as long as it likes; the buffer remembers how
// far it has been searched, so that a line of 100 MB in small pieces is looked at once.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace tau::app {

class LineSplitter {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }

  /// The next whole line, without LF and without one CR before it; nothing when none has arrived yet.
  std::optional<std::string> next();
  /// What stands after the last LF: a last line may lack its end (MO-91). Empty when there is nothing.
  std::string rest();

 private:
  std::string buffer_;
  std::size_t begin_ = 0;     // of the line that is being received
  std::size_t searched_ = 0;  // no LF before this place
};

/// A command as it came.
struct RpcRequest {
  std::optional<std::string> id;  // as it was written, for the echo: numbers keep their digits (MO-246)
  std::string type;
  json::object body;

  std::optional<std::string_view> text(std::string_view member) const { return json::find_string(body, member); }
};

/// The reply to a line that is no command: bad JSON, a value that is no object, an object without a type.
struct NotACommand {
  std::string reply;  // a line
};

std::expected<RpcRequest, NotACommand> read_request(std::string_view line);

/// The JSON of a reply's `data`; empty = there is none.
using RpcAnswer = std::expected<std::string, Error>;

/// A line with its LF.
std::string reply_line(const RpcRequest& request, const RpcAnswer& answer);

/// The JSON text of a member of the outermost object; of equal keys the last. Empty when there is none. `text` is JSON.
std::string_view raw_member(std::string_view text, std::string_view key);

}  // namespace tau::app
