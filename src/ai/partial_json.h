// Reading tool arguments while they stream, and once they are complete (AI-41 to AI-44, FF-18, FF-19).
//
// A model sends the arguments of a call as JSON text in small pieces. Two readers look at them, for two purposes that
// must not be mixed:
//   - a screen wants to show what is there so far. It gets a preview from a reader that forgives everything;
//   - a tool wants to run. It gets arguments only when the complete text is JSON (or becomes JSON by escaping what
//     models forget to escape inside strings). What the forgiving reader makes of anything else must never run.
//
// The preview is incremental: every byte is looked at once. Parsing the whole text again after each piece would make a
// file of 1 MB, written by a call in pieces of 20 bytes, cost 25 GB of reading.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tau::ai {

/// Arguments as received, when the call is complete.
struct FinalArguments {
  json::value value;  // when not valid: a preview
  bool valid = true;  // the text was JSON, after literal repair at most; only then may the call run (FF-19)
};

/// `text` is WTF-8. Blank text is {}. Any JSON value is valid here: the tool's schema asks for an object later.
FinalArguments parse_final_arguments(std::string_view text);

/// The preview of a whole text (AI-41): what parse_final_arguments finds, valid or not.
json::value parse_streaming_json(std::string_view text);

/// Escapes what may not stand inside a string literal as it is: control characters, and backslashes that begin no
/// escape. Text outside of literals is left alone (AI-42).
std::string repair_json_literals(std::string_view text);

/// A preview that grows with the text. After any number of pieces `value` is what parse_streaming_json would find in
/// the text so far, at a cost proportional to the last piece.
class PartialJson {
 public:
  enum class Literals {
    kRepaired,   // wrong escapes and control characters are shown as they are
    kAsWritten,  // a literal that JSON does not allow ends the reading (AI-44)
  };

  explicit PartialJson(Literals literals = Literals::kRepaired) : literals_(literals) {}
  // Points into itself.
  PartialJson(const PartialJson&) = delete;
  PartialJson& operator=(const PartialJson&) = delete;

  /// `delta` is WTF-8 and does not split characters, except surrogate pairs.
  void feed(std::string_view delta);

  /// What is there so far; {} when there is nothing. Valid until the next call.
  const json::value& value();
  /// Whether any part of a value was found.
  bool has_value();

 private:
  enum class State {
    kValue,       // a value must follow
    kFirstItem,   // a value or ']'
    kKey,         // a key or '}'
    kColon,       //
    kAfterValue,  // ',' or the end of the container; a missing comma is forgiven
    kString,      //
    kEscape,      // inside a string, after a backslash
    kScalar,      // a number or a word
    kEnd,         // complete, or nothing more can be understood
  };

  std::size_t feed_string(std::string_view text);
  void feed_escape(char c);
  void feed_scalar(char c);
  void feed_structure(char c);
  void begin_value(char c);
  void begin_string(bool key);
  void end_string();
  void open(json::value container, State next);
  void close();
  void broken_escape();
  void give_up();

  json::value& add_slot();
  json::value& current_slot();
  void remove_slot();
  bool show_scalar(bool complete);

  Literals literals_;
  State state_ = State::kValue;
  json::value root_;
  bool has_root_ = false;
  std::vector<json::value*> containers_;  // the open ones; a container does not change while one inside it is open
  json::string key_;
  json::string* string_ = nullptr;  // where the text of the open string goes: key_ or the value itself
  bool string_is_key_ = false;
  bool string_is_frozen_ = false;  // holds a wrong escape (kAsWritten): its text stops there
  std::string escape_;             // of an unfinished escape, without the backslash
  std::string scalar_;
  bool scalar_shown_ = false;
  std::optional<json::value> displaced_;  // the earlier value of the same key, while scalar_ is shown in its place
};

}  // namespace tau::ai
