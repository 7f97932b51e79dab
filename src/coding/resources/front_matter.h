// The YAML between two `---` lines at the top of a skill or a prompt template (CA-132, CA-401).
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace tau::coding {

struct FrontMatter {
  bool present = false;
  json::object values;  // empty when the YAML is no mapping
  std::string body;     // trimmed when there is a front matter, else the whole text
};

/// Line ends become "\n", a byte-order mark is dropped. Without a closing line the whole text is body. Fails on broken
/// YAML, with its line in the file.
std::expected<FrontMatter, Error> split_front_matter(std::string_view text);

/// A YAML document as JSON: plain scalars become null, booleans and numbers where they look like it, quoted ones stay
/// texts. Anchors are resolved. The error counts lines from `first_line`.
std::expected<json::value, Error> yaml_to_json(std::string_view yaml, int first_line = 1);

/// A scalar as text: `description: 42` is "42". Empty for anything else.
std::string scalar_text(const json::object& values, std::string_view key);

}  // namespace tau::coding
