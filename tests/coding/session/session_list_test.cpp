#include "coding/session/session_list.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coding/session/session_store.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

/// Appendix E of the format: three files whose last message and whose change time disagree.
class SessionLists : public testing::Test {
 protected:
  void SetUp() override {
    write("a.jsonl", "aaaa1111", "/srv/x", 9 * 60, 10 * 60, "");
    write("b.jsonl", "bbbb2222", "/srv/x", 9 * 60 + 20, 9 * 60 + 30, "Plan");
    write("c.jsonl", "aaaa3333", "/srv/y", 8 * 60, 11 * 60, "");
    folder_.write("sub/notes.txt", "no session");
    folder_.write("sub/broken.jsonl", "no session");
  }

  void write(const std::string& file, const std::string& id, const std::string& cwd, int message_minute,
             int changed_minute, const std::string& name) {
    const std::int64_t day = 1'770'076'800'000;  // 2026-02-03
    std::string text = R"({"type":"session","version":3,"id":")" + id +
                       R"(","timestamp":"2026-02-03T07:00:00.000Z","cwd":")" + cwd + "\"}\n";
    text +=
        R"({"type":"message","id":"m1","parentId":null,"timestamp":"2026-02-03T07:00:00.000Z","message":{"role":"user",)"
        R"("content":"ask )" +
        id + R"(","timestamp":)" + std::to_string(day + message_minute * 60'000) + "}}\n";
    if (!name.empty()) {
      text += R"({"type":"session_info","id":"n1","parentId":"m1","timestamp":"2026-02-03T07:00:00.000Z","name":")" +
              name + "\"}\n";
    }
    const fs::path path = folder_.write("sub/" + file, text);
    const std::chrono::sys_seconds time(std::chrono::seconds(day / 1000 + changed_minute * 60));
    fs::last_write_time(path, std::chrono::file_clock::from_sys(time));
  }

  std::vector<std::string> names(const std::vector<SessionInfo>& infos) {
    std::vector<std::string> out;
    for (const SessionInfo& info : infos)
      out.push_back(info.path.stem());
    return out;
  }

  fs::path sub() const { return folder_ / "sub"; }
  test::TemporaryFolder folder_;
};

TEST_F(SessionLists, AreOrderedByTheLastMessage) {  // SES-220
  for (const InfoDetail detail : {InfoDetail::kFull, InfoDetail::kHead}) {
    ListOptions options;
    options.detail = detail;
    EXPECT_THAT(names(list_sessions(sub(), options)), ElementsAre("b", "a", "c"));
    EXPECT_THAT(names(list_all_sessions(folder_.path(), options)), ElementsAre("b", "a", "c"));
    options.only_cwd = "/srv/x/";
    EXPECT_THAT(names(list_sessions(sub(), options)), ElementsAre("b", "a"));
  }
  EXPECT_TRUE(list_sessions(folder_ / "gone").empty());
}

TEST_F(SessionLists, HeadsSayTheSameAsWholeFiles) {
  for (const SessionInfo& full : list_sessions(sub())) {
    const auto head = read_session_info(full.path, InfoDetail::kHead);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->first_message, full.first_message);
    EXPECT_EQ(head->name, full.name);
    EXPECT_EQ(head->modified, full.modified);
    EXPECT_EQ(head->message_count, full.message_count);
  }
}

TEST_F(SessionLists, ReportProgressAndCanBeEnded) {
  std::size_t last = 0;
  ListOptions options;
  options.progress = [&](std::size_t loaded, std::size_t total) {
    EXPECT_EQ(loaded, last + 1);
    EXPECT_EQ(total, 4u);
    last = loaded;
  };
  list_sessions(sub(), options);
  EXPECT_EQ(last, 4u);
  const std::atomic<bool> cancelled = true;
  options.cancelled = &cancelled;
  EXPECT_TRUE(list_sessions(sub(), options).empty());
}

TEST_F(SessionLists, TheMostRecentIsTheFileChangedLast) {  // SES-98, SES-221
  EXPECT_EQ(most_recent_session(sub(), std::nullopt), sub() / "c.jsonl");
  EXPECT_EQ(most_recent_session(sub(), "/srv/x"), sub() / "a.jsonl");
  EXPECT_EQ(most_recent_session(folder_ / "gone", std::nullopt), std::nullopt);
}

TEST_F(SessionLists, AnIdIsFoundByItsBeginning) {  // SES-99, SES-223
  EXPECT_EQ(find_session("bbbb", sub(), folder_.path())->file, sub() / "b.jsonl");
  EXPECT_EQ(find_session("aaaa", sub(), folder_.path())->file, sub() / "a.jsonl") << "the one talked in last";
  EXPECT_EQ(find_session("aaaa3333", sub(), folder_.path())->file, sub() / "c.jsonl");
  EXPECT_FALSE(find_session("bbbb", sub(), folder_.path())->elsewhere);
  const auto other = find_session("aaaa3", sub(), folder_.path(), "/srv/x");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->elsewhere);
  EXPECT_TRUE(find_session("bbbb", folder_ / "mine", folder_.path())->elsewhere);
  EXPECT_FALSE(find_session("nosuch", sub(), folder_.path()));
}

TEST(SessionIds, HaveAShape) {  // SES-10
  for (const char* id : {"a", "my.id-1", "A_b"})
    EXPECT_EQ(session_id_error(id), std::nullopt) << id;
  for (const char* id : {"", "-a", "a-", "a/b", "ä", "a b"})
    EXPECT_NE(session_id_error(id), std::nullopt) << id;
}

}  // namespace
}  // namespace tau::coding
