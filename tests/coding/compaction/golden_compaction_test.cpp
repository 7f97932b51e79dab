// Golden cases: what pi 0.85.0 would compact of 98 session files, and what it would summarise of a branch (SES-136,
// SES-163).
#include <gtest/gtest.h>

#include "coding/compaction/branch_range.h"
#include "coding/compaction/context_size.h"
#include "coding/compaction/preparation.h"
#include "coding/compaction/summary.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;

/// Where tau differs on purpose, and why.
struct Deviation {
  std::string_view test_case;
  std::string_view key;
  std::string_view reason;
};
constexpr Deviation kDeviations[] = {
    {"split-turn", "keep1", "the budget ends inside the last results: they are kept with their reply (FF-42, FF-40)"},
    {"split-turn", "keep60", "the same"},
    {"list-first-message", "keep1", "the same"},
    {"images", "keep1", "the same"},
    {"images", "keep60", "the same"},
    {"images", "keep200", "the same"},
    {"entry-without-id", "keep1", "a record without id is never the leaf (SES-72)"},
    {"entry-without-id", "branch", "the same"},
    {"branch-summary-empty", "branch", "an empty summary is no message, here as in the context"},
};

bool deviates(const std::string& test_case, std::string_view key) {
  return std::any_of(std::begin(kDeviations), std::end(kDeviations),
                     [&](const Deviation& d) { return d.test_case == test_case && d.key == key; });
}

json::array texts(const std::vector<std::string>& list) {
  return json::array(list.begin(), list.end());
}

json::value describe(const std::optional<CompactionPreparation>& preparation) {
  if (!preparation) return nullptr;
  json::object o{{"firstKeptEntryId", id_value(preparation->first_kept_id)},
                 {"isSplitTurn", preparation->is_split_turn},
                 {"summarizeCount", preparation->history.size()},
                 {"turnPrefixCount", preparation->turn_prefix.size()},
                 {"tokensBefore", json::number(preparation->tokens_before)}};
  o["previousSummary"] =
      preparation->previous_summary ? json::value(*preparation->previous_summary) : json::value(nullptr);
  o["readFiles"] = texts(preparation->files.read);
  o["modifiedFiles"] = texts(preparation->files.modified);
  return o;
}

json::object describe(const BranchMessages& branch) {
  json::array roles;
  for (const agent::AgentMessage& message : branch.messages)
    roles.emplace_back(message.role());
  return {{"roles", std::move(roles)},
          {"totalTokens", json::number(branch.tokens)},
          {"readFiles", texts(branch.files.read)},
          {"modifiedFiles", texts(branch.files.modified)}};
}

json::object expected_of(const std::string& name) {
  return test::read_json(test::fixture_root() / "session" / name / "expected.json").as_object();
}

/// Null for a file that is refused.
std::shared_ptr<Session> open_case(const test::TemporaryFolder& copies, const std::string& name) {
  const fs::path golden = test::fixture_root() / "session" / name / "session.jsonl";
  if (!fs::exists(golden)) return nullptr;
  auto opened = Session::open(copies.write("session.jsonl", test::read_file(golden)), "/p");
  return opened ? *opened : nullptr;
}

/// The cases whose file can be opened and of which `wanted` holds.
std::vector<std::string> case_names(bool (*wanted)(const std::string& name, const json::object& expected)) {
  std::vector<std::string> names;
  for (const fs::path& folder : test::folders_in(test::fixture_root() / "session")) {
    const test::TemporaryFolder copies;
    std::string name = folder.filename();
    if (open_case(copies, name) && wanted(name, expected_of(name))) names.push_back(std::move(name));
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& test_case) {
  std::string name = test_case.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class GoldenCompaction : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    expected = expected_of(GetParam());
    session = open_case(copies, GetParam());
    ASSERT_TRUE(session);
  }

  test::TemporaryFolder copies;
  json::object expected;
  std::shared_ptr<Session> session;
};

/// Ids of the oldest files are made anew at each opening: those cases cannot be compared.
class GoldenCut : public GoldenCompaction {
 public:
  static bool wanted(const std::string& name, const json::object& expected) {
    const json::object* compaction = json::find_object(expected, "compaction");
    return compaction != nullptr && !name.starts_with("v1") && !compaction->contains("throws");
  }
};
INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenCut, testing::ValuesIn(case_names(&GoldenCut::wanted)), test_name);

TEST_P(GoldenCut, IsWherePiCuts) {
  const json::object* compaction = json::find_object(expected, "compaction");
  for (const auto& [key, golden] : *compaction) {
    if (!key.starts_with("keep")) continue;
    if (golden.is_object() && golden.as_object().contains("throws")) continue;  // tau does not throw
    const double keep = std::stod(std::string(key.substr(4)));
    const auto preparation = prepare_compaction(*session, keep);
    json::value wanted = golden;
    if (wanted.is_object()) {
      if (const auto text = json::find_string(wanted.as_object(), "serialized"); text && preparation) {
        EXPECT_EQ(transcript_of(preparation->history), *text) << key;
      }
      if (const auto text = json::find_string(wanted.as_object(), "serializedPrefix"); text && preparation) {
        EXPECT_EQ(transcript_of(preparation->turn_prefix), *text) << key;
      }
      wanted.as_object().stable_erase("serialized");
      wanted.as_object().stable_erase("serializedPrefix");
    }
    if (deviates(GetParam(), key)) {
      EXPECT_NE(json::to_text(describe(preparation)), json::to_text(wanted)) << key << " is no deviation any more";
    } else {
      EXPECT_EQ(json::to_text(describe(preparation)), json::to_text(wanted)) << key;
    }
  }
}

TEST_P(GoldenCompaction, TheKeptPartNeverBeginsWithAResult) {  // FF-42
  for (const double keep : {1.0, 20.0, 60.0, 200.0, 1000.0}) {
    const auto preparation = prepare_compaction(*session, keep);
    if (!preparation) continue;
    const auto first = session->find(preparation->first_kept_id);
    ASSERT_TRUE(first);
    const auto message = message_of(*first);
    EXPECT_FALSE(message && message->tool_result() != nullptr) << keep;
  }
}

class GoldenBranch : public GoldenCompaction {
 public:
  static bool wanted(const std::string& name, const json::object& expected) {
    const json::object* branch = json::find_object(expected, "branchSummary");
    return branch != nullptr && !name.starts_with("v1") && branch->contains("entryIds") && !deviates(name, "branch");
  }
};
INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenBranch, testing::ValuesIn(case_names(&GoldenBranch::wanted)), test_name);

TEST_P(GoldenBranch, IsSummarisedAsPiWould) {
  const json::object* branch = json::find_object(expected, "branchSummary");
  const auto target = id_key(branch->if_contains("target"));
  ASSERT_TRUE(target);
  const BranchRange range = branch_to_leave(*session, *session->index().find(*target));
  json::array ids;
  for (const EntryNumber n : range.entries)
    ids.push_back(id_value(session->index().head(n).id));
  EXPECT_EQ(json::to_text(ids), json::to_text(branch->at("entryIds")));
  EXPECT_EQ(json::to_text(describe(messages_of_branch(*session, range.entries))),
            json::to_text(branch->at("unlimited")));
  EXPECT_EQ(json::to_text(describe(messages_of_branch(*session, range.entries, 40))),
            json::to_text(branch->at("budget40")));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenCompaction,
                         testing::ValuesIn(case_names([](const std::string&, const json::object&) { return true; })),
                         test_name);

}  // namespace
}  // namespace tau::coding
