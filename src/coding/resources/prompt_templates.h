// Prompt templates: `/name arguments` becomes the text of a file with the arguments filled in (CA-130 to CA-135,
// FF-116).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coding/resources/resource_files.h"

namespace tau::coding {

struct PromptTemplate {
  std::string name;  // of the file, without ".md"
  std::string description;
  std::optional<std::string> argument_hint;
  std::string content;
  std::filesystem::path file;
  ResourceOrigin origin = ResourceOrigin::kUser;
};

/// The template in the text of a file called `file_name`; fails on broken YAML.
std::expected<PromptTemplate, Error> parse_prompt_template(const std::string& file_name, std::string_view text);

struct PromptTemplates {
  std::vector<PromptTemplate> templates;  // of equal names the first
  std::vector<std::string> warnings;
};
PromptTemplates load_prompt_templates(const std::vector<ResourceFile>& files);

/// Splits arguments at white space. "…" and '…' group, also empty ones; an apostrophe between letters and a quote that
/// is never closed are text.
std::vector<std::string> parse_arguments(std::string_view text);

/// Fills in $1, $@, $ARGUMENTS, ${1:-default}, ${@:2}, ${@:2:3} and so on, in one pass over the template only.
std::string fill_template(std::string_view content, const std::vector<std::string>& arguments);

/// The text for an input that calls a template; nothing for any other input.
std::optional<std::string> expand_prompt_template(std::string_view input, const std::vector<PromptTemplate>& templates);

}  // namespace tau::coding
