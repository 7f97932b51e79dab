// Paths as models write them (CA-6, CA-21).
#pragma once

#include <filesystem>
#include <string_view>

namespace tau::coding {

/// One leading `@` is dropped, odd spaces become plain ones, `~` and file: URLs are expanded; relative to `cwd`.
std::filesystem::path tool_path(std::string_view path, const std::filesystem::path& cwd);

/// The same, for a file that is to be read: when it does not exist, spellings that differ only in how a screenshot's
/// name, an accent or an apostrophe is encoded are tried (CA-21).
std::filesystem::path existing_tool_path(std::string_view path, const std::filesystem::path& cwd);

}  // namespace tau::coding
