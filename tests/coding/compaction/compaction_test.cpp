// Compactions and branch summaries of a running session, with a provider that plays the summaries too.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "coding/compaction/context_size.h"
#include "coding/compaction/file_tracking.h"
#include "coding/roles/compaction_summary.h"
#include "coding/session_player.h"

#include "support/run.h"

namespace tau::coding {
namespace {

class CompactionTest : public testing::Test, protected test::SessionPlayer {
 protected:
  CompactionTest() { options.compaction.keep_recent_tokens = 1; }

  std::expected<CompactionResult, Error> compact(std::string focus = {}) {
    return test::run(io, agent().compact(std::move(focus)));
  }

  /// Two finished turns.
  void talk() {
    replies = {{.text = "first answer"}, {.text = "second answer"}};
    start();
    prompt("first question");
    prompt("second question");
    requests.clear();
    request_options.clear();
  }

  int stored_compactions() const {
    int count = 0;
    for (const json::value& entry : entries())
      count += json::string_or(entry.as_object(), "type") == "compaction" ? 1 : 0;
    return count;
  }

  std::string request_text(std::size_t n) const {
    return ai::text_of(std::get<ai::UserMessage>(*requests.at(n).messages.back()).content);
  }
};

TEST_F(CompactionTest, TheSummaryTakesThePlaceOfTheHistory) {
  talk();
  options.compaction.keep_recent_tokens = 1;
  replies = {{.text = "They talked."}, {.text = "Beginning."}};
  const auto result = compact();
  ASSERT_TRUE(result) << result.error().message;
  // The last answer is kept; its turn is split (SES-134), so there are two requests (SES-148).
  EXPECT_EQ(requests.size(), 2u);
  EXPECT_TRUE(result->summary.starts_with("They talked.\n\n---\n\n**"));
  EXPECT_EQ(json::to_text(state()), R"(["compactionSummary","assistant/stop"])");
  EXPECT_EQ(stored_compactions(), 1);
  EXPECT_EQ(result->estimated_tokens_after, estimate_tokens(agent().messages()));
  EXPECT_EQ(count("compaction_start"), 1);
  EXPECT_EQ(count("compaction_end"), 1);
}

TEST_F(CompactionTest, TheRequestHoldsTheConversationAsText) {  // SES-145, SES-146, SES-149
  talk();
  replies = {{.text = "s"}, {.text = "p"}};
  ASSERT_TRUE(compact("the tests"));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_TRUE(requests[0].tools.empty());
  ASSERT_EQ(requests[0].messages.size(), 1u);
  const std::string text = request_text(0);
  EXPECT_TRUE(text.starts_with("<conversation>\n[User]: first question\n\n[Assistant]: first answer\n</conversation>"))
      << text;
  EXPECT_TRUE(text.ends_with("\n\nAdditional focus: the tests"));
  EXPECT_EQ(text.find("<previous-summary>"), std::string::npos);
  EXPECT_EQ(request_text(1).find("the tests"), std::string::npos);
  EXPECT_EQ(request_options[0].max_tokens, 8000);  // the model's own limit is the smaller one
  EXPECT_EQ(request_options[0].cache_retention, ai::CacheRetention::kNone);
  EXPECT_NE(request_options[0].session_id, agent().session().id());
}

TEST_F(CompactionTest, TheNextOneCarriesOnThePreviousSummary) {
  talk();
  replies = {{.text = "OLD FACTS"},     {.text = "p"},   {.text = "third answer"},
             {.text = "fourth answer"}, {.text = "NEW"}, {.text = "p2"}};
  ASSERT_TRUE(compact());
  prompt("third question");
  prompt("fourth question");
  requests.clear();
  const auto result = compact();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NE(request_text(0).find("<previous-summary>\nOLD FACTS"), std::string::npos);
  EXPECT_TRUE(result->summary.starts_with("NEW"));
}

TEST_F(CompactionTest, ACutEmptyOrFailedSummaryIsNotStored) {  // FF-38
  talk();
  options.compaction.enabled = false;
  const json::array before = state();
  const test::PlayedReply bad[] = {
      {.text = "half", .stop = ai::StopReason::kLength},
      {.text = " \n "},
      {.error = "400 no"},
      {.calls = {"c1"}},
  };
  for (const test::PlayedReply& reply : bad) {
    replies = {reply};
    const auto result = compact();
    ASSERT_FALSE(result);
    ASSERT_TRUE(compactions.back().error_message);
    EXPECT_EQ(*compactions.back().error_message, "Compaction failed: " + result.error().message);
    EXPECT_FALSE(compactions.back().aborted);
    EXPECT_EQ(stored_compactions(), 0);
    EXPECT_EQ(json::to_text(state()), json::to_text(before));
  }
  EXPECT_FALSE(agent().compacting());  // FF-41
  replies = {{}};
  prompt("still there?");
}

TEST_F(CompactionTest, APassingFailureOfTheSummaryIsRetried) {  // SES-149
  talk();
  replies = {{.error = "503 overloaded"}, {.text = "s"}, {.text = "p"}};
  EXPECT_TRUE(compact());
  EXPECT_EQ(count("summarization_retry_scheduled"), 1);
  EXPECT_EQ(count("summarization_retry_attempt_start"), 1);
  EXPECT_EQ(count("summarization_retry_finished"), 1);
}

TEST_F(CompactionTest, WithNothingToCompactItIsRefused) {  // FF-39
  replies = {{}};
  start();
  EXPECT_EQ(compact().error().message, "Nothing to compact (session too small)");
  prompt("one");
  agent().set_auto_compaction(false);
  replies = {{}, {.text = "s"}, {.text = "p"}};
  prompt("two");
  ASSERT_TRUE(compact());
  const std::size_t size = agent().session().index().size();
  EXPECT_EQ(compact().error().message, "Already compacted");
  EXPECT_EQ(agent().session().index().size(), size);
}

TEST_F(CompactionTest, AnAbortLeavesTheSessionAsItWas) {
  talk();
  const std::string before = json::to_text(state());
  replies = {{.until_abort = true}};
  boost::asio::post(io, [&] {
    boost::asio::post(io, [&] {
      EXPECT_TRUE(agent().compacting());
      agent().abort_compaction();
    });
  });
  const auto result = compact();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "Compaction cancelled");
  EXPECT_TRUE(compactions.back().aborted);
  EXPECT_FALSE(compactions.back().error_message);
  EXPECT_EQ(json::to_text(state()), before);
  EXPECT_EQ(stored_compactions(), 0);
}

TEST_F(CompactionTest, NoPromptIsTakenWhileAManualOneIsAtWork) {  // SES-128
  talk();
  replies = {{.until_abort = true}};
  bool refused = false;
  boost::asio::post(io, [&] {
    boost::asio::post(io, [&] {
      boost::asio::co_spawn(io, agent().prompt("now?"), [&](std::exception_ptr, const auto& sent) {
        refused = !sent;
        agent().abort_compaction();
      });
    });
  });
  EXPECT_FALSE(compact());
  EXPECT_TRUE(refused);
}

TEST_F(CompactionTest, TheThresholdIsPassedOnce) {  // SES-126, FF-36
  options.model.context_window = 1000;
  options.compaction.reserve_tokens = 200;
  replies = {{.text = "first"}, {.text = "second", .tokens = 801}, {.text = "s"}, {.text = "p"}, {}};
  start();
  prompt("one");
  EXPECT_EQ(compactions.size(), 0u);
  prompt("two");
  ASSERT_EQ(compactions.size(), 1u);
  ASSERT_TRUE(compactions[0].result);
  EXPECT_EQ(compactions[0].reason, CompactionReason::kThreshold);
  EXPECT_FALSE(agent().context_usage()->tokens);  // SES-112
  prompt("three");                                // the kept reply's old usage does not count
  EXPECT_EQ(compactions.size(), 1u);
  EXPECT_EQ(agent().context_usage()->tokens, 10);
}

TEST_F(CompactionTest, WithoutUsageTheEstimateDecides) {  // FF-37
  options.model.context_window = 1000;
  options.compaction.reserve_tokens = 200;
  replies = {{.text = std::string(2000, 'x'), .tokens = 0},
             {.text = std::string(2000, 'y'), .tokens = 0},
             {.text = "s"},
             {.text = "p"}};
  start();
  prompt("one");
  prompt("two");
  ASSERT_EQ(compactions.size(), 1u);
  EXPECT_TRUE(compactions[0].result);
}

TEST_F(CompactionTest, OneThatDoesNotHelpIsNotRepeated) {  // FF-35
  options.model.context_window = 8000;
  options.compaction = {true, 2000, 1};
  use_tool({}, std::string(40000, 'x'));
  replies = {{.text = "hello"},
             {.text = "", .calls = {"c1"}},
             {.text = "s"},
             {.text = "", .error = "prompt is too long"},
             {.text = "", .error = "prompt is too long"},
             {.text = "", .error = "prompt is too long"}};
  start();
  prompt("one");
  prompt("two");
  EXPECT_LE(stored_compactions(), 2);
  ASSERT_TRUE(compactions.back().error_message);
  EXPECT_NE(compactions.back().error_message->find("a result of t"), std::string::npos)
      << *compactions.back().error_message;
  EXPECT_FALSE(agent().running());
  EXPECT_LE(requests.size(), 6u);
}

TEST_F(CompactionTest, AFailedRecoveryKeepsTheReplyThatDidNotFit) {  // FF-38, FF-41
  replies = {{}, {.text = "", .error = "prompt is too long"}, {.error = "400 no"}};
  start();
  prompt("one");
  prompt("two");
  ASSERT_EQ(compactions.size(), 1u);
  EXPECT_TRUE(compactions[0].error_message->starts_with("Context overflow recovery failed: Summarization failed: "));
  EXPECT_EQ(json::to_text(state()), R"(["user","assistant/stop","user","assistant/error"])");
}

TEST_F(CompactionTest, ResultsStayWithTheirReply) {  // FF-42
  use_tool({}, std::string(400, 'x'));
  options.compaction = {true, 16384, 150};  // ends inside the second of three results
  replies = {
      {.text = "hi"}, {.text = "", .calls = {"c1", "c2", "c3"}, .tokens = 99000}, {.text = "s"}, {.text = "p"}, {}};
  start();
  prompt("one");
  prompt("two");
  ASSERT_GE(compactions.size(), 1u);
  ASSERT_TRUE(compactions[0].result);
  EXPECT_EQ(
      json::to_text(state()),
      R"(["compactionSummary","assistant/toolUse","toolResult/c1","toolResult/c2","toolResult/c3","assistant/stop"])");
}

TEST(FileTracker, AModifiedFileIsNotListedAsRead) {  // SES-140, SES-141
  FileTracker tracker;
  tracker.add_details({{"readFiles", {"b", "a"}}, {"modifiedFiles", {"c"}}});
  ai::AssistantMessage reply;
  const auto call = [&](const char* tool, const char* path) {
    reply.content.emplace_back(ai::ToolCall{"i", tool, json::object{{"path", path}}, {}, {}, {}, {}});
  };
  call("read", "c");
  call("read", "\U0001F600");
  call("read", "\uFFFD");
  call("edit", "a");
  call("write", "d");
  call("bash", "e");
  tracker.add_calls(reply);
  const FileLists lists = tracker.lists();
  EXPECT_EQ(lists.read, (std::vector<std::string>{"b", "\U0001F600", "\uFFFD"}));
  EXPECT_EQ(lists.modified, (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_TRUE(text_of(lists).ends_with("\n\n<modified-files>\na\nc\nd\n</modified-files>"));
}

// ---- branches ----------------------------------------------------------------------------------------------------

class NavigationTest : public CompactionTest {
 protected:
  std::string id_of(std::size_t number) const {
    return std::string(
        const_cast<NavigationTest*>(this)->agent().session().index().head(static_cast<EntryNumber>(number)).id);
  }
  std::expected<Navigation, Error> go(std::string target, NavigateOptions how = {}) {
    return test::run(io, agent().navigate_tree(std::move(target), std::move(how)));
  }
};

TEST_F(NavigationTest, AUserMessageGoesToTheEditor) {  // SES-162
  talk();
  const std::string second_question = id_of(4);
  const auto moved = go(second_question);
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->editor_text, "second question");
  EXPECT_EQ(json::to_text(state()), R"(["user","assistant/stop"])");
  EXPECT_EQ(agent().session().leaf(), id_of(3));
  EXPECT_EQ(go("nowhere").error().message, "Entry nowhere not found");
}

TEST_F(NavigationTest, TheBranchThatIsLeftIsSummarised) {  // SES-164, SES-165
  talk();
  replies = {{.text = "It went nowhere."}};
  const auto moved = go(id_of(3), {.summarize = true, .label = "dead end"});
  ASSERT_TRUE(moved) << moved.error().message;
  ASSERT_TRUE(moved->summary_id);
  EXPECT_EQ(json::to_text(state()), R"(["user","assistant/stop","branchSummary"])");
  EXPECT_NE(request_text(0).find("[Assistant]: second answer"), std::string::npos);
  EXPECT_EQ(request_text(0).find("first answer"), std::string::npos);
  EXPECT_EQ(request_options[0].max_tokens, 4096);
  EXPECT_EQ(agent().session().labels().by_target.at(*moved->summary_id).text, "dead end");
}

TEST_F(NavigationTest, AnAbortOrAFailureMovesNothing) {
  talk();
  const auto leaf = agent().session().leaf();
  const std::size_t size = agent().session().index().size();
  replies = {{.error = "400 no"}};
  EXPECT_FALSE(go(id_of(3), {.summarize = true}));
  replies = {{.until_abort = true}};
  boost::asio::post(io, [&] { boost::asio::post(io, [&] { agent().abort_branch_summary(); }); });
  const auto moved = go(id_of(3), {.summarize = true});
  ASSERT_TRUE(moved);
  EXPECT_TRUE(moved->cancelled);
  EXPECT_TRUE(moved->aborted);
  EXPECT_EQ(agent().session().leaf(), leaf);
  EXPECT_EQ(agent().session().index().size(), size);
}

TEST_F(NavigationTest, AForkAndASwitchWriteToTheirOwnFiles) {  // FF-31
  talk();
  const std::shared_ptr<Session> first = agent().shared_session();
  const std::string before = test::read_file(*first->file());
  const auto text = test::run(io, agent().fork(id_of(4)));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "second question");
  EXPECT_EQ(json::to_text(state()), R"(["user","assistant/stop"])");
  replies = {{.text = "in the fork"}};
  prompt("other");
  EXPECT_EQ(test::read_file(*first->file()), before);
  EXPECT_NE(agent().session().file(), first->file());
  test::run(io, agent().switch_session(first));
  agent().set_name("A");
  EXPECT_NE(test::read_file(*first->file()), before);
  EXPECT_EQ(agent().messages().size(), 4u);
}

TEST_F(NavigationTest, ACloneAndANewSession) {
  talk();
  const auto cloned = test::run(io, agent().clone());
  ASSERT_TRUE(cloned) << cloned.error().message;
  EXPECT_EQ(agent().messages().size(), 4u);
  test::run(io, agent().new_session());
  EXPECT_TRUE(agent().messages().empty());
  EXPECT_FALSE(test::run(io, agent().clone()));  // not saved yet
  replies = {{}};
  prompt("fresh");
  EXPECT_EQ(request_options.back().session_id, agent().session().id());
}

}  // namespace
}  // namespace tau::coding
