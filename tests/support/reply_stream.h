// What a provider sends for a reply: the bytes of one streamed answer in each wire format, made from one description,
// so that the same conversation can be played over every API.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace tau::test {

struct CallOfReply {
  std::string id;
  std::string name;
  json::object arguments;
};

struct Reply {
  std::string text;
  std::vector<CallOfReply> calls;
  std::string thinking;
  std::string stop;        // "stop", "toolUse" or "length"; empty = by the calls
  std::size_t chunk = 16;  // bytes of text or argument text a delta (cut at character borders)
};

/// The whole event stream of one reply for "anthropic-messages", "openai-completions" or the APIs of the Responses
/// family.
std::string reply_stream(const std::string& api, const Reply& reply, int number = 1);

/// The path that requests of this API are posted to, below the model's base URL.
std::string request_path(const std::string& api);

/// A models.json with the provider "local" (key "sk-local-test") and one model "m1" of this API at the base URL.
std::string models_json(const std::string& api, const std::string& base_url);

/// Texts of the conversation that a request body holds, in order, as "role: text" with tool results as
/// "tool <call id>: text" and calls as "call <id> <name>". The same for every API.
std::vector<std::string> conversation_of(const std::string& api, const json::object& body);

}  // namespace tau::test
