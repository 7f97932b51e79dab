#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "coding/session/migration.h"
#include "coding/session/new_file.h"
#include "coding/session/raw_records.h"
#include "coding/session/session_check.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kNone = ~std::size_t{0};

class Repair {
 public:
  explicit Repair(RawRecords found) : raw_(std::move(found)) {}

  std::string run() {
    take_warnings();
    read_records();
    give_ids();
    place();
    break_rings();
    return text();
  }

  std::vector<Finding> take_done() {
    std::stable_sort(done_.begin(), done_.end(), [](const Finding& a, const Finding& b) { return a.line < b.line; });
    return std::move(done_);
  }

 private:
  struct Record {
    std::uint32_t line = 0;
    json::object source;
    std::string text;  // as it stands in the file; empty when it has to be written anew
    std::string id;
    std::string old_id;      // what others call it; empty: nothing
    std::string old_parent;  // empty: none
    std::size_t parent = kNone;
  };

  void did(std::uint32_t line, std::string rule, std::string what) {
    done_.push_back({line, std::move(rule), std::move(what)});
  }

  void take_warnings() {
    for (const std::string& warning : raw_.warnings)
      did(0, "FF-25", warning);
    if (!raw_.ends_with_newline) did(raw_.last_line, "SES-36", "the last line got its line end");
  }

  void read_records() {
    header_ = json::parse(raw_.header.text).value_or(nullptr).as_object();
    std::vector<json::value> values;
    std::vector<const RawRecord*> sources;
    for (const RawRecord& raw : raw_.records) {
      auto value = json::parse(raw.text);
      if (raw.type == EntryType::kHeader) {
        did(raw.line, "SES-23", "a second header was left out");
      } else if (!value) {
        did(raw.line, "FF-25", "the entry is damaged inside and was left out");
        lost_parent_[raw.id] = raw.parent;
      } else if (!value->is_object()) {
        did(raw.line, "SES-35", "the line is no entry and was left out");
      } else {
        values.push_back(*std::move(value));
        sources.push_back(&raw);
      }
    }
    const double version = session_version(header_);
    const bool old = version < kSessionVersion;
    if (old) {
      did(raw_.header.line, "SES-40", fmt::format("the file was brought from version {} to 3", version));
      migrate_session(header_, values);
    }
    std::set<std::string_view> texts;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const RawRecord& raw = *sources[i];
      if (!old && raw.has_id && !texts.insert(raw.text).second) {
        did(raw.line, "SES-70", "the same entry stands in the file already; left out");
        continue;
      }
      Record record;
      record.line = raw.line;
      record.source = std::move(values[i].as_object());
      if (!old && utf8::is_valid(raw.text)) record.text = raw.text;
      if (!utf8::is_valid(raw.text)) did(raw.line, "SES-33", "bytes that are no UTF-8 became U+FFFD");
      const auto id = id_key(record.source.if_contains("id"));
      const json::value* parent = record.source.if_contains("parentId");
      record.old_id = id.value_or("");
      if (parent != nullptr && !is_falsy(*parent)) record.old_parent = id_key(parent).value_or("");
      records_.push_back(std::move(record));
    }
  }

  void set(Record& record, std::string_view key, const json::value& v) {
    const json::value* old = record.source.if_contains(key);
    if (old != nullptr && json::equal(*old, v)) return;
    record.source[key] = v;
    record.text.clear();
  }

  void give_ids() {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (!records_[i].old_id.empty()) places_[records_[i].old_id].push_back(i);
    }
    for (std::size_t i = 0; i < records_.size(); ++i) {
      Record& record = records_[i];
      record.id = record.old_id;
      if (!record.old_id.empty() && places_.at(record.old_id).back() == i) continue;
      do {
        record.id = random_hex(8);
      } while (places_.contains(record.id) || !fresh_.insert(record.id).second);
      set(record, "id", json::value(record.id));
      did(record.line, record.old_id.empty() ? "SES-72" : "SES-70",
          record.old_id.empty()
              ? fmt::format("the entry had no id and is {} now", record.id)
              : fmt::format("its id {} comes again later; it is {} now", printable_line(record.old_id), record.id));
    }
  }

  /// Who is meant by an id in record `from`: the last one before it, else the first one behind.
  std::size_t meant(const std::string& id, std::size_t from) const {
    const auto found = places_.find(id);
    if (found == places_.end()) return kNone;
    const std::vector<std::size_t>& places = found->second;
    const auto behind = std::lower_bound(places.begin(), places.end(), from);
    return behind != places.begin() ? *std::prev(behind) : *behind;
  }

  /// Past records that were left out, up to one that is there; of a record that is nowhere: none.
  std::string through_lost(std::string id) const {
    for (std::size_t step = 0; step <= lost_parent_.size() && meant(id, records_.size()) == kNone; ++step) {
      const auto lost = lost_parent_.find(id);
      if (lost == lost_parent_.end() || lost->second.empty()) break;
      id = lost->second;
    }
    return id;
  }

  void place() {
    std::unordered_map<std::string, std::size_t> stand_in;  // unknown parent -> what its children hang on
    for (std::size_t i = 0; i < records_.size(); ++i) {
      Record& record = records_[i];
      const bool lost_id = record.old_id.empty();
      if (!record.old_parent.empty()) {
        record.parent = meant(through_lost(record.old_parent), i);
        if (record.parent == i) {
          record.parent = kNone;
          did(record.line, "SES-74", "the entry was its own parent and is a root now");
        } else if (record.parent == kNone) {
          const std::size_t before = stand_in.emplace(record.old_parent, i > 0 ? i - 1 : kNone).first->second;
          record.parent = before;
          did(record.line, "FF-26",
              fmt::format("its parent {} is not in the file; it hangs on {} now", printable_line(record.old_parent),
                          before != kNone ? fmt::format("line {}", records_[before].line) : "nothing"));
        }
      } else if (lost_id && i > 0) {
        record.parent = i - 1;
      }
      refer_again(record, i, "firstKeptEntryId");
      refer_again(record, i, "targetId");
      refer_again(record, i, "fromId");
    }
  }

  void refer_again(Record& record, std::size_t i, std::string_view key) {
    const auto id = id_key(record.source.if_contains(key));
    if (!id) return;
    const std::size_t target = meant(*id, i);
    if (target != kNone && records_[target].id != *id) set(record, key, id_value(records_[target].id));
  }

  void break_rings() {
    std::vector<std::uint8_t> state(records_.size(), 0);  // 1: on the way that is being walked, 2: leads to a root
    for (std::size_t start = 0; start < records_.size(); ++start) {
      std::size_t at = start;
      while (at != kNone && state[at] == 0) {
        state[at] = 1;
        at = records_[at].parent;
      }
      const bool is_ring = at != kNone && state[at] == 1;
      for (std::size_t n = start; n != kNone && state[n] == 1; n = records_[n].parent)
        state[n] = 2;
      if (is_ring) {
        std::size_t first = at;
        for (std::size_t n = records_[at].parent; n != at; n = records_[n].parent)
          first = std::min(first, n);
        records_[first].parent = kNone;
        did(records_[first].line, "SES-74", "its parents led back to itself; it is a root now");
      }
    }
  }

  std::string text() {
    std::string out = json::to_text(header_) + '\n';
    for (Record& record : records_) {
      const std::string parent = record.parent != kNone ? records_[record.parent].id : std::string();
      if (parent != record.old_parent || !record.source.contains("parentId")) {
        set(record, "parentId", record.parent != kNone ? id_value(parent) : json::value(nullptr));
      }
      out += record.text.empty() ? json::to_text(record.source) : record.text;
      out += '\n';
    }
    return out;
  }

  RawRecords raw_;
  json::object header_;
  std::vector<Record> records_;
  std::unordered_map<std::string, std::vector<std::size_t>> places_;
  std::unordered_map<std::string, std::string> lost_parent_;  // of records that were left out
  std::set<std::string> fresh_;
  std::vector<Finding> done_;
};

}  // namespace

std::expected<Repaired, Error> repair_session(const fs::path& file) {
  auto raw = read_raw_records(file);
  if (!raw) return std::unexpected(std::move(raw.error()));
  Repair repair(*std::move(raw));
  const std::string text = repair.run();
  const fs::path source = fs::absolute(file).lexically_normal();
  const std::string name = source.stem().string() + ".repaired.jsonl";
  auto copy = write_new_file(source.parent_path(), name, text);
  if (!copy) return std::unexpected(std::move(copy.error()));
  return Repaired{*std::move(copy), repair.take_done()};
}

}  // namespace tau::coding
