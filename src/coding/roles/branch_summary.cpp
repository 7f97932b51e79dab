#include "coding/roles/branch_summary.h"

#include "ai/json_members.h"
#include "coding/roles/user_text.h"

namespace tau::coding {

namespace {

// The closing tag follows the summary without a line end (PR-8); tags inside a summary are not escaped (PR-10).
constexpr std::string_view kBefore =
    "The conversation went another way for a while and has come back to this point; this is what happened there:"
    "\n\n<summary>\n";
constexpr std::string_view kAfter = "</summary>";

}  // namespace

json::object to_json(const BranchSummary& m) {
  json::object o{{"role", BranchSummary::role}, {"summary", m.summary}};
  o.emplace("fromId", m.from_id ? json::value(*m.from_id) : json::value(nullptr));
  o.emplace("timestamp", m.timestamp);
  ai::put_unknown(o, m.extra);
  return o;
}

std::expected<BranchSummary, Error> from_json(std::type_identity<BranchSummary>, const json::object& o) {
  return BranchSummary{json::string_or(o, "summary"), ai::optional_string(o, "fromId"),
                       json::find_integer(o, "timestamp").value_or(0),
                       ai::unknown_members(o, {"role", "summary", "fromId", "timestamp"})};
}

std::vector<ai::MessageRef> project(const BranchSummary& m) {
  return user_text(std::string(kBefore) + m.summary + std::string(kAfter), m.timestamp);
}

}  // namespace tau::coding
