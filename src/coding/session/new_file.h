// Files that are made beside others and never in their place (FF-29).
#pragma once

#include <expected>
#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace tau::coding {

/// Writes a new file "name.jsonl", or "name-1.jsonl", "name-2.jsonl", ... when that name is taken, and returns its
/// path. Nothing that exists is replaced; a file that could not be written to its end is removed. The folder must
/// exist.
std::expected<std::filesystem::path, Error> write_new_file(const std::filesystem::path& folder,
                                                           const std::filesystem::path& name, std::string_view bytes);

}  // namespace tau::coding
