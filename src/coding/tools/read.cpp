#include "coding/tools/read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/blocking.h"
#include "base/files.h"
#include "base/utf8.h"
#include "coding/tools/image_file.h"
#include "coding/tools/tool_path.h"
#include "coding/tools/truncate.h"

namespace tau::coding {

namespace {

using agent::ToolFailure;
using agent::ToolResult;

constexpr std::size_t kChunk = 128 * 1024;  // stays in the cache between reading and counting
constexpr std::size_t kSniff = 4100;        // bytes that decide whether a file is an image

/// What a scan of the file found. A piece is what stands between two line ends: a file that ends with a line end has an
/// empty last piece (CA-25).
struct Scan {
  std::string text;              // of the pieces asked for, without the last line end, no more than is shown
  std::size_t pieces = 0;        // of the whole file
  std::size_t chosen_bytes = 0;  // of the pieces asked for, line ends between them included
  std::size_t first_bytes = 0;   // of the first of them
  bool last_is_empty = true;     // the last of them
};

class File {
 public:
  explicit File(const std::filesystem::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// std::count, in a form that compilers turn into wide instructions: a byte for each of 32 columns, added up before one
/// can overflow.
std::size_t count_newlines(std::string_view bytes) {
  constexpr std::size_t kColumns = 32;
  constexpr std::size_t kRows = 255;
  std::size_t n = 0;
  while (bytes.size() >= kColumns) {
    const std::size_t rows = std::min(kRows, bytes.size() / kColumns);
    std::array<std::uint8_t, kColumns> columns{};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t c = 0; c < kColumns; ++c)
        columns[c] = static_cast<std::uint8_t>(columns[c] + (bytes[row * kColumns + c] == '\n' ? 1 : 0));
    }
    for (const std::uint8_t column : columns)
      n += column;
    bytes.remove_prefix(rows * kColumns);
  }
  return n + static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
}

/// One pass over the file: skips to piece `first`, keeps pieces before `last` as far as they are shown, counts the
/// rest.
class Scanner {
 public:
  Scanner(std::size_t first, std::size_t last) : first_(first), last_(last) {}

  void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      if (piece_ < first_) {
        skip(bytes);
      } else if (piece_ < last_) {
        take(bytes);
      } else {
        piece_ += count_newlines(bytes);
        return;
      }
    }
  }

  Scan finish() {
    if (piece_ >= first_ && piece_ < last_) begin_piece();  // an empty last piece
    scan_.pieces = piece_ + 1;
    return std::move(scan_);
  }

 private:
  void skip(std::string_view& bytes) {
    const std::size_t ends = count_newlines(bytes);
    if (piece_ + ends < first_) {
      piece_ += ends;
      bytes = {};
      return;
    }
    while (piece_ < first_) {
      bytes.remove_prefix(bytes.find('\n') + 1);
      ++piece_;
    }
  }

  void take(std::string_view& bytes) {
    const std::size_t end = bytes.find('\n');
    begin_piece();
    const std::string_view part = bytes.substr(0, end);
    add(part);
    if (!part.empty()) scan_.last_is_empty = false;
    if (piece_ == first_) scan_.first_bytes += part.size();
    if (end == std::string_view::npos) {
      bytes = {};
    } else {
      bytes.remove_prefix(end + 1);
      begun_ = false;
      ++piece_;
    }
  }

  void begin_piece() {
    if (begun_) return;
    begun_ = true;
    scan_.last_is_empty = true;
    if (piece_ > first_) add("\n");
  }

  void add(std::string_view text) {
    scan_.chosen_bytes += text.size();
    // One byte more than the limit is enough to know that it was passed.
    const TruncationLimits limits;
    if (scan_.text.size() <= limits.max_bytes) scan_.text += text.substr(0, limits.max_bytes + 1 - scan_.text.size());
  }

  std::size_t first_;
  std::size_t last_;
  std::size_t piece_ = 0;
  bool begun_ = false;  // the current piece
  Scan scan_;
};

Scan scan_file(int fd, std::string_view beginning, std::size_t first, std::size_t last, const std::stop_token& stop) {
  Scanner scanner(first, last);
  scanner.feed(beginning);
  std::string buffer(kChunk, '\0');
  while (true) {
    if (stop.stop_requested()) throw ToolFailure("Operation aborted");
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw ToolFailure(fmt::format("the file could not be read to its end: {}", std::strerror(errno)));
    if (n == 0) return scanner.finish();
    scanner.feed(std::string_view(buffer.data(), static_cast<std::size_t>(n)));
  }
}

ToolResult text_result(std::string text, const std::optional<Truncation>& truncation) {
  ToolResult result;
  result.content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  if (truncation) result.details = json::object{{"truncation", to_json(*truncation)}};
  return result;
}

/// The text to show for a scan (CA-26).
ToolResult present(const Scan& scan, std::size_t start, std::optional<std::size_t> limit, const std::string& path) {
  const std::size_t available = scan.pieces - start;
  const std::size_t chosen = limit ? std::min(*limit, available) : available;
  const std::size_t lines = chosen == 0 ? 0 : chosen - (scan.last_is_empty ? 1 : 0);
  const std::string beginning = utf8::replace_invalid(scan.text);
  const bool whole = scan.chosen_bytes == scan.text.size();
  const Truncation t =
      truncate_head(beginning, {}, lines, whole ? beginning.size() : std::max(scan.chosen_bytes, beginning.size()));
  const std::size_t first_line = start + 1;
  if (t.first_line_exceeds_limit) {
    return text_result(fmt::format("[Line {} is {}, exceeds {} limit. Use bash: sed -n '{}p' {} | head -c {}]",
                                   first_line, format_size(scan.first_bytes), format_size(t.limits.max_bytes),
                                   first_line, path, t.limits.max_bytes),
                       t);
  }
  if (t.truncated) {
    const std::size_t last_line = start + t.output_lines;
    const std::string by_bytes =
        t.truncated_by == "bytes" ? fmt::format(" ({} limit)", format_size(t.limits.max_bytes)) : "";
    std::string text = fmt::format("{}\n\n[Showing lines {}-{} of {}{}. Use offset={} to continue.]", t.content,
                                   first_line, last_line, scan.pieces, by_bytes, last_line + 1);
    return text_result(std::move(text), t);
  }
  if (limit && chosen < available) {
    return text_result(fmt::format("{}\n\n[{} more lines in file. Use offset={} to continue.]", t.content,
                                   available - chosen, start + chosen + 1),
                       std::nullopt);
  }
  return text_result(t.content, std::nullopt);
}

/// The image, or why it was left out (CA-24).
ToolResult image_result(const std::filesystem::path& path, const ImageInfo& found, bool resize,
                        bool model_takes_images) {
  auto bytes = read_file(path);
  if (!bytes) throw ToolFailure(bytes.error().message);
  auto image = prepare_image(*std::move(bytes), resize);
  std::string text = fmt::format("Read image file [{}]", image ? image->mime_type : found.mime_type);
  if (!image) {
    text += fmt::format("\n[Image omitted: {}.]", image.error());
  } else {
    for (const std::string& note : image->notes)
      text += "\n" + note;
    if (!model_takes_images) text += "\n[The current model does not take images; it does not see this one.]";
  }
  ToolResult result;
  result.content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  if (image) result.content.emplace_back(ai::ImageContent{base64_encode(image->bytes), image->mime_type, {}});
  return result;
}

/// A piece number or count as a model sends it: any number.
std::size_t at_least_zero(double number) {
  constexpr double kMost = 1e15;
  return number > 0 ? static_cast<std::size_t>(std::min(std::floor(number), kMost)) : 0;
}

/// What a call asks for, and what it needs to know of the session.
struct Request {
  std::string given;  // the path as the model wrote it
  std::filesystem::path path;
  std::size_t offset = 0;
  std::optional<std::size_t> limit;
  bool resize_images = true;
  bool model_takes_images = false;
};

ToolResult read(const Request& request, const std::stop_token& stop) {
  const std::filesystem::path& path = request.path;
  const File file(path);
  if (file.fd() < 0) throw ToolFailure(system_error_text(errno, "access", path));
  struct stat info{};
  if (::fstat(file.fd(), &info) != 0) throw ToolFailure(system_error_text(errno, "fstat", path));
  if (S_ISDIR(info.st_mode)) throw ToolFailure("EISDIR: illegal operation on a directory, read");
  if (!S_ISREG(info.st_mode)) {
    throw ToolFailure(
        fmt::format("{} is no regular file (a device, a pipe or a socket) and cannot be read", request.given));
  }

  std::string beginning(kSniff, '\0');
  const ssize_t n = ::read(file.fd(), beginning.data(), beginning.size());
  beginning.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (const std::optional<ImageInfo> image = image_info(beginning)) {
    return image_result(path, *image, request.resize_images, request.model_takes_images);
  }

  const std::size_t start = request.offset > 0 ? request.offset - 1 : 0;
  const std::size_t last = request.limit ? start + *request.limit : SIZE_MAX;
  const Scan scan = scan_file(file.fd(), beginning, start, last, stop);
  if (start >= scan.pieces) {
    throw ToolFailure(fmt::format("Offset {} is beyond end of file ({} lines total)", request.offset, scan.pieces));
  }
  return present(scan, start, request.limit, request.given);
}

/// Files below this size are read at once; the others must not hold up the screen.
constexpr off_t kSmallFile = 256 * 1024;

asio::awaitable<ToolResult> run(std::shared_ptr<const ToolEnvironment> environment, json::object arguments,
                                std::stop_token stop) {
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");
  Request request;
  request.given = json::string_or(arguments, "path");
  request.path = existing_tool_path(request.given, environment->cwd);
  request.offset = at_least_zero(json::number_or(arguments, "offset", 0));
  if (const auto number = json::find_number(arguments, "limit")) request.limit = at_least_zero(*number);
  request.resize_images = environment->resize_images;
  request.model_takes_images = environment->model_takes_images && environment->model_takes_images();

  struct stat info{};
  const bool small = ::stat(request.path.c_str(), &info) == 0 && info.st_size < kSmallFile;
  if (small) co_return read(request, stop);
  auto work = [request = std::move(request), stop] { return read(request, stop); };
  ToolResult result = co_await run_blocking(std::move(work));
  co_return result;
}

}  // namespace

BuiltinTool make_read_tool(ToolEnvironment environment) {
  BuiltinTool read;
  read.tool.label = "read";
  read.tool.declaration.name = "read";
  read.tool.declaration.description =
      "Read a file. Text comes back as it is; images (jpg, png, gif, webp, bmp) come back as attachments. Text is cut "
      "after 2000 lines or 50KB, whichever comes first. For a large file use offset and limit, and go on with offset "
      "until you have all of it.";
  read.tool.declaration.parameters = {
      {"type", "object"},
      {"required", json::array{"path"}},
      {"properties",
       json::object{{"path", json::object{{"type", "string"}, {"description", "File to read, relative or absolute"}}},
                    {"offset", json::object{{"type", "number"}, {"description", "First line to read, counted from 1"}}},
                    {"limit", json::object{{"type", "number"}, {"description", "Most lines to read"}}}}}};
  const auto shared = std::make_shared<const ToolEnvironment>(std::move(environment));
  read.tool.execute = [shared](std::string, json::object arguments, std::stop_token stop, agent::ToolUpdate) {
    return run(shared, std::move(arguments), std::move(stop));
  };
  read.snippet = "Show the contents of a file";
  read.guidelines = {"Look at files with read, not with cat or sed."};
  return read;
}

}  // namespace tau::coding
