#include "coding/config/json_position.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"

namespace tau::coding {

namespace {

/// Walks over a text that is known to be valid.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  std::size_t find(const std::vector<JsonStep>& path) {
    skip_blanks();
    std::size_t found = at_;
    for (const JsonStep& step : path) {
      if (!enter(step)) break;
      found = at_;
    }
    return 1 + static_cast<std::size_t>(
                   std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(found), '\n'));
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view take_string() {  // with its quotes
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"')
      at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
    return text_.substr(begin, at_ - begin);
  }

  void skip_value() {
    int depth = 0;
    do {
      skip_blanks();
      const char c = peek();
      if (c == '\0') return;
      if (c == '"') {
        take_string();
      } else {
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        if (std::string_view("{}[],:").find(c) != std::string_view::npos) {
          ++at_;
        } else {
          at_ = std::min(text_.find_first_of(",:]}{[ \t\r\n/\"", at_ + 1), text_.size());
        }
      }
    } while (depth > 0);
  }

  /// Moves to the member or item; false when there is none. Of equal names the last one counts, as for the reader.
  bool enter(const JsonStep& step) {
    const auto* name = std::get_if<std::string>(&step);
    if (peek() != (name != nullptr ? '{' : '[')) return false;
    ++at_;
    std::size_t found = std::string_view::npos;
    for (std::size_t index = 0;; ++index) {
      skip_blanks();
      if (peek() == ',') {
        ++at_;
        skip_blanks();
      }
      if (peek() == '}' || peek() == ']' || peek() == '\0') break;
      bool wanted = false;
      if (name != nullptr) {
        const auto key = json::parse(take_string());
        wanted = key && key->is_string() && json::view(key->get_string()) == *name;
        skip_blanks();
        ++at_;  // the colon
        skip_blanks();
      } else {
        wanted = index == std::get<std::size_t>(step);
      }
      if (wanted) found = at_;
      skip_value();
    }
    if (found == std::string_view::npos) return false;
    at_ = found;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t line_of(std::string_view text, const std::vector<JsonStep>& path) {
  return Walker(text).find(path);
}

std::string to_text(const std::vector<JsonStep>& path) {
  std::string out;
  for (const JsonStep& step : path) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      if (!out.empty()) out += '.';
      out += *name;
    } else {
      out += fmt::format("[{}]", std::get<std::size_t>(step));
    }
  }
  return out;
}

}  // namespace tau::coding
