#include "coding/compaction/preparation.h"

#include <algorithm>

#include "coding/compaction/context_size.h"
#include "coding/roles/bash_execution.h"
#include "coding/roles/branch_summary.h"
#include "coding/roles/custom.h"

namespace tau::coding {

namespace {

/// A record of the path with what the cut has to know of it.
struct PathEntry {
  EntryNumber number;
  EntryType type;
  std::optional<agent::AgentMessage> message;
  double tokens = 0;

  bool is_compaction() const { return type == EntryType::kCompaction; }
  /// A message of a user or of the program: a turn begins with it (SES-134).
  bool starts_turn() const {
    return !is_compaction() && message && (message->user() != nullptr || is_application_message());
  }
  /// SES-132
  bool may_be_first() const {
    return starts_turn() || (!is_compaction() && message && message->assistant() != nullptr);
  }
  bool is_application_message() const {
    return message->as<BashExecution>() != nullptr || message->as<CustomMessage>() != nullptr ||
           message->as<BranchSummary>() != nullptr;
  }
};

struct Cut {
  std::size_t first_kept;
  std::optional<std::size_t> turn_start;  // of the turn that is split
};

std::vector<PathEntry> read_path(const Session& session, std::size_t from) {
  const std::vector<EntryNumber> path = session.path();
  std::vector<PathEntry> entries;
  entries.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    PathEntry entry{path[i], session.index().head(path[i]).type, std::nullopt, 0};
    if (i >= from) {
      entry.message = message_of(session.index().entry(path[i]));
      if (entry.message) entry.tokens = estimate_tokens(*entry.message);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// SES-133, SES-134. When the budget is used up by results at the very end, the reply that asked for them is the first
/// thing kept: it and all its results stay together (FF-42).
Cut find_cut(const std::vector<PathEntry>& entries, std::size_t start, double keep_recent_tokens) {
  const auto first = std::find_if(entries.begin() + static_cast<std::ptrdiff_t>(start), entries.end(),
                                  [](const PathEntry& e) { return e.may_be_first(); });
  if (first == entries.end()) return {start, std::nullopt};
  std::size_t cut = static_cast<std::size_t>(first - entries.begin());
  double sum = 0;
  for (std::size_t i = entries.size(); i-- > start;) {
    sum += entries[i].tokens;
    if (entries[i].tokens == 0 || sum < keep_recent_tokens) continue;
    std::size_t at = i;
    while (at < entries.size() && !entries[at].may_be_first())
      ++at;
    if (at == entries.size()) {
      at = i;
      while (at > cut && !entries[at].may_be_first())
        --at;
    }
    cut = at;
    break;
  }
  while (cut > start && !entries[cut - 1].is_compaction() && !entries[cut - 1].message)
    --cut;
  if (entries[cut].starts_turn()) return {cut, std::nullopt};
  for (std::size_t i = cut + 1; i-- > start;) {
    if (entries[i].starts_turn()) return {cut, i};
  }
  return {cut, std::nullopt};
}

std::vector<agent::AgentMessage> messages_between(const std::vector<PathEntry>& entries, std::size_t begin,
                                                  std::size_t end) {
  std::vector<agent::AgentMessage> messages;
  for (std::size_t i = begin; i < end; ++i) {
    if (!entries[i].is_compaction() && entries[i].message) messages.push_back(*entries[i].message);
  }
  return messages;
}

}  // namespace

std::optional<CompactionPreparation> prepare_compaction(const Session& session, double keep_recent_tokens) {
  const std::vector<EntryNumber> path = session.path();
  if (path.empty()) return std::nullopt;
  const auto last = std::find_if(path.rbegin(), path.rend(),
                                 [&](EntryNumber n) { return session.index().head(n).type == EntryType::kCompaction; });
  if (last == path.rbegin() && last != path.rend()) return std::nullopt;

  CompactionPreparation preparation;
  FileTracker files;
  std::size_t start = 0;
  if (last != path.rend()) {
    const auto at = static_cast<std::size_t>(path.rend() - last) - 1;
    start = at + 1;
    const Entry compaction = session.index().entry(path[at]);
    preparation.previous_summary = json::string_or(compaction.source, "summary");
    if (const auto kept = id_key(compaction.source.if_contains("firstKeptEntryId"))) {
      const auto found =
          std::find_if(path.begin(), path.end(), [&](EntryNumber n) { return session.index().head(n).id == *kept; });
      if (found != path.end()) start = static_cast<std::size_t>(found - path.begin());
    }
    const json::value* from_hook = json::find(compaction.source, "fromHook");
    const json::object* details = json::find_object(compaction.source, "details");
    if (details != nullptr && (from_hook == nullptr || is_falsy(*from_hook))) files.add_details(*details);
  }

  const std::vector<PathEntry> entries = read_path(session, start);
  const Cut cut = find_cut(entries, start, keep_recent_tokens);
  if (cut.first_kept >= entries.size()) return std::nullopt;
  const EntryHead& kept = session.index().head(entries[cut.first_kept].number);
  if (kept.id.empty()) return std::nullopt;

  preparation.first_kept_id = std::string(kept.id);
  preparation.is_split_turn = cut.turn_start.has_value();
  preparation.history = messages_between(entries, start, cut.turn_start.value_or(cut.first_kept));
  if (cut.turn_start) preparation.turn_prefix = messages_between(entries, *cut.turn_start, cut.first_kept);
  if (preparation.history.empty() && preparation.turn_prefix.empty()) return std::nullopt;

  for (std::size_t i = cut.first_kept; i < entries.size(); ++i)
    preparation.kept_tokens += entries[i].is_compaction() ? 0 : entries[i].tokens;
  preparation.tokens_before = context_tokens(session.context().messages, UsageScope::kAll);
  for (const auto* part : {&preparation.history, &preparation.turn_prefix}) {
    for (const agent::AgentMessage& message : *part)
      files.add_calls(message);
  }
  preparation.files = files.lists();
  return preparation;
}

}  // namespace tau::coding
