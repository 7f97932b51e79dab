// The records of a session: their heads in memory, their texts where they are, decoded when somebody asks.
//
// A record costs 64 bytes and its id; the texts of a file stay in the file. A long session is therefore opened at the
// price of its index, and only what is on the active path is ever decoded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "coding/session/entry.h"
#include "coding/session/record_scanner.h"

namespace tau::coding {

/// Position of a record in its session, in file order; the header is not counted.
using EntryNumber = std::uint32_t;

/// The texts of one file, by position. Reads ahead when they are asked for in order.
class TextReader {
 public:
  TextReader() = default;
  explicit TextReader(int descriptor) : descriptor_(descriptor) {}  // not owned

  /// Valid until the next call. Empty when the file does not have these bytes any more.
  std::string_view read(std::uint64_t offset, std::uint32_t length);

 private:
  int descriptor_ = -1;
  std::string window_;
  std::uint64_t window_offset_ = 0;
};

class EntryIndex {
 public:
  EntryIndex() = default;
  EntryIndex(EntryIndex&&) = default;
  EntryIndex& operator=(EntryIndex&&) = default;

  /// The record's text stays in the file that `read_from` names. Views of `record` are copied.
  EntryNumber add_from_file(const ScannedRecord& record);
  /// The record's text is kept here.
  EntryNumber add(const EntryHead& head, std::string text);
  /// The text of `number` stands at `offset` of the file from now on; a copy kept here is let go.
  void is_in_file(EntryNumber number, std::uint64_t offset, std::size_t length);

  /// The file of the records that are in one; the descriptor is not owned and must outlive its use.
  void read_from(int descriptor) { reader_ = TextReader(descriptor); }

  std::size_t size() const { return records_.size(); }
  const EntryHead& head(EntryNumber number) const { return records_[number].head; }

  /// Of equal ids the one that was added last (SES-70).
  std::optional<EntryNumber> find(std::string_view id) const;

  /// The record's JSON text. Valid until the next call of `text` or `decode`.
  std::string_view text(EntryNumber number) const;
  /// Null when the text is no JSON: a record that was damaged in its middle.
  json::value decode(EntryNumber number) const;
  Entry entry(EntryNumber number) const { return entry_from(decode(number)); }

  /// Root first, from the root that `from` hangs on. Ends at an unknown parent and at the first id that comes again
  /// (SES-73, SES-74).
  std::vector<EntryNumber> path_to(EntryNumber from) const;

 private:
  struct Record {
    EntryHead head;            // of views into names_
    std::uint64_t place = 0;   // offset in the file, or position in texts_
    std::uint32_t length = 0;  // of a text in the file
    bool in_file = false;
  };

  EntryNumber add_record(const EntryHead& head, Record record);
  std::string_view keep_name(std::string_view name);
  std::size_t slot_of(std::string_view id, std::uint32_t hash) const;
  void grow_table();

  std::vector<Record> records_;
  std::vector<std::string> texts_;
  std::vector<std::unique_ptr<char[]>> names_;  // blocks
  char* names_at_ = nullptr;                    // free bytes of the last block
  std::size_t names_left_ = 0;
  // Open addressing. Twice as fast to fill as std::unordered_map.
  struct Slot {
    std::uint32_t record = 0;  // number + 1; 0: free
    std::uint32_t hash = 0;
  };
  std::vector<Slot> table_;
  std::size_t ids_ = 0;
  bool has_repeated_ids_ = false;
  mutable TextReader reader_;
};

}  // namespace tau::coding
