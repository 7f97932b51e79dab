#include "coding/resources/prompt_templates.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "coding/resources/front_matter.h"

namespace tau::coding {

namespace {

constexpr std::size_t kDescriptionLength = 60;  // UTF-16 units, CA-131

std::string first_line_of(std::string_view content) {
  while (!content.empty()) {
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (utf8::is_blank(line)) continue;
    if (utf8::utf16_length(line) <= kDescriptionLength) return std::string(line);
    return std::string(utf8::prefix_utf16(line, kDescriptionLength)) + "...";
  }
  return {};
}

bool is_word(char32_t c) {
  return (c >= U'0' && c <= U'9') || (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || c >= 0xC0;
}

char32_t code_point_before(std::string_view text, std::size_t at) {
  if (at == 0) return U' ';
  std::size_t begin = at - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    --begin;
  return utf8::decode(text.substr(begin)).code_point;
}

char32_t code_point_at(std::string_view text, std::size_t at) {
  return at < text.size() ? utf8::decode(text.substr(at)).code_point : U' ';
}

/// "don't": an apostrophe with a letter on both sides never quotes (FF-116).
bool is_inside_word(std::string_view text, std::size_t at) {
  return text[at] == '\'' && is_word(code_point_before(text, at)) && is_word(code_point_at(text, at + 1));
}

/// Where the quote that opens at `at` is closed; npos when it is text.
std::size_t closing_quote(std::string_view text, std::size_t at) {
  if (text[at] == '\'' && is_word(code_point_before(text, at))) return std::string_view::npos;  // dogs' tails
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == text[at] && !is_inside_word(text, i)) return i;
  }
  return std::string_view::npos;
}

/// A placeholder at the start of a text: how long it is and what stands for it.
struct Placeholder {
  std::size_t length = 0;
  std::string text;
};

class Filler {
 public:
  explicit Filler(const std::vector<std::string>& arguments) : arguments_(arguments) {
    all_ = fmt::format("{}", fmt::join(arguments, " "));
  }

  Placeholder at(std::string_view text) const {
    if (text.starts_with("${")) return braced(text);
    if (text.starts_with("$ARGUMENTS")) return {10, all_};
    if (text.starts_with("$@")) return {2, all_};
    const std::size_t digits = digits_in(text.substr(1));
    if (digits > 0) return {1 + digits, argument(to_number(text.substr(1, digits)))};
    return {};
  }

 private:
  static std::size_t digits_in(std::string_view text) {
    return std::min(text.find_first_not_of("0123456789"), text.size());
  }

  static std::size_t to_number(std::string_view digits) {
    std::size_t number = 0;
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return failed == std::errc{} ? number : std::numeric_limits<std::size_t>::max();
  }

  std::string argument(std::size_t number) const {
    return number >= 1 && number <= arguments_.size() ? arguments_[number - 1] : std::string();
  }

  /// ${N:-d}  ${@:-d}  ${ARGUMENTS:-d}  ${@:N}  ${@:N:L}; anything else in braces is text.
  Placeholder braced(std::string_view text) const {
    const std::size_t close = text.find('}');
    if (close == std::string_view::npos) return {};
    std::string_view inner = text.substr(2, close - 2);
    const std::size_t colon = inner.find(':');
    if (colon == std::string_view::npos) return {};
    const std::string_view name = inner.substr(0, colon);
    const std::string_view rest = inner.substr(colon + 1);
    const bool is_number = !name.empty() && digits_in(name) == name.size();
    if (!is_number && name != "@" && name != "ARGUMENTS") return {};
    if (rest.starts_with('-')) {
      std::string value = is_number ? argument(to_number(name)) : all_;
      if (value.empty()) value = rest.substr(1);
      return {close + 1, std::move(value)};
    }
    const std::size_t first_digits = digits_in(rest);
    if (name != "@" || first_digits == 0) return {};
    const std::size_t first = std::max<std::size_t>(to_number(rest.substr(0, first_digits)), 1) - 1;
    std::size_t count = arguments_.size();
    if (const std::string_view more = rest.substr(first_digits); !more.empty()) {
      if (more[0] != ':' || more.size() == 1 || digits_in(more.substr(1)) != more.size() - 1) return {};
      count = to_number(more.substr(1));
    }
    std::string joined;
    for (std::size_t i = first; i < arguments_.size() && i - first < count; ++i) {
      if (i > first) joined += ' ';
      joined += arguments_[i];
    }
    return {close + 1, std::move(joined)};
  }

  const std::vector<std::string>& arguments_;
  std::string all_;
};

}  // namespace

std::expected<PromptTemplate, Error> parse_prompt_template(const std::string& file_name, std::string_view text) {
  auto front = split_front_matter(text);
  if (!front) return std::unexpected(front.error());
  PromptTemplate out;
  out.name = file_name.substr(0, file_name.size() - std::string_view(".md").size());
  out.content = std::move(front->body);
  out.description = scalar_text(front->values, "description");
  if (out.description.empty()) out.description = first_line_of(out.content);
  if (std::string hint = scalar_text(front->values, "argument-hint"); !hint.empty())
    out.argument_hint = std::move(hint);
  return out;
}

PromptTemplates load_prompt_templates(const std::vector<ResourceFile>& files) {
  PromptTemplates out;
  for (const ResourceFile& file : files) {
    const std::string name = file.path.filename().string();
    if (!name.ends_with(".md")) continue;
    const auto bytes = read_file(file.path);
    if (!bytes) {
      out.warnings.push_back(bytes.error().message);
      continue;
    }
    auto read = parse_prompt_template(name, *bytes);
    if (!read) {
      out.warnings.push_back(
          fmt::format("Prompt template {} is left out: {}", file.path.string(), read.error().message));
      continue;
    }
    const bool known = std::any_of(out.templates.begin(), out.templates.end(),
                                   [&](const PromptTemplate& existing) { return existing.name == read->name; });
    if (known) continue;
    read->file = file.path;
    read->origin = file.origin;
    out.templates.push_back(*std::move(read));
  }
  return out;
}

std::vector<std::string> parse_arguments(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = utf8::decode(text.substr(i));
    if (utf8::is_space(c.code_point)) {
      if (in_word) out.push_back(std::exchange(word, {}));
      in_word = false;
      i += c.length;
      continue;
    }
    in_word = true;
    if (c.code_point == U'"' || c.code_point == U'\'') {
      if (const std::size_t close = closing_quote(text, i); close != std::string_view::npos) {
        word += text.substr(i + 1, close - i - 1);
        i = close + 1;
        continue;
      }
    }
    word += text.substr(i, c.length);
    i += c.length;
  }
  if (in_word) out.push_back(std::move(word));
  return out;
}

std::string fill_template(std::string_view content, const std::vector<std::string>& arguments) {
  const Filler filler(arguments);
  std::string out;
  while (!content.empty()) {
    const std::size_t dollar = content.find('$');
    out += content.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    content.remove_prefix(dollar);
    Placeholder placeholder = filler.at(content);
    if (placeholder.length == 0) placeholder = {1, "$"};
    out += placeholder.text;
    content.remove_prefix(placeholder.length);
  }
  return out;
}

std::optional<std::string> expand_prompt_template(std::string_view input,
                                                  const std::vector<PromptTemplate>& templates) {
  if (!input.starts_with('/')) return std::nullopt;
  input.remove_prefix(1);
  std::size_t end = 0;
  while (end < input.size()) {
    const auto c = utf8::decode(input.substr(end));
    if (utf8::is_space(c.code_point)) break;
    end += c.length;
  }
  const std::string_view name = input.substr(0, end);
  const auto found =
      std::find_if(templates.begin(), templates.end(), [&](const PromptTemplate& t) { return t.name == name; });
  if (found == templates.end()) return std::nullopt;
  return fill_template(found->content, parse_arguments(input.substr(end)));
}

}  // namespace tau::coding
