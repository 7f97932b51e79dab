#include "coding/compaction/branch_range.h"

#include <algorithm>
#include <unordered_set>

#include "coding/compaction/context_size.h"

namespace tau::coding {

BranchRange branch_to_leave(const Session& session, EntryNumber target) {
  BranchRange range;
  const std::vector<EntryNumber> old_path = session.path();
  if (!session.leaf_number()) return range;
  const std::unordered_set<EntryNumber> on_old_path(old_path.begin(), old_path.end());
  const std::vector<EntryNumber> new_path = session.index().path_to(target);
  const auto common =
      std::find_if(new_path.rbegin(), new_path.rend(), [&](EntryNumber n) { return on_old_path.contains(n); });
  auto begin = old_path.begin();
  if (common != new_path.rend()) {
    range.common_ancestor = *common;
    begin = std::next(std::find(old_path.begin(), old_path.end(), *common));
  }
  range.entries.assign(begin, old_path.end());
  return range;
}

BranchMessages messages_of_branch(const Session& session, const std::vector<EntryNumber>& entries, double budget) {
  constexpr double kNearlyFull = 0.9;
  BranchMessages branch;
  FileTracker files;
  for (const EntryNumber number : entries) {
    if (session.index().head(number).type != EntryType::kBranchSummary) continue;
    const Entry entry = session.index().entry(number);
    const json::value* from_hook = json::find(entry.source, "fromHook");
    const json::object* details = json::find_object(entry.source, "details");
    if (details != nullptr && (from_hook == nullptr || is_falsy(*from_hook))) files.add_details(*details);
  }
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    const EntryType type = session.index().head(*it).type;
    auto message = message_of(session.index().entry(*it));
    if (!message || message->tool_result() != nullptr) continue;
    files.add_calls(*message);
    const double tokens = estimate_tokens(*message);
    const bool fits = branch.tokens + tokens <= budget;
    const bool is_summary = type == EntryType::kBranchSummary || type == EntryType::kCompaction;
    if (fits || (is_summary && branch.tokens < kNearlyFull * budget)) {
      branch.tokens += tokens;
      branch.messages.push_back(*std::move(message));
    }
    if (!fits) break;
  }
  std::reverse(branch.messages.begin(), branch.messages.end());
  branch.files = files.lists();
  return branch;
}

}  // namespace tau::coding
