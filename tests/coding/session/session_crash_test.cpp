// What a session file goes through: programs that are killed, disks that are full, several writers, hostile trees.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coding/session/session.h"
#include "coding/session/session_check.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

agent::AgentMessage said(std::string text) {
  std::vector<ai::UserBlock> blocks{ai::TextContent{std::move(text), {}, {}}};
  return ai::UserMessage{std::move(blocks), 7, {}};
}

std::shared_ptr<Session> open(const fs::path& file) {
  auto session = Session::open(file, "/cwd");
  EXPECT_TRUE(session) << session.error().message;
  return session ? *session : nullptr;
}

std::string text_of_entry(const Session& session, EntryNumber n) {
  const auto message = message_of(session.index().entry(n));
  return message && message->user() != nullptr ? ai::text_of(message->user()->content) : std::string();
}

/// Runs `work` in a process of its own; its return value is the exit code.
template <class Work>
pid_t in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  return child;
}

int exit_code_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class SessionAccident : public testing::Test {
 protected:
  fs::path new_session(const std::string& name, const std::string& text = "first") {
    const auto session = Session::create(folder_.path() / name, "/cwd");
    EXPECT_TRUE(session->append_message(said(text)));
    return *session->file();
  }
  test::TemporaryFolder folder_;
};

TEST_F(SessionAccident, AProgramThatIsKilledAtAnyMomentLosesNothingThatWasWritten) {
  constexpr int kFiles = 20;
  constexpr int kRoundsPerFile = 25;
  std::minstd_rand random(20260203);
  for (int number = 0; number < kFiles; ++number) {
    const fs::path file = new_session("killed" + std::to_string(number));
    std::vector<std::string> settled{"first"};
    for (int round = 0; round < kRoundsPerFile; ++round) {
      int ends[2];
      ASSERT_EQ(::pipe(ends), 0);
      const std::string prefix = std::to_string(round) + "/";
      const pid_t child = in_child([&] {
        const auto session = Session::open(file, "/cwd");
        if (!session) return 1;
        for (int i = 0;; ++i) {
          if (!(*session)->append_message(said(prefix + std::to_string(i) + std::string(300, '.')))) return 1;
          if (::write(ends[1], "+", 1) != 1) return 1;
        }
      });
      ::close(ends[1]);
      char byte = 0;
      ASSERT_EQ(::read(ends[0], &byte, 1), 1) << "the writer did not start";
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 700));
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      int count = 1;
      for (ssize_t n = 0; (n = ::read(ends[0], &byte, 1)) > 0;)
        ++count;
      ::close(ends[0]);
      for (int i = 0; i < count; ++i)
        settled.push_back(prefix + std::to_string(i) + std::string(300, '.'));
    }
    const auto session = open(file);
    ASSERT_NE(session, nullptr);
    // The kernel can end a write at a page's border when its program is killed: a torn line, which is named.
    EXPECT_LE(session->warnings().size(), static_cast<std::size_t>(kRoundsPerFile));
    const std::vector<EntryNumber> path = session->path();
    EXPECT_EQ(path.size(), session->index().size()) << "everything is one path";
    std::size_t found = 0;
    for (const EntryNumber n : path) {
      if (found < settled.size() && text_of_entry(*session, n) == settled[found]) ++found;
    }
    EXPECT_EQ(found, settled.size()) << "missing: " << (found < settled.size() ? settled[found] : "");
    // Of each round one record more may be there: written, but not told any more.
    EXPECT_LE(path.size(), settled.size() + kRoundsPerFile);
  }
}

TEST_F(SessionAccident, AFullDiskKeepsTheLeafAndMakesUpForItLater) {  // FF-26
  const fs::path file = new_session("full");
  const auto size = static_cast<rlim_t>(fs::file_size(file));
  // The limit on the size of a file stops a write in its middle, as a full disk does.
  const int code = exit_code_of(in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const auto session = Session::open(file, "/cwd");
    if (!session) return 1;
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    for (rlim_t room = 0; room < 147; room += 7) {
      limit.rlim_cur = size + room;
      ::setrlimit(RLIMIT_FSIZE, &limit);
      const auto leaf = (*session)->leaf();
      const auto written = (*session)->append_message(said("does not fit " + std::to_string(room)));
      if (written) return 2;
      if (written.error().message.find(file.string()) == std::string::npos) return 3;
      if ((*session)->leaf() != leaf) return 4;
      if (fs::file_size(file) != size) return 5;  // the piece that was written is taken back
    }
    limit.rlim_cur = before;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return (*session)->append_message(said("fits")) ? 0 : 6;
  }));
  ASSERT_EQ(code, 0);
  const auto session = open(file);
  EXPECT_EQ(session->path().size(), 1u + 21u + 1u) << "everything that did not fit was made up for, as one path";
  EXPECT_EQ(text_of_entry(*session, session->path().back()), "fits");
}

TEST_F(SessionAccident, AFileThatIsCutShortIsReadAgainAndCompleted) {
  const fs::path file = new_session("cut");
  const auto session = open(file);
  ASSERT_TRUE(session->append_message(said("second")));
  fs::resize_file(file, fs::file_size(file) - 20);  // in the middle of "second"
  ASSERT_TRUE(session->append_message(said("third")));
  ASSERT_TRUE(session->take_notice());
  const auto again = open(file);
  EXPECT_EQ(text_of_entry(*again, again->path().back()), "third");
  ASSERT_EQ(again->path().size(), 3u);
  EXPECT_EQ(text_of_entry(*again, again->path()[0]), "first");
  EXPECT_EQ(text_of_entry(*again, again->path()[1]), "second") << "what this program still knows is written again";
  EXPECT_THAT(again->warnings(), SizeIs(1)) << "the torn line is named";
}

TEST_F(SessionAccident, WhatWasCutOffAndForgottenIsPassedOver) {
  const fs::path file = new_session("cut");
  ASSERT_TRUE(open(file)->append_message(said("second")));
  const auto session = open(file);  // has decoded nothing yet
  fs::resize_file(file, fs::file_size(file) - 20);
  ASSERT_TRUE(session->append_message(said("third")));
  const auto again = open(file);
  ASSERT_EQ(again->path().size(), 2u) << "the history before the cut is still the history";
  EXPECT_EQ(text_of_entry(*again, again->path()[0]), "first");
}

TEST_F(SessionAccident, EveryCutOfTheLastLineLeavesTheRestAndTheNextAppendWhole) {  // SES-36, FF-23
  const fs::path file = new_session("torn");
  const std::size_t keep = fs::file_size(file);
  ASSERT_TRUE(open(file)->append_message(said("grüße ☂")));
  const std::string whole = test::read_file(file);
  for (std::size_t size = keep; size <= whole.size(); ++size) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    const auto session = open(file);
    const bool complete = size + 1 >= whole.size();  // only the line end can be missing
    ASSERT_EQ(session->index().size(), complete ? 2u : 1u) << size;
    ASSERT_EQ(session->warnings().empty(), complete || size == keep) << size;
    if (!session->warnings().empty()) {
      EXPECT_THAT(session->warnings()[0], HasSubstr("line 3"));
    }
    ASSERT_TRUE(session->append_message(said("next")));
    const auto again = Session::view(file, "/cwd");
    ASSERT_TRUE(again);
    ASSERT_EQ((*again)->path().size(), complete ? 3u : 2u) << size;
  }
}

TEST_F(SessionAccident, FourWritersMixNothingAndAreToldOfEachOther) {  // FF-110
  constexpr int kWriters = 4;
  constexpr int kAppends = 1000;
  const fs::path file = new_session("shared");
  int gate[2];
  int ready[2];
  ASSERT_EQ(::pipe(gate), 0);
  ASSERT_EQ(::pipe(ready), 0);
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    children.push_back(in_child([&, w] {
      ::close(gate[1]);
      const auto session = Session::open(file, "/cwd");
      if (!session || ::write(ready[1], "r", 1) != 1) return 1;
      char byte = 0;
      if (::read(gate[0], &byte, 1) != 0) return 1;  // until all are there
      for (int i = 0; i < kAppends; ++i) {
        const auto text = std::to_string(w) + "/" + std::to_string(i) + std::string(static_cast<std::size_t>(i), 'x');
        if (!(*session)->append_message(said(text))) return 1;
      }
      return (*session)->take_notice() ? 10 : 20;
    }));
  }
  for (int w = 0; w < kWriters; ++w) {
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  }
  for (const int fd : {gate[0], gate[1], ready[0], ready[1]})
    ::close(fd);
  for (const pid_t child : children)
    EXPECT_EQ(exit_code_of(child), 10) << "each writer is told";

  const auto session = open(file);
  EXPECT_THAT(session->warnings(), IsEmpty());
  ASSERT_EQ(session->index().size(), 1u + kWriters * kAppends);
  std::map<std::string, std::string> text_of;  // by id
  std::map<std::string, int> next;
  for (EntryNumber n = 0; n < session->index().size(); ++n) {
    const std::string text = text_of_entry(*session, n);
    text_of[std::string(session->index().head(n).id)] = text;
    if (n == 0) continue;
    // A writer's record hangs on its own one before: each has a branch of its own.
    const std::string writer = text.substr(0, 1);
    const int i = next[writer]++;
    ASSERT_EQ(text, writer + "/" + std::to_string(i) + std::string(static_cast<std::size_t>(i), 'x'));
    const std::string& parent = text_of.at(std::string(session->index().head(n).parent));
    ASSERT_TRUE(i == 0 ? parent == "first" : parent.starts_with(writer + "/" + std::to_string(i - 1) + "x") || i == 1)
        << text.substr(0, 10) << " hangs on " << parent.substr(0, 10);
  }
  EXPECT_EQ(session->tree().children[0].size(), static_cast<std::size_t>(kWriters)) << "four visible branches";
}

#ifdef NDEBUG
constexpr std::size_t kMany = 1'000'000;
#else
constexpr std::size_t kMany = 100'000;
#endif

fs::path many_records(const test::TemporaryFolder& folder, const std::string& name, std::size_t count,
                      std::string (*parent_of)(std::size_t)) {
  std::string text = R"({"type":"session","version":3,"id":"s1","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/srv"})"
                     "\n";
  for (std::size_t i = 0; i < count; ++i) {
    text += R"({"type":"label","id":"e)" + std::to_string(i) + R"(","parentId":")" + parent_of(i) +
            R"(","timestamp":"2026-02-03T09:00:01.000Z","targetId":"e0"})" + "\n";
  }
  return folder.write(name, text);
}

TEST_F(SessionAccident, AMillionOrphansAreAMillionRoots) {
  const fs::path file =
      many_records(folder_, "orphans.jsonl", kMany, [](std::size_t i) { return "gone" + std::to_string(i); });
  const auto session = open(file);
  EXPECT_EQ(session->path().size(), 1u);
  EXPECT_EQ(session->tree().roots.size(), kMany);
  const auto findings = check_session(file);
  ASSERT_TRUE(findings);
  EXPECT_EQ(findings->size(), kMany);
}

TEST_F(SessionAccident, ARingOfAMillionParentsEnds) {  // SES-74
  const fs::path file = many_records(folder_, "ring.jsonl", kMany,
                                     [](std::size_t i) { return "e" + std::to_string(i > 0 ? i - 1 : kMany - 1); });
  const auto session = open(file);
  EXPECT_EQ(session->path().size(), kMany);
  EXPECT_EQ(session->tree().roots.size(), 1u);
  const auto findings = check_session(file);
  ASSERT_TRUE(findings);
  EXPECT_TRUE(std::any_of(findings->begin(), findings->end(), [](const Finding& f) { return f.rule == "SES-74"; }));
}

TEST_F(SessionAccident, AViewChangesNothing) {
  const std::string whole = test::read_file(new_session("viewed"));
  const fs::path file = folder_.write("v.jsonl", whole.substr(0, whole.size() - 1));
  const auto writer = open(folder_.write("w.jsonl", whole));
  const auto first = Session::view(file, "/cwd");
  ASSERT_TRUE(first);
  EXPECT_EQ((*first)->index().size(), 1u);
  EXPECT_EQ(test::read_file(file), whole.substr(0, whole.size() - 1));
  const auto second = Session::open(file, "/cwd");
  EXPECT_FALSE((*second)->take_notice()) << "a reader is no second writer";
}

}  // namespace
}  // namespace tau::coding
