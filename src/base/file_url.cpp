#include "base/file_url.h"

namespace tau {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string path_from_file_url(std::string_view text) {
  constexpr std::string_view kScheme = "file://";
  if (!text.starts_with(kScheme)) return std::string(text);
  text.remove_prefix(kScheme.size());
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
      path += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      path += text[i];
    }
  }
  return path;
}

}  // namespace tau
