#include "coding/config/glob.h"

#include <span>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace tau::coding {

namespace {

using Segments = std::vector<std::string_view>;

Segments split(std::string_view text) {
  Segments out;
  for (;;) {
    const std::size_t slash = text.find('/');
    out.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    text.remove_prefix(slash + 1);
  }
}

char32_t folded(char32_t c, bool ignore_case) {
  return ignore_case && c >= U'A' && c <= U'Z' ? c + (U'a' - U'A') : c;
}

/// The length of the class that begins with `[` at the start of `pattern`, or 0 when it is not closed.
std::size_t class_length(std::string_view pattern) {
  std::size_t i = 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  if (i < pattern.size() && pattern[i] == ']') ++i;
  while (i < pattern.size() && pattern[i] != ']') {
    i += pattern[i] == '\\' ? 2 : 1;
  }
  return i < pattern.size() ? i + 1 : 0;
}

bool class_matches(std::string_view body, char32_t c, bool ignore_case) {
  const bool negated = !body.empty() && (body[0] == '!' || body[0] == '^');
  if (negated) body.remove_prefix(1);
  const auto next = [&] {
    if (body[0] == '\\' && body.size() > 1) body.remove_prefix(1);
    const auto decoded = utf8::decode(body);
    body.remove_prefix(decoded.length);
    return folded(decoded.code_point, ignore_case);
  };
  bool found = false;
  while (!body.empty()) {
    const char32_t low = next();
    char32_t high = low;
    if (body.size() > 1 && body[0] == '-') {
      body.remove_prefix(1);
      high = next();
    }
    if (low <= c && c <= high) found = true;
  }
  return found != negated;
}

/// One segment, without `/`. On a mismatch the last star takes one more character.
bool segment_matches(std::string_view pattern, std::string_view text, const GlobOptions& options) {
  if (!options.wildcards_match_dot && text.starts_with('.') && !pattern.starts_with('.') &&
      !pattern.starts_with("\\.")) {
    return false;
  }
  std::string_view star_pattern, star_text;
  bool has_star = false;
  for (;;) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      has_star = true;
      star_pattern = pattern;
      star_text = text;
      continue;
    }
    bool matched = false;
    if (text.empty()) {
      if (pattern.empty()) return true;
      return false;  // a longer piece for the star cannot help: nothing is left
    }
    if (!pattern.empty()) {
      const auto c = utf8::decode(text);
      const char32_t wanted = folded(c.code_point, options.ignore_case);
      std::size_t taken = 0;
      if (pattern[0] == '?') {
        taken = 1;
      } else if (const std::size_t length = pattern[0] == '[' ? class_length(pattern) : 0; length > 0) {
        if (class_matches(pattern.substr(1, length - 2), wanted, options.ignore_case)) taken = length;
      } else {
        const std::size_t escape = pattern[0] == '\\' && pattern.size() > 1 ? 1 : 0;
        const auto p = utf8::decode(pattern.substr(escape));
        if (folded(p.code_point, options.ignore_case) == wanted) taken = escape + p.length;
      }
      if (taken > 0) {
        matched = true;
        pattern.remove_prefix(taken);
        text.remove_prefix(c.length);
      }
    }
    if (matched) continue;
    if (!has_star) return false;
    star_text.remove_prefix(utf8::decode(star_text).length);
    pattern = star_pattern;
    text = star_text;
  }
}

bool segments_match(std::span<const std::string_view> pattern, std::span<const std::string_view> text,
                    const GlobOptions& options) {
  while (!pattern.empty()) {
    if (pattern[0] == "**") {
      while (!pattern.empty() && pattern[0] == "**")
        pattern = pattern.subspan(1);
      if (pattern.empty()) {
        if (options.wildcards_match_dot) return true;
        for (const std::string_view segment : text) {
          if (segment.starts_with('.')) return false;
        }
        return true;
      }
      for (;;) {
        if (segments_match(pattern, text, options)) return true;
        if (text.empty() || (!options.wildcards_match_dot && text[0].starts_with('.'))) return false;
        text = text.subspan(1);
      }
    }
    if (text.empty() || !segment_matches(pattern[0], text[0], options)) return false;
    pattern = pattern.subspan(1);
    text = text.subspan(1);
  }
  return text.empty();
}

/// The first `{…}` with a comma at its own level, as the positions of its parts.
struct Braces {
  std::size_t begin = 0, end = 0;  // of the whole, braces included
  std::vector<std::string_view> parts;
};

bool find_braces(std::string_view pattern, Braces& out) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
      continue;
    }
    if (pattern[i] != '{') continue;
    int depth = 0;
    std::size_t part = i + 1;
    out = {i, 0, {}};
    for (std::size_t j = i; j < pattern.size(); ++j) {
      const char c = pattern[j];
      if (c == '\\') {
        ++j;
      } else if (c == '{') {
        ++depth;
      } else if (c == ',' && depth == 1) {
        out.parts.push_back(pattern.substr(part, j - part));
        part = j + 1;
      } else if (c == '}' && --depth == 0) {
        out.parts.push_back(pattern.substr(part, j - part));
        out.end = j + 1;
        break;
      }
    }
    if (out.end != 0 && out.parts.size() > 1) return true;
  }
  return false;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text, const GlobOptions& options) {
  Braces braces;
  if (options.braces && find_braces(pattern, braces)) {
    for (const std::string_view part : braces.parts) {
      std::string one(pattern.substr(0, braces.begin));
      one += part;
      one += pattern.substr(braces.end);
      if (glob_matches(one, text, options)) return true;
    }
    return false;
  }
  const Segments p = split(pattern);
  const Segments t = split(text);
  return segments_match(p, t, options);
}

bool has_wildcards(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

}  // namespace tau::coding
