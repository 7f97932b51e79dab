#include "coding/session/html_export.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "coding/session/html_page.h"
#include "coding/session/session_file.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

using Sink = std::function<void(std::string_view piece)>;

/// Base64 of a text that comes in pieces.
class Base64Writer {
 public:
  explicit Base64Writer(const Sink& write) : write_(write) {}

  void add(std::string_view bytes) {
    waiting_ += bytes;
    if (waiting_.size() >= kPiece) flush(waiting_.size() / 3 * 3);
  }
  void finish() { flush(waiting_.size()); }

 private:
  static constexpr std::size_t kPiece = std::size_t{3} << 16;

  void flush(std::size_t count) {
    write_(base64_encode(std::string_view(waiting_).substr(0, count)));
    waiting_.erase(0, count);
  }

  const Sink& write_;
  std::string waiting_;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void write_data(const Session& session, const ExportDetails& details, const Sink& write) {
  Base64Writer out(write);
  out.add(R"({"header":)");
  out.add(json::to_text(session.header()));
  out.add(R"(,"entries":[)");
  const EntryIndex& index = session.index();
  bool first = true;
  for (EntryNumber n = 0; n < index.size(); ++n) {
    // Decoded to know that it is whole; copied as it stands where that is possible.
    const json::value record = index.decode(n);
    if (!record.is_object()) continue;
    if (!first) out.add(",");
    first = false;
    const std::string_view text = index.text(n);
    if (utf8::is_valid(text)) {
      out.add(text);
    } else {
      out.add(json::to_text(record));
    }
  }
  out.add(R"(],"leafId":)");
  out.add(session.leaf() ? json::to_text(id_value(*session.leaf())) : "null");
  if (!details.system_prompt.empty()) {
    out.add(R"(,"systemPrompt":)");
    out.add(json::to_text(json::value(details.system_prompt)));
  }
  if (!details.tools.empty()) {
    out.add(R"(,"tools":)");
    out.add(json::to_text(details.tools));
  }
  out.add("}");
  out.finish();
}

}  // namespace

void write_html(const Session& session, const ExportDetails& details, const Sink& write) {
  const std::string title = escaped(utf8::replace_invalid(session.name().value_or("Session " + session.id())));
  write(
      fmt::format("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  // No other origin, no request of any kind: whatever the data holds cannot call home.
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                  "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action "
                  "'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>{}</title>\n<style>\n",
                  title));
  write(html_style());
  write(
      "</style>\n</head>\n<body>\n<div id=\"app\"><noscript>This page shows its session with a script, which is "
      "switched off here.</noscript></div>\n<script id=\"session-data\" type=\"application/json\">");
  write_data(session, details, write);
  write("</script>\n<script>\n");
  write(html_script());
  write("</script>\n</body>\n</html>\n");
}

std::expected<void, Error> export_html(const Session& session, const fs::path& target, const ExportDetails& details) {
  const auto failed = [&](int code) {
    return std::unexpected(error(fmt::format("cannot write {}: {}", target.string(), std::strerror(code))));
  };
  const fs::path temporary = target.parent_path() / fmt::format(".{}.{}", target.filename().string(), random_hex(8));
  int code = 0;
  {
    const SessionDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file) return failed(errno);
    write_html(session, details, [&](std::string_view piece) {
      while (!piece.empty() && code == 0) {
        const ssize_t n = ::write(file.get(), piece.data(), piece.size());
        if (n > 0) {
          piece.remove_prefix(static_cast<std::size_t>(n));
        } else if (errno != EINTR) {
          code = errno;
        }
      }
    });
  }
  if (code == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) code = errno;
  if (code == 0) return {};
  ::unlink(temporary.c_str());
  return failed(code);
}

std::string html_file_name(const fs::path& session_file) {
  return fmt::format("pi-session-{}.html", session_file.stem().string());
}

}  // namespace tau::coding
