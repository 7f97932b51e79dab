#include "ai/partial_json.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::size_t kMaxDepth = 2000;
constexpr json::ParseOptions kArguments{.wtf8 = true};

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20;
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// The character that a one-letter escape stands for; 0 when there is no such escape.
char escaped_character(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

/// Like utf8::append_wtf8: halves of a surrogate pair join.
void append_text(json::string& out, std::string_view text) {
  if (!text.empty() && text.front() == '\xED' && out.size() >= 3 && out[out.size() - 3] == '\xED') {
    std::string joined(out.data() + out.size() - 3, 3);
    out.resize(out.size() - 3);
    utf8::append_wtf8(joined, text);
    out.append(joined);
  } else {
    out.append(text);
  }
}

struct Word {
  std::string_view text;
  std::optional<bool> meaning;  // nothing = null
  std::size_t shortest;         // so many characters at the end of the text are taken for the word
};

/// The words of JavaScript's number type have no JSON form: they are null, as JSON.stringify writes them.
constexpr Word kWords[] = {{"null", {}, 1},     {"true", true, 1},    {"false", false, 1},
                           {"Infinity", {}, 1}, {"-Infinity", {}, 2}, {"NaN", {}, 1}};

/// A word or number, cut off when not `complete`; nothing when it is neither.
std::optional<json::value> read_scalar(std::string_view text, bool complete) {
  for (const Word& word : kWords) {
    const bool cut_off = !complete && text.size() >= word.shortest && word.text.starts_with(text);
    if (text == word.text || cut_off) return word.meaning ? json::value(*word.meaning) : json::value(nullptr);
  }
  if (auto number = json::parse(text)) return *std::move(number);
  // "12e+" is 12 so far.
  if (const std::size_t e = text.rfind('e'); e != std::string_view::npos) {
    if (auto number = json::parse(text.substr(0, e))) return *std::move(number);
  }
  return std::nullopt;
}

}  // namespace

std::string repair_json_literals(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!inside) {
      inside = c == '"';
      out += c;
    } else if (c == '"') {
      inside = false;
      out += c;
    } else if (c == '\\') {
      const bool escape = i + 1 < text.size() && (text[i + 1] == 'u' || escaped_character(text[i + 1]) != 0);
      if (escape) {
        out += c;
        out += text[++i];
      } else {
        out += "\\\\";
      }
    } else if (is_control(c)) {
      // The writer knows the short forms; it adds quotes.
      std::string literal;
      json::write(literal, std::string_view(&c, 1));
      out += std::string_view(literal).substr(1, literal.size() - 2);
    } else {
      out += c;
    }
  }
  return out;
}

FinalArguments parse_final_arguments(std::string_view text) {
  const std::string_view trimmed = utf8::trim(text);
  if (trimmed.empty()) return {json::object{}, true};
  if (auto parsed = json::parse(trimmed, kArguments)) return {*std::move(parsed), true};
  const std::string repaired = repair_json_literals(trimmed);
  if (repaired != trimmed) {
    if (auto parsed = json::parse(repaired, kArguments)) return {*std::move(parsed), true};
  }
  // Blanks at the end stay: they may belong to a string that goes on.
  text.remove_prefix(static_cast<std::size_t>(trimmed.data() - text.data()));
  PartialJson preview(PartialJson::Literals::kAsWritten);
  preview.feed(text);
  if (preview.has_value()) return {preview.value(), false};
  PartialJson second(PartialJson::Literals::kAsWritten);
  second.feed(repaired);
  return {second.value(), false};
}

json::value parse_streaming_json(std::string_view text) {
  return parse_final_arguments(text).value;
}

void PartialJson::feed(std::string_view delta) {
  while (!delta.empty() && state_ != State::kEnd) {
    if (state_ == State::kString) {
      delta.remove_prefix(feed_string(delta));
      continue;
    }
    const char c = delta.front();
    delta.remove_prefix(1);
    if (state_ == State::kEscape) {
      feed_escape(c);
    } else if (state_ == State::kScalar) {
      feed_scalar(c);
    } else {
      feed_structure(c);
    }
  }
}

/// Takes at least one byte of an open string and returns how many.
std::size_t PartialJson::feed_string(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] != '"' && text[end] != '\\' && !is_control(text[end]))
    ++end;
  if (end > 0) {
    if (!string_is_frozen_) append_text(*string_, text.substr(0, end));
    return end;
  }
  const char c = text.front();
  if (c == '"') {
    end_string();
  } else if (c == '\\') {
    if (string_is_frozen_) {
      give_up();
    } else {
      escape_.clear();
      state_ = State::kEscape;
    }
  } else if (literals_ == Literals::kAsWritten) {
    give_up();
  } else {
    string_->push_back(c);
  }
  return 1;
}

void PartialJson::feed_escape(char c) {
  if (escape_.empty()) {
    if (c == 'u') {
      escape_ = "u";
      return;
    }
    if (const char meaning = escaped_character(c); meaning != 0) {
      string_->push_back(meaning);
      state_ = State::kString;
      return;
    }
    broken_escape();
  } else if (is_hex(c)) {
    escape_ += c;
    if (escape_.size() < 5) return;
    unsigned unit = 0;
    std::from_chars(escape_.data() + 1, escape_.data() + 5, unit, 16);
    std::string encoded;
    utf8::append(encoded, unit);
    append_text(*string_, encoded);
    state_ = State::kString;
    return;
  } else {
    broken_escape();
  }
  // The character that did not fit may itself end the string or begin the next escape.
  if (state_ == State::kString) feed_string(std::string_view(&c, 1));
}

void PartialJson::broken_escape() {
  if (literals_ == Literals::kAsWritten) {
    string_is_frozen_ = true;
  } else {
    string_->push_back('\\');
    string_->append(escape_);
  }
  state_ = State::kString;
}

void PartialJson::feed_scalar(char c) {
  // A word ends with its last letter, a number with what cannot go on.
  const bool is_word =
      std::any_of(std::begin(kWords), std::end(kWords), [&](const Word& word) { return word.text == scalar_; });
  if (!is_word && c != ',' && c != ']' && c != '}' && !is_blank(c)) {
    scalar_ += c;
    return;
  }
  if (!show_scalar(true)) {
    give_up();
    return;
  }
  state_ = containers_.empty() ? State::kEnd : State::kAfterValue;
  if (state_ == State::kAfterValue) feed_structure(c);
}

void PartialJson::feed_structure(char c) {
  if (is_blank(c)) return;
  switch (state_) {
    case State::kFirstItem:
      if (c == ']') {
        close();
        return;
      }
      [[fallthrough]];
    case State::kValue:
      // A byte-order mark before the first value counts as a blank.
      if (!containers_.empty() || (c != '\xEF' && c != '\xBB' && c != '\xBF')) begin_value(c);
      return;
    case State::kKey:
      if (c == '"') {
        begin_string(true);
      } else if (c == '}') {
        close();
      } else {
        state_ = State::kEnd;
      }
      return;
    case State::kColon:
      state_ = c == ':' ? State::kValue : State::kEnd;
      return;
    case State::kAfterValue: {
      const bool in_object = containers_.back()->is_object();
      if (c == (in_object ? '}' : ']')) {
        close();
      } else if (c == ',') {
        state_ = in_object ? State::kKey : State::kFirstItem;
      } else if (!in_object) {
        begin_value(c);
      } else if (c == '"') {
        begin_string(true);
      } else {
        state_ = State::kEnd;
      }
      return;
    }
    case State::kString:
    case State::kEscape:
    case State::kScalar:
    case State::kEnd:
      return;
  }
}

void PartialJson::begin_value(char c) {
  if (c == '"') {
    begin_string(false);
  } else if (c == '{') {
    open(json::object{}, State::kKey);
  } else if (c == '[') {
    open(json::array{}, State::kFirstItem);
  } else if (c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
    scalar_ = c;
    scalar_shown_ = false;
    displaced_.reset();
    state_ = State::kScalar;
  } else {
    state_ = State::kEnd;
  }
}

void PartialJson::begin_string(bool key) {
  string_is_key_ = key;
  string_is_frozen_ = false;
  if (key) {
    key_.clear();
    string_ = &key_;
  } else {
    string_ = &add_slot().emplace_string();
  }
  state_ = State::kString;
}

void PartialJson::end_string() {
  if (string_is_frozen_) {
    give_up();
  } else if (string_is_key_) {
    state_ = State::kColon;
  } else {
    state_ = containers_.empty() ? State::kEnd : State::kAfterValue;
  }
}

void PartialJson::open(json::value container, State next) {
  if (containers_.size() >= kMaxDepth) {
    state_ = State::kEnd;
    return;
  }
  json::value& slot = add_slot();
  slot = std::move(container);
  containers_.push_back(&slot);
  state_ = next;
}

void PartialJson::close() {
  containers_.pop_back();
  state_ = containers_.empty() ? State::kEnd : State::kAfterValue;
}

/// What is being read cannot become a value: it is dropped, and what stands before it is all there will be.
void PartialJson::give_up() {
  const bool inside_value = state_ == State::kScalar ? scalar_shown_ : !string_is_key_;
  if (inside_value) remove_slot();
  state_ = State::kEnd;
}

json::value& PartialJson::add_slot() {
  if (containers_.empty()) {
    has_root_ = true;
    return root_;
  }
  json::value& container = *containers_.back();
  if (json::array* items = container.if_array()) return items->emplace_back(nullptr);
  return container.get_object()[key_];
}

void PartialJson::remove_slot() {
  if (containers_.empty()) {
    has_root_ = false;
    root_ = nullptr;
  } else if (json::array* items = containers_.back()->if_array()) {
    items->pop_back();
  } else {
    containers_.back()->get_object().erase(key_);
  }
}

/// Puts the number or word read so far into its place, or takes it away when it is none (yet).
bool PartialJson::show_scalar(bool complete) {
  std::optional<json::value> found = read_scalar(scalar_, complete);
  if (!found) {
    if (displaced_) {
      current_slot() = *std::exchange(displaced_, std::nullopt);
    } else if (scalar_shown_) {
      remove_slot();
    }
    scalar_shown_ = false;
    return false;
  }
  if (scalar_shown_) {
    current_slot() = *std::move(found);
    return true;
  }
  json::object* members = containers_.empty() ? nullptr : containers_.back()->if_object();
  if (json::value* earlier = members != nullptr ? members->if_contains(key_) : nullptr) {
    displaced_ = std::exchange(*earlier, *std::move(found));
  } else {
    displaced_.reset();
    add_slot() = *std::move(found);
  }
  scalar_shown_ = true;
  return true;
}

/// Where the shown scalar stands.
json::value& PartialJson::current_slot() {
  if (containers_.empty()) return root_;
  if (json::array* items = containers_.back()->if_array()) return items->back();
  return containers_.back()->get_object().at(key_);
}

bool PartialJson::has_value() {
  if (state_ == State::kScalar) show_scalar(false);
  return has_root_ && !root_.is_null();
}

const json::value& PartialJson::value() {
  static const json::value nothing = json::object{};
  return has_value() ? root_ : nothing;
}

}  // namespace tau::ai
