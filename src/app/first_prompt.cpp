#include "app/first_prompt.h"

#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/base64.h"
#include "base/files.h"
#include "base/utf8.h"
#include "coding/tools/image_file.h"
#include "coding/tools/tool_path.h"

namespace tau::app {

namespace {

std::expected<void, Error> add_file(FirstPrompt& prompt, const std::string& name, const std::filesystem::path& cwd) {
  const std::filesystem::path path = coding::existing_tool_path(name, cwd);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return std::unexpected(error(fmt::format("File not found: {}", path.string())));
  }
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return std::unexpected(error(fmt::format("{} is no regular file and cannot be attached", path.string())));
  }
  const auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  if (bytes->empty()) return {};
  if (coding::image_info(*bytes)) {
    const auto image = coding::prepare_image(*bytes, true);  // FF-11
    const std::string notes =
        image ? fmt::format("{}", fmt::join(image->notes, "\n")) : fmt::format("[Image omitted: {}.]", image.error());
    prompt.text += fmt::format("<file name=\"{}\">{}</file>\n", path.string(), notes);
    if (image) prompt.images.push_back({base64_encode(image->bytes), image->mime_type, {}});
    return {};
  }
  prompt.text += fmt::format("<file name=\"{}\">\n{}\n</file>\n", path.string(),
                             utf8::replace_invalid(without_byte_order_mark(*bytes)));
  return {};
}

}  // namespace

std::expected<FirstPrompt, Error> make_first_prompt(const std::optional<std::string>& piped,
                                                    const std::vector<std::string>& files,
                                                    const std::optional<std::string>& message,
                                                    const std::filesystem::path& cwd) {
  FirstPrompt prompt;
  if (piped) prompt.text += *piped;
  for (const std::string& file : files) {
    auto added = add_file(prompt, file, cwd);
    if (!added) return std::unexpected(std::move(added.error()));
  }
  if (message) prompt.text += utf8::replace_invalid(*message);
  return prompt;
}

std::optional<std::string> read_piped_input() {
  if (::isatty(STDIN_FILENO) != 0) return std::nullopt;
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  const std::string valid = utf8::replace_invalid(text);
  const std::string_view trimmed = utf8::trim(valid);
  return trimmed.empty() ? std::nullopt : std::optional(std::string(trimmed));
}

}  // namespace tau::app
