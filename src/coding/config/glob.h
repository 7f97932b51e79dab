// File-name patterns: `*` and `?` stay inside one path segment, `**` stands for any number of them, `[a-z]`, `[!a]`,
// `{a,b}`, and a backslash takes the next character as it is.
#pragma once

#include <string_view>

namespace tau::coding {

struct GlobOptions {
  bool ignore_case = false;          // ASCII letters
  bool wildcards_match_dot = false;  // a segment that begins with `.` must otherwise be named with its dot
  bool braces = true;
};

bool glob_matches(std::string_view pattern, std::string_view text, const GlobOptions& options = {});

/// Whether the text has one of `*`, `?`, `[`.
bool has_wildcards(std::string_view text);

}  // namespace tau::coding
