#include "coding/session/entry_index.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

namespace tau::coding {

namespace {

constexpr std::size_t kReadAhead = 1 << 20;
constexpr std::size_t kNameBlock = 1 << 16;

std::uint32_t hash_of(std::string_view id) {
  const std::size_t hash = std::hash<std::string_view>{}(id);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

bool has(std::string_view name) {
  return name.data() != nullptr;
}

}  // namespace

std::string_view TextReader::read(std::uint64_t offset, std::uint32_t length) {
  const std::uint64_t window_end = window_offset_ + window_.size();
  if (offset < window_offset_ || offset + length > window_end) {
    // Two reads in a row that go forward are the start of a walk.
    const bool forward = !window_.empty() && offset >= window_offset_ && offset <= window_end + kReadAhead;
    window_.resize(std::max<std::size_t>(length, forward ? kReadAhead : 0));
    window_offset_ = offset;
    std::size_t used = 0;
    while (used < window_.size()) {
      const ssize_t n =
          ::pread(descriptor_, window_.data() + used, window_.size() - used, static_cast<off_t>(offset + used));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      used += static_cast<std::size_t>(n);
    }
    window_.resize(used);
    if (used < length) return {};
  }
  return std::string_view(window_).substr(offset - window_offset_, length);
}

std::string_view EntryIndex::keep_name(std::string_view name) {
  if (!has(name)) return {};
  if (names_.empty() || name.size() > names_left_) {
    const std::size_t size = std::max(kNameBlock, name.size());
    names_.push_back(std::make_unique_for_overwrite<char[]>(size));
    names_at_ = names_.back().get();
    names_left_ = size;
  }
  char* const at = names_at_;
  std::memcpy(at, name.data(), name.size());
  names_at_ += name.size();
  names_left_ -= name.size();
  return {at, name.size()};
}

EntryNumber EntryIndex::add_record(const EntryHead& head, Record record) {
  record.head.type = head.type;
  record.head.role = head.role;
  record.head.id = keep_name(head.id);
  record.head.timestamp = keep_name(head.timestamp);
  // Most records hang on the one before.
  const bool follows = !records_.empty() && has(head.parent) && head.parent == records_.back().head.id;
  record.head.parent = follows ? records_.back().head.id : keep_name(head.parent);
  const auto number = static_cast<EntryNumber>(records_.size());
  records_.push_back(record);
  if (!has(record.head.id)) return number;
  if ((ids_ + 1) * 2 > table_.size()) grow_table();
  const std::uint32_t hash = hash_of(record.head.id);
  Slot& slot = table_[slot_of(record.head.id, hash)];
  if (slot.record == 0) {
    ++ids_;
  } else {
    has_repeated_ids_ = true;
  }
  slot = {number + 1, hash};
  return number;
}

EntryNumber EntryIndex::add_from_file(const ScannedRecord& record) {
  return add_record(record.head, {{}, record.offset, static_cast<std::uint32_t>(record.text.size()), true});
}

EntryNumber EntryIndex::add(const EntryHead& head, std::string text) {
  const EntryNumber number = add_record(head, {{}, texts_.size(), 0, false});
  texts_.push_back(std::move(text));
  return number;
}

void EntryIndex::is_in_file(EntryNumber number, std::uint64_t offset, std::size_t length) {
  Record& record = records_[number];
  if (!record.in_file) std::string().swap(texts_[record.place]);
  record.place = offset;
  record.length = static_cast<std::uint32_t>(length);
  record.in_file = true;
}

std::size_t EntryIndex::slot_of(std::string_view id, std::uint32_t hash) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = hash & mask;
  // Names are far away in memory: only those with the same hash are looked at.
  while (table_[slot].record != 0 && (table_[slot].hash != hash || records_[table_[slot].record - 1].head.id != id))
    slot = (slot + 1) & mask;
  return slot;
}

void EntryIndex::grow_table() {
  std::vector<Slot> old(std::max<std::size_t>(table_.size() * 2, 1024));
  old.swap(table_);
  const std::size_t mask = table_.size() - 1;
  for (const Slot& entry : old) {
    if (entry.record == 0) continue;
    std::size_t slot = entry.hash & mask;
    while (table_[slot].record != 0)
      slot = (slot + 1) & mask;
    table_[slot] = entry;
  }
}

std::optional<EntryNumber> EntryIndex::find(std::string_view id) const {
  if (!has(id) || table_.empty()) return std::nullopt;
  const std::uint32_t found = table_[slot_of(id, hash_of(id))].record;
  return found != 0 ? std::optional(found - 1) : std::nullopt;
}

std::string_view EntryIndex::text(EntryNumber number) const {
  const Record& record = records_[number];
  return record.in_file ? reader_.read(record.place, record.length) : std::string_view(texts_[record.place]);
}

json::value EntryIndex::decode(EntryNumber number) const {
  return json::parse(text(number)).value_or(nullptr);
}

std::vector<EntryNumber> EntryIndex::path_to(EntryNumber from) const {
  std::vector<EntryNumber> path;
  std::vector<bool> seen(records_.size());
  std::optional<EntryNumber> at = from;
  while (at && !seen[*at]) {
    seen[*at] = true;
    path.push_back(*at);
    const std::string_view parent = records_[*at].head.parent;
    // Most records share their parent's name with the record before them (add_record).
    const bool follows =
        !has_repeated_ids_ && has(parent) && *at > 0 && records_[*at - 1].head.id.data() == parent.data();
    at = follows ? std::optional(*at - 1) : find(parent);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace tau::coding
