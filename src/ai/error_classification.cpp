#include "ai/error_classification.h"

#include <algorithm>
#include <span>
#include <string>

namespace tau::ai {

namespace {

// ---- a small pattern language ------------------------------------------------------------------------------------
// Lower-case text, with
//   #  one or more digits              %  one or more digits or commas
//   ~  any one character, or none      *  any characters up to the end of the line
//   @  a blank or '_'                  $  any white space, or none
//   {x}  x or nothing                  c? the character c or nothing
//   ^  (first) the text begins here
// std::regex is slow to build and recurses for each character of the text; texts can be long bodies of HTML.

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool matches_here(std::string_view pattern, std::string_view text);

template <class Accept>
bool matches_run(std::string_view rest, std::string_view text, std::size_t shortest, Accept accept) {
  std::size_t longest = 0;
  while (longest < text.size() && accept(text[longest]))
    ++longest;
  for (std::size_t length = longest + 1; length-- > shortest;) {
    if (matches_here(rest, text.substr(length))) return true;
  }
  return false;
}

bool matches_here(std::string_view pattern, std::string_view text) {
  while (!pattern.empty()) {
    const char p = pattern.front();
    if (pattern.size() > 1 && pattern[1] == '?') {
      const std::string_view rest = pattern.substr(2);
      if (!text.empty() && text.front() == p && matches_here(rest, text.substr(1))) return true;
      pattern = rest;
      continue;
    }
    const std::string_view rest = pattern.substr(1);
    switch (p) {
      case '#':
        return matches_run(rest, text, 1, is_digit);
      case '%':
        return matches_run(rest, text, 1, [](char c) { return is_digit(c) || c == ','; });
      case '*':
        return matches_run(rest, text, 0, [](char c) { return c != '\n'; });
      case '$':
        return matches_run(rest, text, 0, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
      case '~':
        if (!text.empty() && text.front() != '\n' && matches_here(rest, text.substr(1))) return true;
        pattern = rest;
        continue;
      case '{': {
        const std::size_t end = pattern.find('}');
        const std::string_view after = pattern.substr(end + 1);
        if (matches_here(std::string(pattern.substr(1, end - 1)) + std::string(after), text)) return true;
        pattern = after;
        continue;
      }
      case '@':
        if (text.empty() || (text.front() != ' ' && text.front() != '_')) return false;
        break;
      default:
        if (text.empty() || text.front() != p) return false;
    }
    pattern = rest;
    text.remove_prefix(1);
  }
  return true;
}

bool contains(std::string_view text, std::string_view pattern) {
  if (pattern.starts_with('^')) return matches_here(pattern.substr(1), text);
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (matches_here(pattern, text.substr(at))) return true;
  }
  return false;
}

bool contains_any(std::string_view text, std::span<const std::string_view> patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](std::string_view pattern) { return contains(text, pattern); });
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// ---- what providers say ------------------------------------------------------------------------------------------

/// AI-216
constexpr std::string_view kOverflow[] = {
    "prompt is too long",                                                      // Anthropic
    "request_too_large",                                                       //
    "input is too long for requested model",                                   // Bedrock
    "exceeds the context window",                                              // OpenAI
    "exceeds {the }{model'?s }maximum context length of % tokens?",            // LiteLLM
    "exceeds {the }{model'?s }maximum context length (%)",                     //
    "input token count*exceeds the maximum",                                   // Google
    "maximum prompt length is #",                                              // xAI
    "reduce the length of the messages",                                       // Groq
    "maximum context length is # tokens",                                      // OpenRouter
    "exceeds {the }maximum allowed input length of % tokens?",                 //
    "input (# tokens) is longer than the model'?s context length (# tokens)",  // Together
    "exceeds the limit of #",                                                  // Copilot
    "exceeds the available context size",                                      // llama.cpp
    "greater than the context length",                                         // LM Studio
    "context window exceeds limit",                                            // MiniMax
    "exceeded model token limit",                                              // Kimi
    "too large for model with # maximum context length",                       // Mistral
    "prompt has % tokens?, but the configured context size is % tokens?",      // DS4
    "model_context_window_exceeded",                                           // z.ai
    "prompt too long; exceeded {max }context length",                          // Ollama
    "range of input length should be",                                         // DashScope
    "context@length@exceeded",                                                 //
    "too many tokens",                                                         //
    "token limit exceeded",                                                    //
    "^400${status code}$(no body)",                                            // Cerebras
    "^413${status code}$(no body)",                                            //
};

/// AI-217: these speak of tokens in a minute, not in a prompt.
constexpr std::string_view kNoOverflow[] = {
    "^throttling error:",
    "^service unavailable:",
    "rate limit",
    "too many requests",
};

/// AI-221 and, from "usage limit" on, FF-44.
constexpr std::string_view kQuota[] = {
    "gousagelimiterror",
    "freeusagelimiterror",
    "monthly usage limit reached",
    "available balance",
    "insufficient_quota",
    "out of budget",
    "quota exceeded",
    "billing",
    "usage@limit",
    "current quota",
    "credit balance",
    "insufficient@credits?",
    "insufficient@balance",
    "out of credits?",
    "payment required",
};

/// AI-220 and, from "connection.?reset" on, FF-49.
constexpr std::string_view kRetryable[] = {
    "overloaded",
    "rate~limit",
    "too many requests",
    "service~unavailable",
    "server~error",
    "internal~error",
    "provider~returned~error",
    "exceeded request buffer limit while retrying upstream",
    "network~error",
    "connection~error",
    "connection~refused",
    "connection~lost",
    "other side closed",
    "fetch failed",
    "getaddrinfo",
    "enotfound",
    "eai_again",
    "upstream~connect",
    "reset before headers",
    "socket hang up",
    "socket connection was closed",
    "timed? out",
    "timeout",
    "terminated",
    "websocket~closed",
    "websocket~error",
    "ended without",
    "stream ended before message_stop",
    "stream ended before a terminal response event",
    "http2 request did not get a response",
    "retry delay",
    "you can retry your request",
    "try your request again",
    "please retry your request",
    "resourceexhausted",
    "connection~reset",
    "connection~closed",
    "connection~aborted",
    "broken~pipe",
    "econnreset",
    "econnrefused",
    "econnaborted",
    "etimedout",
    "epipe",
    "unexpected eof",
    "unexpected end of file",
    "premature close",
    "before secure tls connection",
    "bad~gateway",
    "at capacity",
};

// ---- status codes (FF-44) ----------------------------------------------------------------------------------------

bool is_word_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || c == '_' || c == '-' || c == '.';
}

bool ends_with_any(std::string_view text, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return text.ends_with(ending); });
}

bool announces_a_status(std::string_view word) {
  constexpr std::string_view kWords[] = {"status",    "code",     "error",   "errors",
                                         "exception", "upstream", "gateway", "server"};
  constexpr std::string_view kVerbs[] = {"got",      "received",  "returned", "returns",
                                         "response", "responded", "failed",   "with"};
  return ends_with_any(word, kWords) || word.starts_with("http") ||
         std::find(std::begin(kVerbs), std::end(kVerbs), word) != std::end(kVerbs);
}

bool is_unit(std::string_view word) {
  constexpr std::string_view kUnits[] = {"bytes",      "byte",   "kb",      "mb",     "tokens",      "token",
                                         "characters", "chars",  "seconds", "second", "ms",          "s",
                                         "items",      "pixels", "px",      "lines",  "milliseconds"};
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

/// The word that ends before `at`, when only blanks and punctuation that joins a name to its number stand between;
/// nothing when a sentence begins at `at`.
std::optional<std::string_view> word_before(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end > 0 && std::string_view(" \t\"':=(#[/").find(text[end - 1]) != std::string_view::npos)
    --end;
  std::size_t begin = end;
  while (begin > 0 && is_word_character(text[begin - 1]))
    --begin;
  // "HTTP/1.1 503"
  if (begin > 0 && text[begin - 1] == '/' && text.substr(0, begin - 1).ends_with("http")) return "http";
  const std::string_view word = text.substr(begin, end - begin);
  if (word.empty() || word.ends_with('.')) return std::nullopt;
  return word;
}

std::string_view word_after(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ')
    ++at;
  std::size_t end = at;
  while (end < text.size() && text[end] >= 'a' && text[end] <= 'z')
    ++end;
  return text.substr(at, end - at);
}

/// `text` is in lower case.
std::optional<int> find_status(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i]) || (i > 0 && is_word_character(text[i - 1]))) continue;
    const bool follows_thousands = i > 1 && text[i - 1] == ',' && is_digit(text[i - 2]);
    std::size_t end = i;
    while (end < text.size() && is_word_character(text[end]))
      ++end;
    std::string_view token = text.substr(i, end - i);
    if (token.ends_with('.')) token.remove_suffix(1);
    if (!follows_thousands && token.size() == 3 && std::all_of(token.begin(), token.end(), is_digit) &&
        (token[0] == '4' || token[0] == '5') &&
        !(end < text.size() && text[end] == ',' && end + 1 < text.size() && is_digit(text[end + 1]))) {
      const auto word = word_before(text, i);
      const bool in_brackets = i > 0 && (text[i - 1] == '(' || text[i - 1] == '[') && end < text.size() &&
                               (text[end] == ')' || text[end] == ']');
      if ((!word || in_brackets || announces_a_status(*word)) && !is_unit(word_after(text, end))) {
        return (token[0] - '0') * 100 + (token[1] - '0') * 10 + (token[2] - '0');
      }
    }
    i = end;
  }
  return std::nullopt;
}

bool is_retryable_status(int status) {
  return status == 408 || status == 429 || status >= 500;
}

}  // namespace

bool is_overflow_text(std::string_view error_message) {
  const std::string text = lower_case(error_message);
  return contains_any(text, kOverflow) && !contains_any(text, kNoOverflow);
}

bool is_quota_text(std::string_view error_message) {
  return contains_any(lower_case(error_message), kQuota);
}

bool is_retryable_text(std::string_view error_message) {
  const std::string text = lower_case(error_message);
  if (contains_any(text, kQuota)) return false;
  const auto status = find_status(text);
  return (status && is_retryable_status(*status)) || contains_any(text, kRetryable);
}

std::optional<int> status_in(std::string_view error_message) {
  return find_status(lower_case(error_message));
}

bool is_context_overflow(const AssistantMessage& message, std::optional<double> context_window) {
  if (message.stop_reason == StopReason::kError) {
    return message.error_message && is_overflow_text(*message.error_message);
  }
  if (!context_window || *context_window <= 0) return false;
  const double input = message.usage.input + message.usage.cache_read;
  if (message.stop_reason == StopReason::kStop) return input > *context_window;
  constexpr double kFull = 0.99;
  return message.stop_reason == StopReason::kLength && message.usage.output == 0 && input >= kFull * *context_window;
}

bool is_recoverable_length(const AssistantMessage& message, double desired_max_tokens) {
  return message.stop_reason == StopReason::kLength && desired_max_tokens > 0 &&
         message.usage.output < desired_max_tokens;
}

bool is_retryable(const AssistantMessage& message) {
  return message.stop_reason == StopReason::kError && message.error_message &&
         !is_overflow_text(*message.error_message) && is_retryable_text(*message.error_message);
}

}  // namespace tau::ai
