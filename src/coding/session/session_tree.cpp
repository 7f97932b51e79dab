#include "coding/session/session_tree.h"

#include <algorithm>

#include "base/utf8.h"

namespace tau::coding {

namespace {

struct Timed {
  std::optional<std::int64_t> time;
  std::size_t position;  // in the list, for equal times
  EntryNumber number;
};

/// By time, records of equal or unreadable time in their order.
void sort_by_time(const EntryIndex& index, std::vector<EntryNumber>& entries) {
  if (entries.size() < 2) return;
  std::vector<Timed> timed;
  timed.reserve(entries.size());
  bool all_valid = true;
  for (const EntryNumber n : entries) {
    timed.push_back({entry_time(index.head(n).timestamp), timed.size(), n});
    all_valid = all_valid && timed.back().time.has_value();
  }
  if (all_valid) {
    std::sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) {
      return *a.time != *b.time ? *a.time < *b.time : a.position < b.position;
    });
  } else {
    // "Neither is earlier" is no equivalence when a time cannot be read: only a sort that compares neighbours is safe.
    const auto earlier = [](const Timed& a, const Timed& b) { return a.time && b.time && *a.time < *b.time; };
    for (std::size_t i = 1; i < timed.size(); ++i) {
      for (std::size_t j = i; j > 0 && earlier(timed[j], timed[j - 1]); --j)
        std::swap(timed[j], timed[j - 1]);
    }
  }
  std::transform(timed.begin(), timed.end(), entries.begin(), [](const Timed& t) { return t.number; });
}

/// Marks what can be reached from `from` and was not seen yet.
void walk(const SessionTree& tree, EntryNumber from, std::vector<bool>& seen) {
  std::vector<EntryNumber> open{from};
  seen[from] = true;
  while (!open.empty()) {
    const EntryNumber n = open.back();
    open.pop_back();
    for (const EntryNumber child : tree.children[n]) {
      if (seen[child]) continue;
      seen[child] = true;
      open.push_back(child);
    }
  }
}

bool leads_to(const SessionTree& tree, EntryNumber from, EntryNumber to) {
  std::vector<bool> seen(tree.children.size());
  walk(tree, from, seen);
  return seen[to];
}

}  // namespace

SessionTree tree_of(const EntryIndex& index) {
  constexpr int kMaxRepeated = 100;  // of which each costs a walk
  const std::size_t count = index.size();
  SessionTree tree;
  tree.children.resize(count);
  const auto current = [&](EntryNumber n) { return index.find(index.head(n).id).value_or(n); };
  std::vector<bool> is_root(count);
  std::vector<EntryNumber> repeated;
  for (EntryNumber n = 0; n < count; ++n) {
    if (current(n) != n) {
      repeated.push_back(n);
      continue;
    }
    const auto parent = index.find(index.head(n).parent);
    if (parent && *parent != n) {
      tree.children[*parent].push_back(n);
    } else {
      is_root[n] = true;
    }
  }
  // Rings hang on no root: the first record of each becomes one.
  std::vector<bool> reached(count);
  for (EntryNumber n = 0; n < count; ++n) {
    if (is_root[n]) walk(tree, n, reached);
  }
  for (EntryNumber n = 0; n < count; ++n) {
    if (reached[n] || current(n) != n) continue;
    std::erase(tree.children[*index.find(index.head(n).parent)], n);
    is_root[n] = true;
    walk(tree, n, reached);
  }
  int left = kMaxRepeated;
  for (const EntryNumber n : repeated) {
    const auto parent = index.find(index.head(n).parent);
    if (!parent || left-- == 0 || leads_to(tree, current(n), *parent)) continue;
    tree.children[*parent].push_back(current(n));
  }
  for (EntryNumber n = 0; n < count; ++n) {
    if (is_root[n]) tree.roots.push_back(n);
    sort_by_time(index, tree.children[n]);
  }
  return tree;
}

Labels labels_of(const EntryIndex& index) {
  Labels labels;
  for (EntryNumber n = 0; n < index.size(); ++n) {
    if (index.head(n).type != EntryType::kLabel) continue;
    const Entry entry = index.entry(n);
    const auto target = id_key(entry.source.if_contains("targetId"));
    if (!target) continue;
    const std::string text = json::string_or(entry.source, "label");
    if (text.empty()) {
      labels.by_target.erase(*target);
      std::erase(labels.order, *target);
      continue;
    }
    if (!labels.by_target.contains(*target)) labels.order.push_back(*target);
    labels.by_target[*target] = {text, entry.timestamp};
  }
  return labels;
}

std::optional<std::string> name_of(const EntryIndex& index) {
  for (std::size_t n = index.size(); n-- > 0;) {
    const auto number = static_cast<EntryNumber>(n);
    if (index.head(number).type != EntryType::kSessionInfo) continue;
    const Entry entry = index.entry(number);
    const std::string_view name = utf8::trim(json::find_string(entry.source, "name").value_or(""));
    return name.empty() ? std::nullopt : std::optional(std::string(name));
  }
  return std::nullopt;
}

}  // namespace tau::coding
