// What one model call is given (AI-14, AI-16).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ai/message.h"
#include "ai/model.h"

namespace tau::ai {

/// A tool as a model sees it.
struct Tool {
  std::string name;
  std::string description;
  json::object parameters;                          // JSON Schema of an object
  std::optional<json::value> constrained_sampling;  // false or an object (AI-14)
};

json::object to_json(const Tool& tool);
Tool tool_from_json(const json::object& o);

struct Context {
  std::optional<std::string> system_prompt;
  std::vector<MessageRef> messages;
  std::vector<Tool> tools;
};

enum class CacheRetention { kNone, kShort, kLong };

struct HttpStatus {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // lower-case names
};

/// The neutral options of one model call (SimpleStreamOptions).
struct StreamOptions {
  std::optional<std::string> api_key;
  Headers headers;                         // override everything else
  std::map<std::string, std::string> env;  // overrides the process environment for provider settings
  std::optional<double> temperature;
  std::optional<double> max_tokens;
  json::object sampling_params;
  std::optional<json::value> tool_choice;  // "auto", "none", or what the api takes
  std::optional<ThinkingLevel> reasoning;  // none = thinking off
  std::map<ThinkingLevel, double> thinking_budgets;
  std::optional<CacheRetention> cache_retention;  // none: PI_CACHE_RETENTION=long, else short (AI-61)
  std::optional<std::string> session_id;
  json::object metadata;
  std::string transport = "auto";

  int max_retries = 0;
  std::chrono::milliseconds max_retry_delay{60000};  // a longer wait asked by the server fails at once; 0 = no cap
  /// Wait for the response headers; 0 = no limit (FF-47).
  std::chrono::milliseconds header_timeout{600000};
  /// Longest silence between two pieces of the body; 0 = no limit (FF-47). There is no limit on the total time.
  std::chrono::milliseconds idle_timeout{300000};

  /// May replace the request body. Must not throw.
  std::function<std::optional<json::object>(const json::object& body, const Model& model)> on_payload;
  /// Called when the response headers are there, before the body. Must not throw.
  std::function<void(const HttpStatus& response, const Model& model)> on_response;
};

/// Looks in options.env, then in the process environment; blank counts as missing.
std::optional<std::string> provider_env(const StreamOptions& options, const std::string& name);

}  // namespace tau::ai
