#include "coding/session/session_check.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coding/session/session.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kHeader =
    R"({"type":"session","version":3,"id":"s1","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/srv"})";

std::string entry(const std::string& id, const std::string& parent, const std::string& message) {
  return R"({"type":"message","id":")" + id + R"(","parentId":)" + (parent.empty() ? "null" : '"' + parent + '"') +
         R"(,"timestamp":"2026-02-03T09:00:01.000Z","message":)" + message + "}";
}
std::string user(const std::string& text = "hi") {
  return R"({"role":"user","content":")" + text + R"(","timestamp":1})";
}
std::string calling(const std::string& id) {
  return R"({"role":"assistant","content":[{"type":"toolCall","id":")" + id +
         R"(","name":"read","arguments":{}}],"api":"a","provider":"p","model":"m","stopReason":"toolUse","timestamp":1})";
}
std::string result(const std::string& id) {
  return R"({"role":"toolResult","toolCallId":")" + id +
         R"(","toolName":"read","content":[],"isError":false,"timestamp":1})";
}

class SessionCheck : public testing::Test {
 protected:
  fs::path file(const std::vector<std::string>& lines) {
    std::string text = kHeader + "\n";
    for (const std::string& line : lines)
      text += line + "\n";
    return folder_.write("s.jsonl", text);
  }
  /// "3 IV-2"
  std::vector<std::string> found(const std::vector<std::string>& lines) {
    const auto findings = check_session(file(lines));
    EXPECT_TRUE(findings) << findings.error().message;
    std::vector<std::string> out;
    for (const Finding& finding : *findings)
      out.push_back(std::to_string(finding.line) + " " + finding.rule);
    return out;
  }
  test::TemporaryFolder folder_;
};

TEST_F(SessionCheck, AGoodFileHasNoFindings) {
  EXPECT_THAT(found({entry("a1", "", user()), entry("a2", "a1", calling("c")), entry("a3", "a2", result("c"))}),
              IsEmpty());
}

TEST_F(SessionCheck, LinesThatCannotBeReadAreNamed) {
  EXPECT_THAT(found({entry("a1", "", user()), std::string(300, '\0'), "{\"type\":\"mess" + entry("a2", "a1", user()),
                     entry("a3", "a2", user()) + entry("a4", "a3", user())}),
              ElementsAre("3 FF-25", "4 FF-24", "5 FF-24"));
}

TEST_F(SessionCheck, ManyUnreadableLinesAreAllNamed) {
  std::vector<std::string> lines{entry("a1", "", user())};
  lines.insert(lines.end(), 250, "garbage");
  EXPECT_EQ(found(lines).size(), 250u);
}

TEST_F(SessionCheck, TheTreeIsLookedOver) {
  EXPECT_THAT(
      found({entry("a1", "", user()), entry("a2", "nowhere", user()), entry("a3", "a3", user()),
             entry("b1", "b2", user()), entry("b2", "b1", user()), entry("a1", "", user()), R"({"type":"custom"})",
             kHeader}),
      ElementsAre("2 SES-70", "3 FF-26", "4 SES-74", "5 SES-73", "5 SES-74", "8 SES-72", "8 SES-12", "9 SES-23"));
}

TEST_F(SessionCheck, ResultsNeedTheirCallBeforeThem) {  // IV-2
  EXPECT_THAT(found({entry("a1", "", calling("c")), entry("a2", "a1", user()), entry("a3", "a2", result("c"))}),
              ElementsAre("4 IV-2"));
  EXPECT_THAT(found({entry("a1", "", calling("c")), entry("a2", "a1", result("c")), entry("a3", "a2", result("c"))}),
              ElementsAre("4 IV-2"));
  // On another branch, too.
  EXPECT_THAT(found({entry("a1", "", user()), entry("a2", "a1", result("x")), entry("a3", "a1", user())}),
              ElementsAre("3 IV-2"));
}

TEST_F(SessionCheck, MessagesNeedTheirMembers) {  // IV-1, IV-7, SES-88
  EXPECT_THAT(found({entry("a1", "", "null"), entry("a2", "a1", R"({"role":"user","timestamp":1})"),
                     entry("a3", "a2",
                           R"({"role":"assistant","content":[],"provider":"p","model":"m","stopReason":"pending"})")}),
              ElementsAre("2 SES-88", "3 IV-1", "4 IV-7"));
}

TEST_F(SessionCheck, ACompactionThatKeepsFromInsideABatchIsFound) {  // IV-2 of what the model is sent
  const std::string compaction = R"({"type":"compaction","id":"a4","parentId":"a3","timestamp":"2026-02-03T09:00:01Z",)"
                                 R"("summary":"s","firstKeptEntryId":"a3","tokensBefore":1})";
  EXPECT_THAT(
      found({entry("a1", "", user()), entry("a2", "a1", calling("c")), entry("a3", "a2", result("c")), compaction}),
      ElementsAre("4 IV-2"));
}

TEST_F(SessionCheck, ACompactionMustKeepFromItsOwnPath) {  // SES-83
  const std::string compaction = R"({"type":"compaction","id":"a4","parentId":"a1","timestamp":"2026-02-03T09:00:01Z",)"
                                 R"("summary":"s","firstKeptEntryId":"a2","tokensBefore":1})";
  EXPECT_THAT(found({entry("a1", "", user()), entry("a2", "a1", user()), compaction}), ElementsAre("4 SES-83"));
}

TEST_F(SessionCheck, WhatIsNoSessionIsRefused) {  // FF-28
  EXPECT_FALSE(check_session(folder_.write("notes.md", "# Notes\n")));
  EXPECT_FALSE(repair_session(folder_.write("notes.md", "# Notes\n")));
  EXPECT_FALSE(check_session(folder_.path()));
  EXPECT_FALSE(fs::exists(folder_ / "notes.repaired.jsonl"));
}

TEST_F(SessionCheck, ARepairIsACopyWithoutFindings) {
  const fs::path broken =
      file({entry("a1", "", user("one")), std::string(300, '\0'), entry("a2", "lost", user("two")),
            entry("a3", "a2", user("three")) + entry("a4", "a3", user("four")), entry("a4", "a3", user("five")),
            entry("b1", "b2", user()), entry("b2", "b1", user()), R"(["no entry"])", "{\"type\":\"mess"});
  const std::string before = test::read_file(broken);
  const auto repaired = repair_session(broken);
  ASSERT_TRUE(repaired) << repaired.error().message;
  EXPECT_EQ(test::read_file(broken), before);
  EXPECT_EQ(repaired->file.filename(), "s.repaired.jsonl");
  EXPECT_GE(repaired->done.size(), 6u);
  EXPECT_THAT(*check_session(repaired->file), IsEmpty());
  const auto session = Session::open(repaired->file, "/");
  ASSERT_TRUE(session);
  EXPECT_THAT((*session)->warnings(), IsEmpty());
  EXPECT_EQ((*session)->index().size(), 7u);
  // What hung on the lost entry hangs on the one before it: the old history is on the path again.
  const auto four = (*session)->index().find("a2");
  ASSERT_TRUE(four);
  EXPECT_EQ((*session)->index().path_to(*four).size(), 2u);
  EXPECT_EQ(repair_session(broken)->file.filename(), "s.repaired-1.jsonl") << "a copy is never replaced";
}

TEST_F(SessionCheck, RepairsOfTheFixturesHaveNoTreeFaults) {
  for (const fs::path& folder : test::folders_in(test::fixture_root() / "session")) {
    const fs::path copy = folder_.write("f.jsonl", test::read_file(folder / "session.jsonl"));
    const auto repaired = repair_session(copy);
    if (!repaired) continue;  // no session
    const auto findings = check_session(repaired->file);
    ASSERT_TRUE(findings) << folder;
    for (const Finding& finding : *findings) {
      // A repair leaves what messages say, and where labels and compactions point.
      static const std::set<std::string> kLeft = {"IV-1",   "IV-2",   "SES-12", "SES-20", "SES-73",
                                                  "SES-79", "SES-83", "SES-85", "SES-88", "SES-35"};
      EXPECT_TRUE(kLeft.contains(finding.rule)) << folder << " " << finding.rule << " " << finding.what;
    }
    fs::remove(repaired->file);
  }
}

}  // namespace
}  // namespace tau::coding
