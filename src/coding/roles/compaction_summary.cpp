#include "coding/roles/compaction_summary.h"

#include "ai/json_members.h"
#include "coding/roles/user_text.h"

namespace tau::coding {

namespace {

// A line end before the closing tag, unlike in a branch summary: requests keep their bytes, caches their prefix (PR-9).
constexpr std::string_view kBefore =
    "To make room, the conversation before this point was replaced by a summary of it:\n\n<summary>\n";
constexpr std::string_view kAfter = "\n</summary>";

}  // namespace

json::object to_json(const CompactionSummary& m) {
  json::object o{{"role", CompactionSummary::role}, {"summary", m.summary}};
  o.emplace("tokensBefore", json::number(m.tokens_before));
  o.emplace("timestamp", m.timestamp);
  ai::put_unknown(o, m.extra);
  return o;
}

std::expected<CompactionSummary, Error> from_json(std::type_identity<CompactionSummary>, const json::object& o) {
  return CompactionSummary{json::string_or(o, "summary"), json::number_or(o, "tokensBefore"),
                           json::find_integer(o, "timestamp").value_or(0),
                           ai::unknown_members(o, {"role", "summary", "tokensBefore", "timestamp"})};
}

std::vector<ai::MessageRef> project(const CompactionSummary& m) {
  return user_text(std::string(kBefore) + m.summary + std::string(kAfter), m.timestamp);
}

}  // namespace tau::coding
