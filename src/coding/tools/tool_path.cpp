#include "coding/tools/tool_path.h"

#include <cstdlib>
#include <memory>
#include <string>

#include <utf8proc.h>

#include "base/file_url.h"
#include "base/files.h"
#include "base/utf8.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

bool is_odd_space(char32_t c) {
  return c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string with_plain_spaces(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const utf8::Decoded d = utf8::decode(text);
    if (is_odd_space(d.code_point)) {
      out += ' ';
    } else {
      out += text.substr(0, d.length);
    }
    text.remove_prefix(d.length);
  }
  return out;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Canonical decomposition: how macOS spells accents in file names.
std::string decomposed(const std::string& text) {
  utf8proc_uint8_t* result = nullptr;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());  // NOLINT: utf8proc takes unsigned bytes
  const utf8proc_ssize_t size = utf8proc_map(bytes, static_cast<utf8proc_ssize_t>(text.size()), &result,
                                             static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE));
  if (size < 0) return text;
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(size)};  // NOLINT
}

}  // namespace

fs::path tool_path(std::string_view path, const fs::path& cwd) {
  if (path.starts_with('@')) path.remove_prefix(1);
  return resolve_path(path_from_file_url(with_plain_spaces(path)), cwd);
}

fs::path existing_tool_path(std::string_view path, const fs::path& cwd) {
  fs::path plain = tool_path(path, cwd);
  std::error_code ignored;
  if (fs::exists(plain, ignored)) return plain;
  const std::string text = plain.string();
  constexpr std::string_view kNarrowSpace = "\u202F";
  constexpr std::string_view kApostrophe = "\u2019";
  const std::string narrow = replace_all(replace_all(text, " AM.", std::string(kNarrowSpace) + "AM."), " PM.",
                                         std::string(kNarrowSpace) + "PM.");
  const std::string accents = decomposed(text);
  for (const std::string& spelling :
       {narrow, accents, replace_all(text, "'", kApostrophe), replace_all(accents, "'", kApostrophe)}) {
    if (fs::exists(spelling, ignored)) return spelling;
  }
  return plain;
}

}  // namespace tau::coding
