// Reading and writing files so that a crash, a full disk or a second process never leaves half a file.
#pragma once

#include <sys/types.h>

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tau {

/// The whole file. The error says which file and why ("cannot read /x: Permission denied").
std::expected<std::string, Error> read_file(const std::filesystem::path& path);

/// Replaces the file's bytes atomically: temporary file in the same folder, fsync, rename. A symbolic link is followed:
/// its target is replaced. Mode and owner of an existing file are kept; a new file gets `mode` (less the umask when
/// `mode` is 0666). Parent folders are not made.
std::expected<void, Error> write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                                                 mode_t mode = 0666);

/// `~` and `~/x` become paths below the home folder; everything else is returned as it is.
std::filesystem::path expand_home(std::string_view path);

/// Absolute and lexically normalised, without a trailing slash, symbolic links kept; relative to `base`.
std::filesystem::path resolve_path(std::string_view path, const std::filesystem::path& base);

/// Drops a UTF-8 byte-order mark at the start (FF-114).
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace tau
