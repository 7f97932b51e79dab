#include "support/fixture.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/utf8.h"

namespace tau::test {

namespace fs = std::filesystem;

fs::path fixture_root() {
  return TAU_FIXTURES;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

json::value read_json(const fs::path& path) {
  auto parsed = json::parse(read_file(path));
  if (!parsed) throw std::runtime_error(path.string() + ": " + parsed.error().describe());
  return *std::move(parsed);
}

std::vector<json::value> read_json_lines(const fs::path& path) {
  std::vector<json::value> lines;
  std::istringstream in(read_file(path));
  for (std::string line; std::getline(in, line);) {
    if (utf8::is_blank(line)) continue;
    auto parsed = json::parse(line);
    if (!parsed) throw std::runtime_error(path.string() + ": " + parsed.error().describe());
    lines.push_back(*std::move(parsed));
  }
  return lines;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> files_in(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(ending)) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "tau-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  const fs::path path = path_ / name;
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
  return path;
}

}  // namespace tau::test
