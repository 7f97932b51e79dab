// From a file's bytes and a list of replacements to the new bytes (CA-44 to CA-50, FF-65 to FF-68). Pure.
//
// Text is looked for in two ways: as it is, and, when that finds nothing, in a normalised form (NFKC, no blanks at line
// ends, plain quotes, dashes and spaces). Both only locate: the place is mapped back to bytes of the file, and every
// byte outside it stays, whatever it is: mixed line ends, lone CRs, a byte-order mark, bytes that are no UTF-8. New
// text gets the line ends of the lines that it replaces.
//
// Normalising is the costly part. ASCII lines are copied, characters that NFKC leaves alone are skipped, and the map
// back is computed for the touched lines only: one edit in 10 MB takes some 20 ms.
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coding/tools/line_diff.h"

namespace tau::coding {

/// A file as matching and diffs see it: without a byte-order mark, every line end a `\n`. The bytes must outlive it.
class LfText {
 public:
  explicit LfText(std::string_view bytes);
  LfText(const LfText&) = delete;
  LfText& operator=(const LfText&) = delete;

  std::string_view view() const { return view_; }
  std::string_view bytes() const { return bytes_; }
  /// Where the character at `position` of view() begins in bytes(); view().size() gives bytes().size().
  std::size_t offset_in_bytes(std::size_t position) const;
  /// How the file writes the `\n` at `position` of view(): "\n", "\r\n" or "\r".
  std::string_view line_end(std::size_t position) const;

 private:
  std::string_view bytes_;
  std::string_view view_;
  std::string own_;                 // view_ when the bytes have a CR
  std::vector<std::size_t> crlfs_;  // positions in view_ of the `\n`s that are "\r\n" in the bytes
  std::size_t mark_ = 0;            // bytes of the byte-order mark
};

struct Replacement {
  std::string old_text;
  std::string new_text;
};

struct EditedText {
  std::string bytes;
  std::vector<TextWindow> changes;  // in LfText views of the old and the new bytes
};

/// Every `old_text` is looked for in the original. The error is the text for the model; it names the file by `path`.
std::expected<EditedText, std::string> apply_edits(const LfText& file, std::span<const Replacement> edits,
                                                   std::string_view path);

/// The form in which text is compared when it is not found as it is (CA-46). Line ends become `\n`.
std::string normalise_for_matching(std::string_view text);

}  // namespace tau::coding
