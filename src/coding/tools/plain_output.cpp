#include "coding/tools/plain_output.h"

#include <utility>

#include "base/utf8.h"

namespace tau::coding {

namespace {

constexpr char32_t kBell = 0x07;
constexpr char32_t kEscape = 0x1B;
constexpr char32_t kControlSequence = 0x9B;  // CSI as one character
constexpr char32_t kCommandString = 0x9D;    // OSC as one character
constexpr char32_t kStringEnd = 0x9C;        // ST as one character

bool is_left_out(char32_t c) {
  if (c < 0x20) return c != '\t' && c != '\n';
  return c >= 0xFFF9 && c <= 0xFFFB;
}

}  // namespace

std::string PlainOutput::add(std::string_view bytes) {
  std::string joined = std::move(pending_);
  joined += bytes;
  const std::size_t whole = joined.size() - utf8::incomplete_tail(joined);
  pending_ = joined.substr(whole);
  joined.resize(whole);
  if (!joined.empty() && std::exchange(at_start_, false) && joined.starts_with("\xEF\xBB\xBF")) joined.erase(0, 3);
  std::string out;
  take(out, utf8::is_valid(joined) ? joined : utf8::replace_invalid(joined));
  return out;
}

std::string PlainOutput::finish() {
  std::string out;
  const std::string rest = std::exchange(pending_, {});
  if (!rest.empty()) take(out, utf8::replace_invalid(rest));
  return out;
}

void PlainOutput::take(std::string& out, std::string_view text) {
  out.reserve(out.size() + text.size());
  while (!text.empty()) {
    if (state_ == State::kText) {
      std::size_t plain = 0;
      while (plain < text.size() && (static_cast<unsigned char>(text[plain]) - 0x20U < 0x60U || text[plain] == '\n'))
        ++plain;
      out += text.substr(0, plain);
      text.remove_prefix(plain);
      if (text.empty()) return;
    }
    const utf8::Decoded next = utf8::decode(text);
    step(out, next.code_point, text.substr(0, next.length));
    text.remove_prefix(next.length);
  }
}

void PlainOutput::step(std::string& out, char32_t c, std::string_view bytes) {
  switch (state_) {
    case State::kText:
      if (c == kEscape) {
        state_ = State::kEscape;
      } else if (c == kControlSequence) {
        state_ = State::kControl;
      } else if (c == kCommandString) {
        state_ = State::kString;
      } else if (!is_left_out(c)) {
        out += bytes;
      }
      return;
    case State::kEscape:
      if (c == '[') {
        state_ = State::kControl;
      } else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_') {
        state_ = State::kString;
      } else if (c >= 0x20 && c <= 0x2F) {
        state_ = State::kIntermediate;
      } else if (c >= 0x30 && c <= 0x7E) {
        state_ = State::kText;  // a sequence of two characters
      } else {
        state_ = State::kText;
        step(out, c, bytes);
      }
      return;
    case State::kIntermediate:
      if (c >= 0x20 && c <= 0x2F) return;
      state_ = State::kText;
      if (c < 0x30 || c > 0x7E) step(out, c, bytes);
      return;
    case State::kControl:
      if (c >= 0x20 && c <= 0x3F) return;
      state_ = State::kText;
      if (c < 0x40 || c > 0x7E) step(out, c, bytes);  // broken off
      return;
    case State::kString:
      if (c == kBell || c == kStringEnd) {
        state_ = State::kText;
      } else if (c == kEscape) {
        state_ = State::kStringEscape;
      } else if (c == '\n') {  // never ended: it must not swallow the rest of the output
        state_ = State::kText;
        out += '\n';
      }
      return;
    case State::kStringEscape:
      state_ = State::kText;
      if (c != '\\') {  // another sequence begins
        state_ = State::kEscape;
        step(out, c, bytes);
      }
      return;
  }
}

}  // namespace tau::coding
