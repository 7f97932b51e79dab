// What the first prompt is made of: piped text, files, and the first message (MO-30 to MO-33).
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ai/message.h"
#include "base/error.h"

namespace tau::app {

struct FirstPrompt {
  std::string text;
  std::vector<ai::ImageContent> images;
  bool empty() const { return text.empty() && images.empty(); }
};

/// Joins them without a separator. `files`: as on the command line, relative to `cwd`; empty files are left out. Fails
/// when a file is missing or cannot be read.
std::expected<FirstPrompt, Error> make_first_prompt(const std::optional<std::string>& piped,
                                                    const std::vector<std::string>& files,
                                                    const std::optional<std::string>& message,
                                                    const std::filesystem::path& cwd);

/// All of stdin, trimmed; nothing when it is a terminal or holds no text (MO-31).
std::optional<std::string> read_piped_input();

}  // namespace tau::app
