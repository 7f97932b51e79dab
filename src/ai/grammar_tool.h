// Tools whose argument a model writes as free text in a grammar instead of as JSON (AI-84, AI-85).
//
// For everybody but the wire such a call is one like any other: its arguments are {"<property>": "<text>"}. So the text
// that streams in is dressed as JSON on its way, and undressed again when the call is replayed.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "ai/context.h"

namespace tau::ai {

struct Grammar {
  std::string syntax;      // "lark" or "regex"
  std::string definition;  //
  std::string property;    // the argument that carries the text
};

/// The grammar of a tool that asks for one; nothing when it does not, or when the API has none and the tool is sent as
/// a normal one. An error when the tool cannot have one: no definition, or not exactly one required property, a string.
std::expected<std::optional<Grammar>, std::string> grammar_of(const Tool& tool, bool api_supports_grammars);

/// The text of a call that is replayed, or why there is none.
std::expected<std::string_view, std::string> grammar_input(const ToolCall& call, std::string_view property);

/// The JSON pieces of a call whose text streams in. Feed them to the assembler as deltas.
class GrammarArguments {
 public:
  explicit GrammarArguments(std::string property) : property_(std::move(property)) {}

  /// The next piece, for text that was added; empty when nothing is new.
  std::string append(std::string_view text);
  /// The same, when a provider repeats the text from its beginning. Fails when it is not a continuation of what came
  /// before.
  std::expected<std::string, std::string> replace(std::string_view whole_text);
  /// The last piece. Nothing may follow.
  std::string close();

 private:
  void open(std::string& out);

  std::string property_;
  std::string text_;
  bool opened_ = false;
};

}  // namespace tau::ai
