#include "coding/session/session_check.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "agent/check_transcript.h"
#include "base/printable.h"
#include "coding/roles/convert_to_llm.h"
#include "coding/session/migration.h"
#include "coding/session/raw_records.h"
#include "coding/session/session.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kNone = ~std::size_t{0};

/// "line 7: …" as the scanner says it.
Finding from_warning(const std::string& warning) {
  constexpr std::string_view kLead = "line ";
  Finding finding{0, "FF-25", warning};
  if (!warning.starts_with(kLead)) return finding;
  const char* const end = warning.data() + warning.size();
  const auto [rest, failed] = std::from_chars(warning.data() + kLead.size(), end, finding.line);
  if (failed == std::errc() && end - rest > 2) finding.what = std::string(rest + 2, end);
  if (finding.what.find("records") != std::string::npos || finding.what.find("a part") != std::string::npos) {
    finding.rule = "FF-24";
  }
  return finding;
}

bool is_message_of_the_conversation(EntryType type) {
  return type == EntryType::kMessage || type == EntryType::kCustomMessage || type == EntryType::kBranchSummary ||
         type == EntryType::kCompaction;
}

class Check {
 public:
  Check(const fs::path& file, RawRecords found)
      : file_(file), raw_(std::move(found)), parent_(raw_.records.size(), kNone) {}

  std::vector<Finding> run() {
    for (const std::string& warning : raw_.warnings)
      found_.push_back(from_warning(warning));
    if (!raw_.ends_with_newline) add(raw_.last_line, "SES-36", "the last line has no line end");
    check_header();
    if (version_ >= 2) {
      resolve_parents();
      number_tree();
      check_records();
      check_results();
      if (version_ >= kSessionVersion) check_context();
    }
    std::stable_sort(found_.begin(), found_.end(), [](const Finding& a, const Finding& b) { return a.line < b.line; });
    return std::move(found_);
  }

 private:
  void add(std::uint32_t line, std::string rule, std::string what) {
    if (said_.emplace(line, rule, what).second) found_.push_back({line, std::move(rule), std::move(what)});
  }

  void check_header() {
    const json::value header = json::parse(raw_.header.text).value_or(nullptr);
    const json::object& o = header.get_object();  // read_raw_records has looked
    const std::uint32_t line = raw_.header.line;
    version_ = session_version(o);
    if (version_ < kSessionVersion) {
      add(line, "SES-40", fmt::format("the file is of version {}; it is brought to 3 when it is opened", version_));
    }
    if (!json::find_string(o, "cwd")) add(line, "SES-20", "the header does not say the working folder (cwd)");
    if (!entry_time(json::string_or(o, "timestamp"))) add(line, "SES-20", "the time of the header cannot be read");
  }

  /// The record that the last one of this id is.
  std::size_t find(const std::string& id) const {
    const auto found = raw_.by_id.find(id);
    return found != raw_.by_id.end() ? found->second.back() : kNone;
  }

  void resolve_parents() {
    for (std::size_t i = 0; i < raw_.records.size(); ++i) {
      const RawRecord& record = raw_.records[i];
      if (record.type == EntryType::kHeader) {
        add(record.line, "SES-23", "a second header");
        continue;
      }
      if (!record.has_id) {
        add(record.line, "SES-72", "the entry has no id: nothing can hang on it");
      } else if (const auto& same = raw_.by_id.at(record.id); same.size() > 1 && same.back() != i) {
        add(record.line, "SES-70",
            fmt::format("the id {} comes again in line {}, which counts", printable_line(record.id),
                        raw_.records[same.back()].line));
      }
      if (!record.has_parent) continue;
      const std::size_t parent = find(record.parent);
      if (parent == kNone) {
        add(record.line, "FF-26", fmt::format("its parent {} is not in the file", printable_line(record.parent)));
      } else if (parent == i) {
        add(record.line, "SES-74", "the entry is its own parent");
      } else {
        parent_[i] = parent;
        if (parent > i) add(record.line, "SES-73", "its parent comes later in the file");
      }
    }
    break_rings();
  }

  void break_rings() {
    enum : std::uint8_t { kNew, kOpen, kDone };
    std::vector<std::uint8_t> state(parent_.size(), kNew);
    for (std::size_t start = 0; start < parent_.size(); ++start) {
      std::size_t at = start;
      while (at != kNone && state[at] == kNew) {
        state[at] = kOpen;
        at = parent_[at];
      }
      const bool is_ring = at != kNone && state[at] == kOpen;
      for (std::size_t n = start; n != kNone && state[n] == kOpen; n = parent_[n])
        state[n] = kDone;
      if (is_ring) {
        std::size_t first = at;
        for (std::size_t n = parent_[at]; n != at; n = parent_[n])
          first = std::min(first, n);
        add(raw_.records[first].line, "SES-74", "the parents of this entry lead back to itself");
        parent_[first] = kNone;
      }
    }
  }

  /// Numbers the records so that a record's descendants are those numbered from `enter_` to `leave_`, and finds for
  /// each the nearest message above it.
  void number_tree() {
    const std::size_t count = parent_.size();
    std::vector<std::vector<std::size_t>> children(count);
    std::vector<std::size_t> open;
    for (std::size_t i = count; i-- > 0;) {
      if (parent_[i] != kNone) children[parent_[i]].push_back(i);
    }
    enter_.assign(count, 0);
    leave_.assign(count, 0);
    message_above_.assign(count, kNone);
    std::size_t clock = 0;
    for (std::size_t root = 0; root < count; ++root) {
      if (parent_[root] != kNone) continue;
      open.push_back(root);
      while (!open.empty()) {
        const std::size_t n = open.back();
        if (enter_[n] != 0) {
          leave_[n] = clock;
          open.pop_back();
          continue;
        }
        enter_[n] = ++clock;
        if (const std::size_t above = parent_[n]; above != kNone) {
          message_above_[n] = is_message_of_the_conversation(raw_.records[above].type) ? above : message_above_[above];
        }
        open.insert(open.end(), children[n].begin(), children[n].end());
      }
    }
  }

  bool is_above(std::size_t ancestor, std::size_t n) const {
    return enter_[ancestor] < enter_[n] && leave_[n] <= leave_[ancestor];
  }

  void check_records() {
    is_result_.assign(raw_.records.size(), false);
    for (std::size_t i = 0; i < raw_.records.size(); ++i) {
      const RawRecord& record = raw_.records[i];
      if (record.type == EntryType::kHeader) continue;
      auto value = json::parse(record.text);
      if (!value) {
        add(record.line, "FF-25", "the entry is damaged inside: " + value.error().describe());
        continue;
      }
      const Entry entry = entry_from(*std::move(value));
      if (entry.type_name().empty()) add(record.line, "SES-35", "the line is no entry: it has no type");
      if (!entry.type_name().empty() && !entry_time(entry.timestamp)) {
        add(record.line, "SES-12", "the time of the entry cannot be read");
      }
      check_references(i, entry);
      if (entry.type == EntryType::kMessage) check_message(i, entry);
    }
  }

  void check_references(std::size_t i, const Entry& entry) {
    const auto line = raw_.records[i].line;
    if (entry.type == EntryType::kLabel) {
      const auto target = id_key(entry.source.if_contains("targetId"));
      if (!target || find(*target) == kNone) add(line, "SES-79", "the label is on an entry that is not in the file");
    }
    if (entry.type != EntryType::kCompaction) return;
    const auto kept = id_key(entry.source.if_contains("firstKeptEntryId"));
    if (!kept) {
      add(line, "SES-85", "the compaction does not say from which entry on the conversation was kept");
      return;
    }
    const std::size_t first = find(*kept);
    if (first == kNone || !is_above(first, i)) {
      add(line, "SES-83",
          fmt::format("the entry {} that the compaction kept first is not before it on its path",
                      printable_line(*kept)));
    }
  }

  void check_message(std::size_t i, const Entry& entry) {
    const auto line = raw_.records[i].line;
    const json::object* message = entry.message();
    if (message == nullptr) {
      add(line, "SES-88", "the entry holds no message");
      return;
    }
    const MessageRole role = role_of(entry);
    is_result_[i] = role == MessageRole::kToolResult;
    const auto needs = [&](std::string_view key) {
      if (!json::find_string(*message, key)) add(line, "IV-1", fmt::format("the message has no {}", key));
    };
    if (role == MessageRole::kUser || role == MessageRole::kAssistant || role == MessageRole::kToolResult) {
      const json::value* content = message->if_contains("content");
      const bool text = content != nullptr && content->is_string() && role == MessageRole::kUser;
      if (!text && (content == nullptr || !content->is_array())) add(line, "IV-1", "the message has no content");
    }
    if (role == MessageRole::kAssistant) {
      needs("provider");
      needs("model");
      needs("stopReason");
    }
    if (role == MessageRole::kToolResult) {
      needs("toolName");
      return;  // in its place, see check_results
    }
    if (const auto read = message_of(entry)) {
      const std::vector<agent::AgentMessage> alone{*read};
      for (const agent::Violation& violation : agent::check_transcript(alone))
        add(line, std::string(violation.rule), violation.what);
    }
  }

  /// A result depends on what stands above it up to the nearest message that is none. Each such stretch is looked at
  /// once, from its end.
  void check_results() {
    std::vector<bool> has_result_below(raw_.records.size());
    for (std::size_t i = 0; i < raw_.records.size(); ++i) {
      if (is_result_[i] && message_above_[i] != kNone) has_result_below[message_above_[i]] = true;
    }
    for (std::size_t i = 0; i < raw_.records.size(); ++i) {
      if (!is_result_[i] || has_result_below[i]) continue;
      std::vector<std::size_t> stretch{i};
      while (is_result_[stretch.back()] && message_above_[stretch.back()] != kNone)
        stretch.push_back(message_above_[stretch.back()]);
      std::reverse(stretch.begin(), stretch.end());
      std::vector<agent::AgentMessage> messages;
      std::vector<std::size_t> places;
      for (const std::size_t n : stretch) {
        auto message = message_of(entry_from(json::parse(raw_.records[n].text).value_or(nullptr)));
        if (!message) continue;
        messages.push_back(*std::move(message));
        places.push_back(n);
      }
      for (const agent::Violation& violation : agent::check_transcript(messages)) {
        const std::size_t n = places[violation.position];
        if (is_result_[n]) add(raw_.records[n].line, std::string(violation.rule), violation.what);
      }
    }
  }

  /// What the model is sent now: a compaction can keep from the middle of a turn.
  void check_context() {
    const auto session = Session::view(file_, "/");
    if (!session) return;
    const EntryIndex& index = (*session)->index();
    std::vector<std::uint32_t> lines;
    for (const RawRecord& record : raw_.records) {
      if (record.type != EntryType::kHeader) lines.push_back(record.line);
    }
    if (lines.size() != index.size()) return;  // somebody writes just now
    std::vector<agent::AgentMessage> messages;
    std::vector<std::uint32_t> places;
    for (const EntryNumber n : context_entries(index, (*session)->path())) {
      auto message = message_of(index.entry(n));
      if (!message) continue;
      messages.push_back(*std::move(message));
      places.push_back(lines[n]);
    }
    for (const agent::Violation& violation : agent::check_transcript(messages))
      add(places[violation.position], std::string(violation.rule), violation.what);
    for (const agent::Violation& violation : agent::check_conversion(messages, convert_to_llm(messages)))
      add(0, std::string(violation.rule), violation.what);
  }

  const fs::path& file_;
  RawRecords raw_;
  double version_ = 0;
  std::vector<std::size_t> parent_;
  std::vector<std::size_t> enter_, leave_;
  std::vector<std::size_t> message_above_;
  std::vector<bool> is_result_;
  std::vector<Finding> found_;
  std::set<std::tuple<std::uint32_t, std::string, std::string>> said_;
};

}  // namespace

std::expected<std::vector<Finding>, Error> check_session(const fs::path& file) {
  auto raw = read_raw_records(file);
  if (!raw) return std::unexpected(std::move(raw.error()));
  return Check(file, *std::move(raw)).run();
}

}  // namespace tau::coding
