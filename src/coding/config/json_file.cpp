#include "coding/config/json_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "coding/config/file_lock.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

std::expected<void, Error> make_folders(const fs::path& folder, mode_t mode) {
  std::error_code failed;
  if (folder.empty() || fs::exists(folder, failed)) return {};
  if (auto made = make_folders(folder.parent_path(), 0777); !made) return made;
  if (mkdir(folder.c_str(), mode) != 0 && errno != EEXIST) {
    return std::unexpected(error(fmt::format("cannot make folder {}: {}", folder.string(), strerror(errno))));
  }
  return {};
}

}  // namespace

std::expected<json::object, Error> read_json_object(const fs::path& file) {
  std::error_code failed;
  const auto status = fs::status(file, failed);
  if (status.type() == fs::file_type::not_found) return json::object{};
  const auto bytes = read_file(file);
  if (!bytes) return std::unexpected(bytes.error());
  const std::string_view text = without_byte_order_mark(*bytes);
  if (utf8::is_blank(text)) return json::object{};
  auto parsed = json::parse(text);
  if (!parsed) return std::unexpected(error(fmt::format("{}: {}", file.string(), parsed.error().describe())));
  if (!parsed->is_object()) {
    return std::unexpected(error(fmt::format("{}: expected an object, {{…}}, at line 1, column 1", file.string())));
  }
  return std::move(parsed->get_object());
}

std::expected<void, Error> update_json_object(const fs::path& file, const UpdateOptions& options,
                                              const std::function<std::expected<void, Error>(json::object&)>& change) {
  if (auto made = make_folders(file.parent_path(), options.folder_mode); !made) return made;
  const auto lock = FileLock::acquire(file);
  if (!lock) return std::unexpected(lock.error());
  auto object = read_json_object(file);
  if (!object) return std::unexpected(object.error());
  const json::object before = *object;
  if (auto changed = change(*object); !changed) return changed;
  if (*object == before) return {};
  std::string text = json::to_text(*object, 2);
  if (options.final_newline) text += '\n';
  return write_file_atomically(file, text, options.file_mode);
}

}  // namespace tau::coding
