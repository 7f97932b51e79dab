// Small JSON files that several programs read and change at once: settings.json, auth.json, trust.json (FF-111).
//
// A change is: lock, read again, change what is to be changed, write a temporary file, fsync, rename. A file that
// cannot be read or parsed is never written, so nothing of it is lost (FF-115).
#pragma once

#include <sys/types.h>

#include <expected>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/json.h"

namespace tau::coding {

/// The file's object; a byte-order mark is skipped, a missing or blank file is {}. Errors name the file and, for broken
/// JSON, line and column. Anything but an object at the top is an error.
std::expected<json::object, Error> read_json_object(const std::filesystem::path& file);

struct UpdateOptions {
  mode_t file_mode = 0666;    // of a new file, less the umask when 0666
  mode_t folder_mode = 0777;  // of a new folder, less the umask
  bool final_newline = false;
};

/// `change` gets the file's present object and may refuse with an error; then, and when it changed nothing, nothing is
/// written. Makes the folder. Blocks while another program holds the lock (a few seconds at most).
std::expected<void, Error> update_json_object(const std::filesystem::path& file, const UpdateOptions& options,
                                              const std::function<std::expected<void, Error>(json::object&)>& change);

}  // namespace tau::coding
