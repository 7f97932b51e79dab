// Finding the records of a session file without decoding them (SES-33 to SES-37, FF-24, FF-25, FF-34).
//
// A resume needs of each record only its head: type, id, parent, time, and whose message it is. pi and tau write those
// first (records of extensions have them last), so a comparison of a few dozen bytes finds them, and a file is indexed
// at the speed at which it can be read: 100 MB (67,000 records) in about 25 ms, where decoding takes 300. Records that
// look any other way are decoded to find their head.
//
// What this trades away: a record in the middle of a file whose head is whole and whose last byte is a brace is taken
// to be whole. If it turns out not to be when it is decoded, it keeps its place in the tree, so that what hangs on it
// stays reachable, and has no content. The last record of a file, where crashes leave their traces, is always decoded.
//
// Lines end with LF and nothing else. A line with several records is split; a whole record behind a torn one counts
// (FF-24). A file is read in pieces: nothing is mapped, so a file that somebody cuts short cannot end the program.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "coding/session/entry.h"

namespace tau::coding {

/// Valid during the call of the sink only.
struct ScannedRecord {
  EntryHead head;
  std::string_view text;     // its JSON
  std::uint64_t offset = 0;  // of the text, in the file
  std::uint32_t line = 0;    // from 1
};

using RecordSink = std::function<void(const ScannedRecord& record)>;

class RecordScanner {
 public:
  /// Starts at byte `offset` of a file, in line `first_line`, and calls `sink` for each record, the header included.
  explicit RecordScanner(RecordSink sink, std::uint64_t offset = 0, std::uint32_t first_line = 1)
      : sink_(std::move(sink)), offset_(offset), line_(first_line) {}

  /// Reads from the file to its present end.
  std::expected<void, Error> scan_file(int descriptor) { return scan_file(descriptor, false); }
  /// Reads the first record only, if the file's first MiB has one (SES-38).
  std::expected<void, Error> scan_first_record(int descriptor) { return scan_file(descriptor, true); }
  /// A text that is in memory as a whole.
  void scan_text(std::string_view text);

  /// What could not be read, with line numbers; at most the first hundred, unless all are wanted, then one line with
  /// how many more.
  std::vector<std::string> take_warnings();
  void keep_all_warnings() { max_warnings_ = ~std::size_t{0}; }

  std::uint64_t end() const { return offset_; }      // first byte not read
  std::uint32_t next_line() const { return line_; }  // number of the line that begins there
  bool ends_with_newline() const { return at_line_start_; }

 private:
  std::expected<void, Error> scan_file(int descriptor, bool first_record_only);
  void scan_line(std::string_view line, bool is_last);
  void scan_carefully(std::string_view line);
  void give(json::value value, std::string_view text, std::uint64_t offset);
  void warn(std::string text);

  RecordSink sink_;
  std::uint64_t offset_;
  std::uint32_t line_;
  bool at_line_start_ = true;
  std::size_t records_ = 0;
  std::vector<std::string> warnings_;
  std::size_t max_warnings_ = 100;
  std::size_t more_warnings_ = 0;
};

/// The head of a record that is written the way pi and tau do; nothing when it looks any other way.
std::optional<EntryHead> quick_head(std::string_view line);

}  // namespace tau::coding
