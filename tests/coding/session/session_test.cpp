#include "coding/session/session.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "coding/roles/bash_execution.h"
#include "coding/roles/convert_to_llm.h"
#include "coding/roles/custom.h"
#include "coding/session/session_fork.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kHeader =
    R"({"type":"session","version":3,"id":"s1","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/srv"})";

std::string entry(const std::string& id, const std::string& parent, const std::string& text,
                  const std::string& role = "user") {
  json::object message{{"role", role}, {"content", {{{"type", "text"}, {"text", text}}}}, {"timestamp", 5}};
  json::object o{{"type", "message"}, {"id", id}};
  o["parentId"] = parent.empty() ? json::value(nullptr) : json::value(parent);
  o["timestamp"] = "2026-02-03T09:00:01.000Z";
  o["message"] = std::move(message);
  return json::to_text(o);
}

std::string file_of(std::initializer_list<std::string> lines) {
  std::string out(kHeader);
  out += '\n';
  for (const std::string& line : lines)
    out += line + '\n';
  return out;
}

agent::AgentMessage user(std::string text) {
  std::vector<ai::UserBlock> blocks{ai::TextContent{std::move(text), {}, {}}};
  return ai::UserMessage{std::move(blocks), 7, {}};
}

agent::AgentMessage reply(std::string text) {
  ai::AssistantMessage message;
  message.content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  message.provider = "brook";
  message.model = "pebble-1";
  return message;
}

std::vector<std::string> texts(const Session& session) {
  std::vector<std::string> out;
  for (const ai::MessageRef& message : convert_to_llm(session.context().messages)) {
    if (const auto* u = std::get_if<ai::UserMessage>(message.get())) out.push_back(ai::text_of(u->content));
    if (const auto* a = std::get_if<ai::AssistantMessage>(message.get())) out.push_back(ai::text_of(*a));
  }
  return out;
}

std::shared_ptr<Session> open(const fs::path& file) {
  auto session = Session::open(file, "/cwd");
  EXPECT_TRUE(session) << session.error().message;
  return session ? *session : nullptr;
}

std::vector<json::value> lines_of(const fs::path& file) {
  return test::read_json_lines(file);
}

class SessionInFolder : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
};
using SessionReading = SessionInFolder;
using SessionWriting = SessionInFolder;
using SessionSharing = SessionInFolder;
using SessionMoving = SessionInFolder;

// ---- reading -----------------------------------------------------------------------------------------------------

TEST_F(SessionReading, AnAppendAfterAMissingLineEndStartsOnALineOfItsOwn) {  // FF-23
  std::string text = file_of({entry("a1", "", "one"), entry("a2", "a1", "two")});
  text.pop_back();
  const fs::path file = folder_.write("s.jsonl", text);
  auto session = open(file);
  ASSERT_TRUE(session->append_session_info("named"));
  session.reset();
  EXPECT_THAT(lines_of(file), SizeIs(4));
  EXPECT_THAT(texts(*open(file)), ElementsAre("one", "two"));
  EXPECT_EQ(open(file)->name(), "named");
}

TEST_F(SessionReading, ATornLastLineIsHarmlessWhereverItWasTorn) {  // SES-36, FF-23, FF-26
  const std::string whole = file_of({entry("a1", "", "one"), entry("a2", "a1", "zwei ü 😀")});
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t length = last_line; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    const fs::path file = folder_.write("s.jsonl", whole.substr(0, length));
    auto session = open(file);
    ASSERT_TRUE(session);
    const bool complete = length == whole.size() - 1;
    EXPECT_EQ(session->leaf(), complete ? "a2" : "a1");
    ASSERT_TRUE(session->append_message(user("three")));
    session.reset();
    const std::string after = test::read_file(file);
    EXPECT_EQ(after.substr(0, length), whole.substr(0, length)) << "earlier bytes stay";
    EXPECT_TRUE(after.ends_with('\n'));
    const auto again = open(file);
    EXPECT_EQ(texts(*again), complete ? (std::vector<std::string>{"one", "zwei ü 😀", "three"})
                                      : (std::vector<std::string>{"one", "three"}));
  }
}

TEST_F(SessionReading, GluedRecordsAreSplit) {  // FF-24
  const std::string text = file_of({entry("a1", "", "one") + entry("a2", "a1", "two"), entry("a3", "a2", "three")});
  const fs::path file = folder_.write("s.jsonl", text);
  const auto session = open(file);
  EXPECT_THAT(texts(*session), ElementsAre("one", "two", "three"));
  EXPECT_THAT(session->warnings(), ElementsAre(HasSubstr("line 2")));
  EXPECT_EQ(test::read_file(file), text) << "not rewritten";
}

TEST_F(SessionReading, AWholeRecordBehindATornOneCounts) {  // FF-24
  const std::string a1 = entry("a1", "", "one");
  for (std::size_t cut = 1; cut < a1.size(); ++cut) {
    SCOPED_TRACE(a1.substr(0, cut));
    const fs::path file =
        folder_.write("s.jsonl", file_of({a1.substr(0, cut) + entry("a2", "a1", "two"), entry("a3", "a2", "three")}));
    const auto session = open(file);
    EXPECT_THAT(texts(*session), ElementsAre("two", "three"));
    EXPECT_THAT(session->warnings(), ElementsAre(HasSubstr("line 2")));
  }
}

TEST_F(SessionReading, UnreadableLinesAreSkippedAndNamed) {  // FF-25
  const fs::path file = folder_.write(
      "s.jsonl", file_of({entry("a1", "", "one"), std::string(300, '\0'), entry("a2", "a1", "two"), "{\"type\":", ""}));
  auto session = open(file);
  EXPECT_THAT(texts(*session), ElementsAre("one", "two"));
  EXPECT_THAT(session->warnings(), ElementsAre(HasSubstr("line 3"), HasSubstr("line 5")));
  ASSERT_TRUE(session->append_message(user("three")));
  session.reset();
  EXPECT_THAT(texts(*open(file)), ElementsAre("one", "two", "three"));
}

TEST_F(SessionReading, AnUnknownParentIsASecondRoot) {  // FF-26
  const auto session = open(folder_.write("s.jsonl", file_of({entry("a1", "", "one"), entry("a2", "gone", "two")})));
  EXPECT_THAT(session->tree().roots, ElementsAre(0, 1));
  EXPECT_THAT(texts(*session), ElementsAre("two"));
}

TEST_F(SessionReading, RingsOfParentsEnd) {  // SES-74
  const auto session = open(folder_.write("s.jsonl", file_of({entry("a1", "a3", "one"), entry("a2", "a1", "two"),
                                                              entry("a3", "a2", "three"), entry("b", "b", "self")})));
  EXPECT_THAT(session->tree().roots, ElementsAre(0, 3));
  EXPECT_THAT(texts(*session), ElementsAre("self"));
  ASSERT_TRUE(session->branch("a3"));
  EXPECT_THAT(texts(*session), ElementsAre("one", "two", "three"));
}

TEST_F(SessionReading, ARecordThatIsDamagedInItsMiddleKeepsItsPlace) {
  std::string damaged = entry("a2", "a1", "two");
  damaged.replace(damaged.find("[{"), 2, "[[");
  const auto session =
      open(folder_.write("s.jsonl", file_of({entry("a1", "", "one"), damaged, entry("a3", "a2", "three")})));
  EXPECT_THAT(texts(*session), ElementsAre("one", "three"));
  EXPECT_THAT(session->path(), SizeIs(3));
}

TEST_F(SessionReading, WhatIsNoSessionIsRefusedAndStays) {  // FF-28
  for (const std::string text : {"# Notes\n\nhello\n", "[1,2]\n", "{\"type\":\"message\"}\n", "\xEF\xBB\xBF\n", "\n"}) {
    const fs::path file = folder_.write("notes.md", text);
    const auto session = Session::open(file, "/cwd");
    ASSERT_FALSE(session) << text;
    EXPECT_THAT(session.error().message, HasSubstr(file.string()));
    EXPECT_EQ(test::read_file(file), text);
  }
  EXPECT_FALSE(Session::open(folder_.path(), "/cwd"));
}

TEST_F(SessionReading, AByteOrderMarkIsAccepted) {  // FF-114
  const std::string text = "\xEF\xBB\xBF" + file_of({entry("a1", "", "one")});
  const fs::path file = folder_.write("s.jsonl", text);
  auto session = open(file);
  EXPECT_EQ(session->id(), "s1");
  ASSERT_TRUE(session->append_message(user("two")));
  session.reset();
  EXPECT_THAT(test::read_file(file), testing::StartsWith(text));
  EXPECT_THAT(texts(*open(file)), ElementsAre("one", "two"));
}

TEST_F(SessionReading, LineSeparatorsInsideTextAreText) {  // FF-33
  const std::string text = "a\u2028b\u2029c\u0085d";
  const fs::path file = folder_ / "s.jsonl";
  {
    auto session = open(file);
    ASSERT_TRUE(session->append_message(user(text)));
  }
  const std::string bytes = test::read_file(file);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), 2);
  EXPECT_THAT(texts(*open(file)), ElementsAre(text));
}

TEST_F(SessionReading, CharactersOnBufferBordersArrive) {  // FF-34
  std::set<std::size_t> places;
  for (const std::size_t border : {std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 20}) {
    for (std::size_t at = border - 6; at <= border + 4; ++at)
      places.insert(at);
  }
  for (const std::size_t at : places) {
    const std::string before = file_of({});
    const std::string record = entry("a1", "", "@");
    const std::size_t lead = before.size() + record.find('@');
    const std::string text = std::string(at - lead, 'x') + "😀é☂ end";
    const auto session = open(folder_.write("s.jsonl", file_of({entry("a1", "", text), entry("a2", "a1", "two")})));
    EXPECT_EQ(texts(*session), (std::vector<std::string>{text, "two"})) << at;
  }
}

// ---- writing -----------------------------------------------------------------------------------------------------

TEST_F(SessionWriting, AnUntouchedStartMakesNoFileAndThePromptIsOnDiskAtOnce) {  // FF-27
  const auto session = Session::create(folder_ / "new", "/srv");
  ASSERT_TRUE(session->append_model_change({"brook", "pebble-1"}));
  ASSERT_TRUE(session->append_thinking_level_change(ai::ThinkingLevel::kMedium));
  BashExecution bash;
  bash.command = "ls";
  ASSERT_TRUE(session->append_message(agent::AgentMessage::of(bash)));
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  ASSERT_TRUE(session->append_message(user("hello")));
  const auto lines = lines_of(*session->file());
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(json::string_or(lines[0].as_object(), "type"), "session");
  EXPECT_EQ(json::to_text(*json::find(lines[4], "message")),
            R"({"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":7})");
}

TEST_F(SessionWriting, RecordsHaveTheMembersAndTheirOrderOfPi) {  // SES section 6, SES-210
  const auto session = Session::in_memory("/srv");
  ASSERT_TRUE(session->append_message(user("q")));
  const std::string first = *session->leaf();
  ASSERT_TRUE(session->append_model_change({"p", "m"}));
  ASSERT_TRUE(session->append_thinking_level_change(ai::ThinkingLevel::kHigh));
  ASSERT_TRUE(session->append_custom("counter", json::value{{"n", 1}}));
  CustomMessage custom;
  custom.custom_type = "hint";
  custom.content = "Shown.";
  custom.details = json::value{{"level", 2}};
  ASSERT_TRUE(session->append_message(agent::AgentMessage::of(custom)));
  ASSERT_TRUE(session->append_label(first, "start"));
  ASSERT_TRUE(session->append_label(first, ""));
  ASSERT_TRUE(session->append_session_info(" two\r\nlines\x1b[31m "));
  ASSERT_TRUE(session->append_compaction({"sum", first, 12, json::object{}, ai::Usage{}, false}));
  ASSERT_TRUE(session->branch_with_summary(first, {"was", {}, {}, true}));
  const auto keys = [&](EntryNumber n) {
    std::string out;
    for (const auto& [key, member] : session->index().entry(n).source)
      out += std::string(key) + " ";
    return out;
  };
  EXPECT_EQ(keys(0), "type id parentId timestamp message ");
  EXPECT_EQ(keys(1), "type id parentId timestamp provider modelId ");
  EXPECT_EQ(keys(2), "type id parentId timestamp thinkingLevel ");
  EXPECT_EQ(keys(3), "type customType data id parentId timestamp ");
  EXPECT_EQ(keys(4), "type customType content display details id parentId timestamp ");
  EXPECT_EQ(keys(5), "type id parentId timestamp targetId label ");
  EXPECT_EQ(keys(6), "type id parentId timestamp targetId ");
  EXPECT_EQ(keys(7), "type id parentId timestamp name ");
  EXPECT_EQ(keys(8), "type id parentId timestamp summary firstKeptEntryId tokensBefore details usage fromHook ");
  EXPECT_EQ(keys(9), "type id parentId timestamp fromId summary fromHook ");
  EXPECT_EQ(session->name(), "two lines");  // FF-32
  EXPECT_EQ(json::string_or(session->index().entry(9).source, "fromId"), session->index().head(8).id);
  for (EntryNumber n = 0; n < 10; ++n) {
    EXPECT_TRUE(quick_head(session->index().text(n))) << "the scanner knows its own records: " << n;
  }
}

/// Limits the size of files while it lives, as a full disk would.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST_F(SessionWriting, AFailedWriteIsMadeUpForByTheNextOne) {  // FF-26
  const fs::path file = folder_.write("s.jsonl", file_of({entry("a1", "", "one")}));
  auto session = open(file);
  const std::string before = test::read_file(file);
  {
    const FullDisk full(before.size() + 20);  // a part of the record fits
    EXPECT_FALSE(session->append_message(user("two")));
    EXPECT_EQ(session->leaf(), "a1") << "the leaf stays";
    EXPECT_FALSE(session->append_message(reply("three")));
    EXPECT_EQ(test::read_file(file), before) << "nothing half is left behind";
  }
  ASSERT_TRUE(session->append_message(user("four")));
  EXPECT_EQ(session->leaf(), session->last_appended());
  EXPECT_THAT(texts(*session), ElementsAre("one", "two", "three", "four"));
  session.reset();
  EXPECT_THAT(texts(*open(file)), ElementsAre("one", "two", "three", "four"));
}

TEST_F(SessionWriting, ARecordThatIsWrittenLateDoesNotMoveALeafThatWasMovedMeanwhile) {  // FF-26
  const fs::path file = folder_.write("s.jsonl", file_of({entry("a1", "", "one"), entry("a2", "a1", "two")}));
  auto session = open(file);
  {
    const FullDisk full(fs::file_size(file));
    EXPECT_FALSE(session->append_message(user("late")));
  }
  ASSERT_TRUE(session->branch("a1"));
  ASSERT_TRUE(session->ensure_on_disk());
  EXPECT_EQ(session->leaf(), "a1");
  EXPECT_EQ(session->index().size(), 3u);
}

TEST_F(SessionWriting, WhatCouldNotBeCreatedIsCreatedLater) {  // FF-26, FF-27
  const auto session = Session::create(folder_.path(), "/srv");
  {
    const FullDisk full(50);
    EXPECT_FALSE(session->append_message(user("one")));
    EXPECT_FALSE(fs::exists(*session->file()));
  }
  ASSERT_TRUE(session->append_message(reply("two")));
  EXPECT_THAT(texts(*open(*session->file())), ElementsAre("one", "two"));
}

TEST_F(SessionWriting, AReadOnlyFolderIsAnErrorThatNamesTheFile) {
  if (geteuid() == 0 && seteuid(65534) != 0) GTEST_SKIP() << "cannot leave root";
  const test::TemporaryFolder own;
  chmod(own.path().c_str(), 0555);
  const auto session = Session::create(own.path(), "/srv");
  const auto written = session->append_message(user("one"));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr(session->file()->string()));
  EXPECT_THAT(texts(*session), ElementsAre("one")) << "the session goes on in memory";
  chmod(own.path().c_str(), 0755);
  EXPECT_TRUE(session->ensure_on_disk());
  EXPECT_EQ(seteuid(getuid()), 0);
}

TEST_F(SessionWriting, AFileThatVanishedIsWrittenAnew) {
  const fs::path file = folder_.write("s.jsonl", file_of({entry("a1", "", "one")}));
  auto session = open(file);
  fs::remove(file);
  ASSERT_TRUE(session->append_message(user("two")));
  session.reset();
  EXPECT_THAT(texts(*open(file)), ElementsAre("one", "two"));
}

TEST_F(SessionWriting, AFileThatWasReplacedIsReadAgain) {
  const fs::path file = folder_.write("s.jsonl", file_of({entry("a1", "", "one"), entry("a2", "a1", "two")}));
  auto session = open(file);
  fs::rename(folder_.write("t.jsonl", file_of({entry("a1", "", "one"), entry("b1", "a1", "other")})), file);
  ASSERT_TRUE(session->append_message(user("three")));
  EXPECT_TRUE(session->take_notice());
  EXPECT_THAT(texts(*session), ElementsAre("one", "two", "three"));
  session.reset();
  session = open(file);
  EXPECT_THAT(texts(*session), ElementsAre("one", "two", "three"));
  EXPECT_TRUE(session->index().find("b1"));
}

TEST_F(SessionWriting, AnotherFileOfThatNameIsNotOverwritten) {  // SES-51
  const auto session = Session::create(folder_.path(), "/srv");
  folder_.write(session->file()->filename(), "mine");
  EXPECT_FALSE(session->append_message(user("one")));
  EXPECT_EQ(test::read_file(*session->file()), "mine");
}

TEST_F(SessionWriting, EachSessionHasItsOwnFile) {  // FF-31
  const fs::path a = folder_.write("a.jsonl", file_of({entry("a1", "", "one")}));
  const fs::path b = folder_.write("b.jsonl", file_of({entry("b1", "", "uno")}));
  auto session = open(a);
  ASSERT_TRUE(session->append_message(user("two")));
  const std::string after = test::read_file(a);
  session = open(b);
  ASSERT_TRUE(session->append_message(user("due")));
  EXPECT_EQ(test::read_file(a), after);
  session = open(a);
  ASSERT_TRUE(session->append_session_info("name"));
  EXPECT_THAT(lines_of(b), SizeIs(3));
  EXPECT_THAT(lines_of(a), SizeIs(4));
}

// ---- several writers -----------------------------------------------------------------------------------------------

TEST_F(SessionSharing, ASecondProgramIsTold) {  // FF-110
  const fs::path file = folder_.write("s.jsonl", file_of({entry("a1", "", "one")}));
  auto first = open(file);
  EXPECT_FALSE(first->take_notice());
  auto second = open(file);
  EXPECT_TRUE(second->take_notice());
  ASSERT_TRUE(second->append_message(user("mine")));
  ASSERT_TRUE(first->append_message(user("yours")));
  EXPECT_TRUE(first->take_notice()) << "bytes that are not its own";
  EXPECT_THAT(texts(*first), ElementsAre("one", "yours"));
  EXPECT_THAT(texts(*second), ElementsAre("one", "mine"));
  EXPECT_EQ(first->tree().children[0].size(), 2u) << "both branches can be seen";
  first.reset();
  second.reset();
  EXPECT_FALSE(open(file)->take_notice()) << "no mark is left behind";
}

TEST_F(SessionSharing, ProgramsThatTakeNoLockAreNoticedByTheirBytes) {  // FF-110: pi
  const fs::path file = folder_.write("s.jsonl", file_of({entry("a1", "", "one")}));
  auto session = open(file);
  std::ofstream(file, std::ios::app) << entry("p1", "a1", "pi's") << '\n' << "{\"torn\":";
  ASSERT_TRUE(session->append_message(user("two")));
  EXPECT_TRUE(session->take_notice());
  ASSERT_TRUE(session->append_message(user("three")));
  EXPECT_FALSE(session->take_notice()) << "told once";
  EXPECT_TRUE(session->index().find("p1"));
  EXPECT_THAT(texts(*session), ElementsAre("one", "two", "three"));
  session.reset();
  EXPECT_THAT(texts(*open(file)), ElementsAre("one", "two", "three"));
}

TEST_F(SessionSharing, TwoProcessesMixNoLines) {  // FF-110
  constexpr int kRecords = 200;
  const fs::path file = folder_.write("s.jsonl", file_of({entry("a1", "", "one")}));
  std::vector<pid_t> children;
  int opened[2];
  int go[2];
  ASSERT_EQ(pipe(opened) + pipe(go), 0);
  for (const char name : {'x', 'y'}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto session = Session::open(file, "/cwd");
      char byte = 0;
      bool ok = session.has_value() && write(opened[1], "o", 1) == 1 && read(go[0], &byte, 1) == 1;
      for (int i = 0; ok && i < kRecords; ++i) {
        ok = (*session)->append_message(user(std::string(1, name) + std::string(i * 37 % 5000, name))).has_value();
      }
      // Each sees one path of its own records only.
      for (const std::string& text : texts(**session))
        ok = ok && (text == "one" || text.front() == name);
      ok = ok && texts(**session).size() == kRecords + 1;
      _exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  char bytes[2];
  ASSERT_EQ(read(opened[0], bytes, 1) + read(opened[0], bytes, 1), 2);
  ASSERT_EQ(write(go[1], "go", 2), 2);
  for (const int fd : {opened[0], opened[1], go[0], go[1]})
    close(fd);
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(lines_of(file), SizeIs(2 + 2 * kRecords)) << "every line parses";
  const auto session = open(file);
  EXPECT_THAT(session->warnings(), IsEmpty());
  EXPECT_EQ(session->index().size(), 1u + 2 * kRecords);
  EXPECT_EQ(session->tree().roots.size(), 1u);
  EXPECT_EQ(session->path().size(), 1u + kRecords);
}

TEST_F(SessionSharing, TheLockOfAKilledProcessIsGone) {  // FF-110
  const fs::path file = folder_.write("s.jsonl", file_of({entry("a1", "", "one")}));
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto session = Session::open(file, "/cwd");
    const char ok = session ? 'y' : 'n';
    if (write(ready[1], &ok, 1) == 1) pause();
    _exit(1);
  }
  char ok = 'n';
  ASSERT_EQ(read(ready[0], &ok, 1), 1);
  EXPECT_TRUE(open(file)->take_notice());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(open(file)->take_notice());
  close(ready[0]);
  close(ready[1]);
}

// ---- moving, forks -------------------------------------------------------------------------------------------------

TEST_F(SessionMoving, BranchesKeepWhatTheyLeave) {  // SES-79a, SES-79b
  const auto session = Session::in_memory("/srv");
  ASSERT_TRUE(session->append_message(user("one")));
  const std::string first = *session->leaf();
  ASSERT_TRUE(session->append_message(user("two")));
  ASSERT_TRUE(session->branch_with_summary(first, {"two was tried", {}, {}, {}}));
  ASSERT_TRUE(session->append_message(user("three")));
  EXPECT_THAT(texts(*session), ElementsAre("one", HasSubstr("two was tried"), "three"));
  session->reset_leaf();
  EXPECT_THAT(texts(*session), IsEmpty());
  ASSERT_TRUE(session->append_message(user("root")));
  EXPECT_THAT(session->tree().roots, SizeIs(2));
  EXPECT_EQ(session->branch("nope").error().message, "Entry nope not found");
  EXPECT_EQ(session->append_label("nope", "x").error().message, "Entry nope not found");
}

TEST_F(SessionMoving, ARebuiltContextSharesItsMessages) {
  const auto session = Session::in_memory("/srv");
  const agent::AgentMessage message = user("one");
  ASSERT_TRUE(session->append_message(message));
  EXPECT_TRUE(session->context().messages.front() == message);
}

TEST_F(SessionMoving, AForkKeepsTheCompactionBoundary) {  // FF-30
  const fs::path file = folder_ / "s.jsonl";
  auto session = open(file);
  std::string fifteenth;
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(session->append_message(i % 2 ? user(fmt::format("m{}", i)) : reply(fmt::format("m{}", i))));
    if (i != 14) continue;
    ASSERT_TRUE(session->append_label(*session->leaf(), "here"));
    fifteenth = *session->leaf();  // the label stands before message 15
  }
  ASSERT_TRUE(session->append_compaction({"summary", fifteenth, 1000, {}, {}, false}));
  for (int i = 21; i <= 24; ++i)
    ASSERT_TRUE(session->append_message(user(fmt::format("m{}", i))));
  const auto fork = fork_at(*session, *session->leaf(), folder_.path());
  ASSERT_TRUE(fork);
  EXPECT_EQ(texts(**fork), texts(*session));
  EXPECT_EQ(texts(**fork).size(), 11u);
  EXPECT_EQ(json::string_or((*fork)->header(), "parentSession"), file.string());
  EXPECT_EQ(texts(*open(*(*fork)->file())), texts(*session)) << "on disk at once";
  EXPECT_EQ((*fork)->labels().by_target.size(), 1u);
}

TEST_F(SessionMoving, AForkBeforeAMessageGivesItsText) {  // SES-93
  auto session = open(folder_ / "s.jsonl");
  ASSERT_TRUE(session->append_message(user("one")));
  const std::string first = *session->leaf();
  ASSERT_TRUE(session->append_message(reply("two")));
  const std::string second = *session->leaf();
  ASSERT_TRUE(session->append_message(user("three")));
  const auto fork = fork_before(*session, *session->leaf(), folder_.path());
  ASSERT_TRUE(fork);
  EXPECT_EQ(fork->text, "three");
  EXPECT_THAT(texts(*fork->session), ElementsAre("one", "two"));
  const auto empty = fork_before(*session, first, folder_.path());
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->session->index().size(), 0u);
  EXPECT_FALSE(fs::exists(*empty->session->file())) << "SES-92";
  EXPECT_FALSE(fork_before(*session, second, folder_.path()));
}

TEST_F(SessionMoving, AForkOfAnOldFileIsMigrated) {  // SES-94
  const fs::path source = test::fixture_root() / "session" / "v1-linear" / "session.jsonl";
  const auto fork = fork_file(source, "/target", folder_.path(), "my.id");
  ASSERT_TRUE(fork) << fork.error().message;
  const auto again = open(*(*fork)->file());
  EXPECT_EQ(again->id(), "my.id");
  EXPECT_EQ(again->cwd(), "/target");
  EXPECT_EQ(again->path().size(), 4u);
  EXPECT_FALSE(fork_file(folder_.write("no.jsonl", "x"), "/target", folder_.path()));
}

TEST_F(SessionMoving, AnExportReadsBackAsTheSamePath) {  // SES-105
  const auto session = open(folder_.write(
      "s.jsonl", file_of({entry("a1", "", "one"), entry("a2", "a1", "two"), entry("a3", "a1", "three")})));
  const auto exported = open(folder_.write("e.jsonl", export_jsonl(*session)));
  EXPECT_THAT(texts(*exported), ElementsAre("one", "three"));
  EXPECT_EQ(exported->id(), session->id());
}

TEST_F(SessionMoving, AnImportNeverReplacesAFile) {  // FF-29
  const fs::path source = folder_.write("in/s.jsonl", file_of({entry("a1", "", "one")}));
  const fs::path target = folder_ / "sessions";
  EXPECT_EQ(import_session(source, target), target / "s.jsonl");
  EXPECT_EQ(import_session(source, target), target / "s-1.jsonl");
  EXPECT_EQ(import_session(target / "s.jsonl", target), target / "s.jsonl");
  EXPECT_FALSE(import_session(folder_.write("in/notes.jsonl", "hello"), target));
  EXPECT_FALSE(import_session(folder_ / "gone", target));
  EXPECT_EQ(std::distance(fs::directory_iterator(target), {}), 2);
}

}  // namespace
}  // namespace tau::coding
