// UTF-8, WTF-8 and UTF-16 lengths.
//
// Text inside tau is WTF-8: UTF-8 that may also hold lone surrogates, because pi's files may (AI-9). Text that leaves
// for a provider, a terminal or a tool is UTF-8: call remove_lone_surrogates or replace_invalid first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tau::utf8 {

/// Appends the code point (a surrogate too: three bytes).
void append(std::string& out, char32_t code_point);

/// Appends WTF-8 text to WTF-8 text. A high surrogate at the end of `out` and a low one at the start of `text` join
/// into one character, as they would in a JavaScript string.
void append_wtf8(std::string& out, std::string_view text);

struct Decoded {
  char32_t code_point;  // U+FFFD for an invalid sequence
  std::size_t length;   // bytes taken, at least 1; for an invalid sequence its maximal subpart
  bool valid;
};
/// Decodes the character at the start of `text` (not empty). Surrogates (WTF-8) are valid here.
Decoded decode(std::string_view text);

bool is_valid(std::string_view text);  // strict UTF-8: no surrogates

/// Invalid sequences, surrogates included, become U+FFFD each (as a browser's TextDecoder does).
std::string replace_invalid(std::string_view text);

/// Deletes lone surrogates and nothing else (AI-40). `text` is WTF-8.
std::string remove_lone_surrogates(std::string_view text);
bool has_lone_surrogates(std::string_view text);

/// Length in UTF-16 code units (AI-8). `text` is WTF-8.
std::size_t utf16_length(std::string_view text);
/// Length in code points.
std::size_t length(std::string_view text);

/// The longest prefix of at most `units` UTF-16 code units that does not split a character.
std::string_view prefix_utf16(std::string_view text, std::size_t units);
/// The longest prefix of at most `count` code points.
std::string_view prefix(std::string_view text, std::size_t count);

/// Number of bytes at the end of `text` that are the beginning of a multi-byte character that may still be completed
/// (0 to 3). For decoding a stream piece by piece.
std::size_t incomplete_tail(std::string_view text);

/// White space as JavaScript's trim() sees it, U+FEFF and U+2028 included (SES-34).
bool is_space(char32_t code_point);
std::string_view trim(std::string_view text);
std::string_view trim_end(std::string_view text);
bool is_blank(std::string_view text);

}  // namespace tau::utf8
