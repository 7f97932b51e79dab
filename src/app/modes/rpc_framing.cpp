#include "app/modes/rpc_framing.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::app {

namespace {

constexpr std::size_t kKeptBuffer = std::size_t{1} << 20;  // bytes

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Walks over one JSON text that is known to be well formed.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  bool enter_object() {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != '{') return false;
    ++at_;
    return true;
  }

  /// The next member's key and value; nothing at the end of the object.
  std::optional<std::pair<std::string_view, std::string_view>> member() {
    skip_blanks();
    while (at_ < text_.size() && text_[at_] == ',') {
      ++at_;
      skip_blanks();
    }
    if (at_ >= text_.size() || text_[at_] != '"') return std::nullopt;
    const std::string_view key = value();
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != ':') return std::nullopt;
    ++at_;
    skip_blanks();
    return std::pair{key, value()};
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_]))
      ++at_;
  }

  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }

  std::string_view value() {
    const std::size_t begin = at_;
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
        if (depth == 0) break;
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']' || c == ':' || is_blank(c))) break;
      if (c == '{' || c == '[') ++depth;
      ++at_;
      if ((c == '}' || c == ']') && --depth == 0) break;
    }
    return text_.substr(begin, std::min(at_, text_.size()) - begin);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Unknown commands are named in the reply; what cannot be a name is not repeated at any length.
std::string shown_type(std::string_view type) {
  constexpr std::size_t kLongest = 200;  // bytes
  return type.size() <= kLongest ? std::string(type) : utf8::replace_invalid(type.substr(0, kLongest)) + "...";
}

std::string begin_of_reply(const std::optional<std::string>& id) {
  std::string line = "{";
  if (id) line += fmt::format("\"id\":{},", *id);
  line += R"("type":"response")";
  return line;
}

std::string failure_without_command(const std::optional<std::string>& id, std::string_view message) {
  std::string line = begin_of_reply(id) + R"(,"success":false,"error":)";
  json::write(line, message);
  return line + "}\n";
}

}  // namespace

std::optional<std::string> LineSplitter::next() {
  const std::size_t end = buffer_.find('\n', std::max(searched_, begin_));
  if (end == std::string::npos) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched_ = buffer_.size();
    if (buffer_.empty() && buffer_.capacity() > kKeptBuffer) buffer_.shrink_to_fit();
    return std::nullopt;
  }
  std::size_t length = end - begin_;
  if (length > 0 && buffer_[end - 1] == '\r') --length;
  std::string line = buffer_.substr(begin_, length);
  begin_ = searched_ = end + 1;
  return line;
}

std::string LineSplitter::rest() {
  std::string line = buffer_.substr(begin_);
  buffer_.clear();
  begin_ = searched_ = 0;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

std::string_view raw_member(std::string_view text, std::string_view key) {
  std::string quoted;
  json::write(quoted, key);
  std::string_view found;
  Walk walk(text);
  if (!walk.enter_object()) return found;
  while (const auto member = walk.member()) {
    if (member->first == quoted) found = member->second;
  }
  return found;
}

std::expected<RpcRequest, NotACommand> read_request(std::string_view line) {
  auto parsed = json::parse(line);
  if (!parsed) {
    std::string reply = R"({"type":"response","command":"parse","success":false,"error":)";
    json::write(reply, fmt::format("Failed to parse command: {}", parsed.error().describe()));
    return std::unexpected(NotACommand{reply + "}\n"});
  }
  RpcRequest request;
  if (auto* body = parsed->if_object()) {
    if (const json::value* id = json::find(*body, "id")) {
      // Bytes that are no UTF-8 must not come back as they are, nor may a key that is written with escapes be lost.
      const std::string_view raw = raw_member(line, "id");
      const bool plain = !raw.empty() && raw.find('\n') == std::string_view::npos && utf8::replace_invalid(raw) == raw;
      request.id = plain ? std::string(raw) : json::to_text(*id);
    }
    request.body = std::move(*body);
  }
  const json::value* type = json::find(request.body, "type");
  if (type == nullptr)
    return std::unexpected(NotACommand{failure_without_command(request.id, "Unknown command: undefined")});
  if (!type->is_string()) {
    return std::unexpected(NotACommand{
        failure_without_command(request.id, fmt::format("Unknown command: {}", shown_type(json::to_text(*type))))});
  }
  request.type = json::view(type->get_string());
  return request;
}

std::string reply_line(const RpcRequest& request, const RpcAnswer& answer) {
  std::string line = begin_of_reply(request.id) + R"(,"command":)";
  json::write(line, shown_type(request.type));
  if (!answer) {
    line += R"(,"success":false,"error":)";
    json::write(line, utf8::replace_invalid(answer.error().message));  // may name a file in any bytes
  } else {
    line += R"(,"success":true)";
    if (!answer->empty()) {
      line += R"(,"data":)";
      line += *answer;
    }
  }
  line += "}\n";
  return line;
}

}  // namespace tau::app
