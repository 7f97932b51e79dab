// Reading golden cases from tests/fixtures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace tau::test {

/// Whether the address sanitizer is on. It keeps freed memory back, so the size of the process says nothing then.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

std::filesystem::path fixture_root();

/// The bytes of a file; the test fails with the path when it cannot be read.
std::string read_file(const std::filesystem::path& path);
json::value read_json(const std::filesystem::path& path);
/// One value a line; blank lines are skipped.
std::vector<json::value> read_json_lines(const std::filesystem::path& path);
/// Sub-folders in byte order of their names.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder);
/// Files with this ending (".json"), in byte order of their names.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder, const std::string& ending);

/// A folder of the test's own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// Writes a file below the folder, making its parents, and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

}  // namespace tau::test
