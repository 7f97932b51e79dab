// The provider that needs no network: it plays assistant turns from a JSON script through the same stream interface as
// every other provider. It is the way to try tau, to show it and to test it without a key.
//
// A script (docs/scripted.md has the whole format and examples):
//
//   { "pace":  { "chunk": 6, "delayMs": 15 },          code points a delta, pause between deltas
//     "count": "prompt",                               turns start again at each user message ("session": they go on)
//     "turns": [
//       { "thinking": "Look first.",
//         "text": "Listing the folder.",
//         "toolCalls": [ { "label": "list", "name": "bash", "arguments": { "command": "ls" } } ] },
//       { "text": "The first entry is {{list:1}}." } ] }
//
// Text and argument strings may quote the conversation: {{list}} is the whole result of the latest call labelled
// "list",
// {{list:3}} its third line, {{list:2-5}} some lines, {{list:count}} the number of lines, {{prompt}} the user's words.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ai/stream.h"

namespace tau::ai {

inline constexpr std::string_view kScriptedApi = "scripted";
inline constexpr std::string_view kScriptedProvider = "scripted";

/// The model whose script is the built-in of this name, or the file of this path.
Model scripted_model(std::string id);

/// `built_in`: script texts by name. Any other model id is the path of a script file. A script that cannot be read, a
/// turn that does not exist and a quote of something unknown end the call with an error message that names the file.
StreamFunction make_scripted_provider(std::map<std::string, std::string> built_in);

}  // namespace tau::ai
