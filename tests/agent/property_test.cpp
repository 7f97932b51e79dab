// What holds in every run, tried on random ones (AG section 13.4 and 13.6): random replies, tools, delays, blocks,
// failures, steering, follow-ups and aborts; and an abort at every single event of two fixed runs.
//
// A failing seed is in the message; the same seed gives the same run but for aborts from another thread.
#include <algorithm>
#include <random>
#include <thread>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "agent/builders.h"
#include "agent/check_transcript.h"

#include "support/fixture.h"
#include "support/run.h"

namespace {

using namespace tau;
using namespace std::chrono_literals;
using namespace agent;
namespace asio = boost::asio;

asio::awaitable<void> hop(int times) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  for (int i = 0; i < times; ++i)
    co_await asio::post(executor, asio::use_awaitable);
}

/// Follows the events of an agent and complains about any that may not come where it comes (AG-28, AG-41, AG-58).
class Grammar {
 public:
  void take(const AgentEvent& event) {
    std::visit([this](const auto& e) { on(e); }, event);
  }
  void finished() const { EXPECT_FALSE(in_run_) << "the last event is agent_end"; }

  std::vector<AgentMessage> messages;  // by message_end
  int turns_begun = 0;

 private:
  void on(const AgentStart&) {
    EXPECT_FALSE(in_run_);
    in_run_ = true;
    run_begin_ = messages.size();
  }
  void on(const AgentEnd& e) {
    EXPECT_TRUE(in_run_ && !in_turn_ && !open_role_);
    EXPECT_EQ(e.messages, std::vector<AgentMessage>(messages.begin() + run_begin_, messages.end()));
    in_run_ = false;
  }
  void on(const TurnStart&) {
    EXPECT_TRUE(in_run_ && !in_turn_);
    in_turn_ = true;
    ++turns_begun;
    reply_.reset();
    started_.clear();
    running_.clear();
    results_.clear();
  }
  void on(const TurnEnd& e) {
    EXPECT_TRUE(in_turn_ && reply_ && !open_role_);
    EXPECT_TRUE(running_.empty()) << "a tool call without its end";
    EXPECT_EQ(e.message, *reply_);
    EXPECT_EQ(e.tool_results, results_);
    std::vector<std::string> called;
    const ai::AssistantMessage& reply = *reply_->assistant();
    if (reply.stop_reason != ai::StopReason::kError && reply.stop_reason != ai::StopReason::kAborted) {
      for (const ai::ToolCall* call : ai::tool_calls_of(reply))
        called.push_back(call->id);
    }
    std::vector<std::string> answered;
    for (const AgentMessage& result : results_)
      answered.push_back(result.tool_result()->tool_call_id);
    EXPECT_EQ(answered, called) << "every call has one result, in the order of the calls";
    EXPECT_EQ(started_, called) << "every call was announced";
    in_turn_ = false;
  }
  void on(const MessageStart& e) {
    EXPECT_TRUE(in_turn_ && !open_role_);
    open_role_ = std::string(e.message.role());
  }
  void on(const MessageUpdate&) { EXPECT_EQ(open_role_, "assistant"); }
  void on(const MessageEnd& e) {
    EXPECT_EQ(open_role_, e.message.role());
    open_role_.reset();
    messages.push_back(e.message);
    if (const ai::AssistantMessage* reply = e.message.assistant()) {
      EXPECT_NE(reply->stop_reason, ai::StopReason::kPending);
      EXPECT_FALSE(reply_) << "one model call a turn";
      reply_ = e.message;
    } else if (e.message.tool_result() != nullptr) {
      results_.push_back(e.message);
    } else {
      EXPECT_FALSE(reply_) << "messages for the model come before its reply";
    }
  }
  void on(const ToolExecutionStart& e) {
    EXPECT_TRUE(in_turn_ && reply_ && !open_role_);
    started_.push_back(e.tool_call_id);
    running_.push_back(e.tool_call_id);
  }
  void on(const ToolExecutionUpdate& e) {
    EXPECT_NE(std::find(running_.begin(), running_.end(), e.tool_call_id), running_.end());
  }
  void on(const ToolExecutionEnd& e) {
    const auto it = std::find(running_.begin(), running_.end(), e.tool_call_id);
    ASSERT_NE(it, running_.end());
    running_.erase(it);
  }

  bool in_run_ = false;
  bool in_turn_ = false;
  std::ptrdiff_t run_begin_ = 0;
  std::optional<std::string> open_role_;
  std::optional<AgentMessage> reply_;
  std::vector<std::string> started_;
  std::vector<std::string> running_;
  std::vector<AgentMessage> results_;
};

class RandomRun {
 public:
  explicit RandomRun(unsigned seed) : random_(seed) {}

  void play() {
    AgentOptions options = test::faux_options(provider_, tools());
    options.initial_state.messages.push_back(AgentMessage(UnknownMessage{{{"role", "poll"}}}));
    options.loop.stream = [this, faux = provider_.stream()](ai::Model model, ai::Context context, ai::StreamOptions o,
                                                            ai::EventSink sink, std::stop_token stop) {
      return stream(this, faux, std::move(model), std::move(context), std::move(o), std::move(sink), std::move(stop));
    };
    if (chance(30)) options.loop.tool_execution = ToolExecutionMode::kSequential;
    if (chance(50)) options.steering_mode = QueueMode::kAll;
    if (chance(50)) options.follow_up_mode = QueueMode::kAll;
    if (chance(60)) {
      options.loop.before_tool_call = [this](ToolCallInfo, std::stop_token) {
        return before(this, chance(10), chance(10), below(3));
      };
    }
    if (chance(60)) {
      options.loop.after_tool_call = [this](ToolCallInfo, const ToolResult&, bool, std::stop_token) {
        return after(chance(10), chance(20), below(4));
      };
    }
    if (chance(50)) {
      options.loop.convert_to_llm = [this](std::vector<AgentMessage> messages) {
        return convert(std::move(messages), below(2));
      };
    }
    if (chance(30)) {
      options.loop.should_stop_after_turn = [this](TurnInfo, std::stop_token) { return yes_or_no(chance(20)); };
    }
    Agent agent(io_.get_executor(), std::move(options));
    agent_ = &agent;
    agent.subscribe([this](const AgentEvent& event, const std::stop_token& stop) { return listen(event, stop); });
    agent.subscribe([this](const AgentEvent&, const std::stop_token&) -> Completion {
      if (!chance(10)) return std::nullopt;
      return hop(below(3) + 1);
    });

    const int prompts = below(2) + 1;
    for (int i = 0; i < prompts; ++i) {
      for (int replies = below(6); replies >= 0; --replies)
        provider_.replies.push_back(reply());
      std::jthread other;
      aborted_from_outside_ = chance(10);
      if (aborted_from_outside_) {
        other = std::jthread([&agent, time = std::chrono::microseconds(below(300))] {
          std::this_thread::sleep_for(time);
          agent.abort();
        });
      }
      test::run(io_, agent.prompt("go"));
      check();
    }
    // What is still queued is delivered in the end: nothing is lost.
    quiet_ = true;
    aborted_from_outside_ = false;
    provider_.replies.clear();
    for (int i = 0; agent.has_queued_messages(); ++i) {
      ASSERT_LT(i, 100);
      provider_.replies.push_back(test::text_reply("rest"));
      test::run(io_, agent.prompt(std::vector<AgentMessage>{}));
      check();
    }
    int delivered = 0;
    for (const AgentMessage& message : agent.state().messages) {
      if (message.user() != nullptr && ai::text_of(message.user()->content).starts_with("queued")) ++delivered;
    }
    EXPECT_EQ(delivered, queued_);
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(int percent) { return below(100) < percent; }

  test::FauxReply reply() {
    if (chance(5)) return {{"throw", "the provider is down"}};
    json::array content;
    if (chance(30)) content.push_back(json::object{{"type", "thinking"}, {"thinking", "hm"}});
    if (chance(60)) content.push_back(json::object{{"type", "text"}, {"text", std::string(below(60), 'x')}});
    if (chance(60)) {
      constexpr const char* kTools[] = {"quick", "hops",   "tells", "throws", "patient",
                                        "alone", "strict", "nope",  "last"};
      for (int calls = below(4); calls >= 0; --calls) {
        const char* tool = chance(3) ? "deaf" : kTools[below(std::size(kTools))];
        content.push_back(json::object{{"type", "toolCall"},
                                       {"id", "c" + std::to_string(++calls_)},
                                       {"name", tool},
                                       {"arguments", json::object{}}});
      }
    }
    test::FauxReply reply{{"content", std::move(content)}};
    constexpr const char* kReasons[] = {"length", "error", "aborted", "stop", "deferred", "pending"};
    if (chance(20)) reply["stopReason"] = kReasons[below(std::size(kReasons))];
    return reply;
  }

  std::vector<AgentTool> tools() {
    std::vector<AgentTool> out;
    const auto add = [&](const char* name, test::ToolBody body) {
      out.push_back(test::make_tool(name, std::move(body)));
    };
    add("quick", test::instant);
    add("hops",
        [this](std::string id, std::stop_token, ToolUpdate) { return hops(this, std::move(id), below(8), {}); });
    add("tells", [this](std::string id, std::stop_token, ToolUpdate update) {
      return hops(this, std::move(id), below(4), std::move(update));
    });
    add("throws", [](std::string, std::stop_token, ToolUpdate) -> asio::awaitable<ToolResult> {
      co_await hop(1);
      throw ToolFailure("no such file");
    });
    add("patient", [this](std::string id, std::stop_token stop, ToolUpdate) {
      return patient(this, std::move(id), std::move(stop), below(40));
    });
    add("alone", test::instant);
    out.back().execution_mode = ToolExecutionMode::kSequential;
    add("strict", test::instant);
    out.back().declaration.parameters = json::object{{"type", "object"}, {"required", json::array{"path"}}};
    add("last", [](std::string id, std::stop_token, ToolUpdate) -> asio::awaitable<ToolResult> {
      ToolResult result = text_result(id);
      result.terminate = true;
      co_return result;
    });
    add("deaf", [](std::string id, std::stop_token, ToolUpdate) -> asio::awaitable<ToolResult> {
      const asio::any_io_executor executor = co_await asio::this_coro::executor;
      asio::steady_timer timer(executor, 15ms);
      co_await timer.async_wait(asio::use_awaitable);
      co_return text_result(id);
    });
    out.back().stop_grace = 2ms;
    return out;
  }

  static asio::awaitable<ToolResult> hops(RandomRun* self, std::string id, int times, ToolUpdate update) {
    ++self->running_;
    for (int i = 0; i < times; ++i) {
      if (update) update(text_result(std::to_string(i)));
      co_await hop(1);
    }
    --self->running_;
    co_return text_result(id);
  }

  static asio::awaitable<ToolResult> patient(RandomRun* self, std::string id, std::stop_token stop, int times) {
    ++self->running_;
    for (int i = 0; i < times && !stop.stop_requested(); ++i)
      co_await hop(1);
    --self->running_;
    if (stop.stop_requested()) throw ToolFailure("stopped");
    co_return text_result(id);
  }

  static asio::awaitable<ai::AssistantMessage> stream(RandomRun* self, ai::StreamFunction faux, ai::Model model,
                                                      ai::Context context, ai::StreamOptions options,
                                                      ai::EventSink sink, std::stop_token stop) {
    // No call after an abort, but for the first of a run (FF-17).
    if (self->calls_in_run_++ > 0 && !self->aborted_from_outside_) {
      EXPECT_FALSE(stop.stop_requested());
    }
    EXPECT_TRUE(check_conversion(self->agent_->state().messages, context.messages).empty());  // IV-4
    co_await hop(self->below(3));
    ai::AssistantMessage reply =
        co_await faux(std::move(model), std::move(context), std::move(options), std::move(sink), std::move(stop));
    co_return reply;
  }

  static asio::awaitable<BeforeToolCall> before(RandomRun* self, bool blocks, bool throws, int times) {
    co_await hop(times);
    if (throws) throw std::runtime_error("guard failed");
    BeforeToolCall answer;
    answer.block = blocks;
    if (blocks) answer.terminate = self->chance(30);
    co_return answer;
  }

  static asio::awaitable<AfterToolCall> after(bool throws, bool changes, int times) {
    co_await hop(times);
    if (throws) throw std::runtime_error("audit failed");
    AfterToolCall change;
    if (changes) change.is_error = true;
    co_return change;
  }

  static asio::awaitable<std::vector<ai::MessageRef>> convert(std::vector<AgentMessage> messages, int times) {
    co_await hop(times);
    co_return standard_messages(messages);
  }

  static asio::awaitable<bool> yes_or_no(bool answer) {
    co_await hop(1);
    co_return answer;
  }

  Completion listen(const AgentEvent& event, const std::stop_token& stop) {
    if (std::holds_alternative<AgentStart>(event)) calls_in_run_ = 0;
    if (std::holds_alternative<TurnStart>(event) && stop.stop_requested()) {
      EXPECT_LE(++turns_after_abort_, 1) << "the run goes on after the abort";
    }
    if (std::holds_alternative<AgentEnd>(event)) turns_after_abort_ = 0;
    grammar_.take(event);
    if (quiet_) return std::nullopt;
    if (chance(2)) agent_->abort();
    if (chance(4)) agent_->steer(test::user_message("queued " + std::to_string(queued_++)));
    if (chance(2)) agent_->follow_up(test::user_message("queued " + std::to_string(queued_++)));
    return std::nullopt;
  }

  void check() {
    grammar_.finished();
    const AgentState& state = agent_->state();
    EXPECT_FALSE(state.is_streaming);
    EXPECT_FALSE(state.streaming_role);
    EXPECT_EQ(state.streaming, nullptr);
    EXPECT_TRUE(state.pending_tool_calls.empty());
    EXPECT_EQ(running_, 0) << "a tool runs on";
    for (const Violation& violation : check_transcript(state.messages))
      ADD_FAILURE() << violation.position << ' ' << violation.rule << ": " << violation.what;
    EXPECT_EQ(std::vector<AgentMessage>(state.messages.begin() + 1, state.messages.end()), grammar_.messages);
  }

  asio::io_context io_;
  std::mt19937 random_;
  test::FauxProvider provider_;
  Agent* agent_ = nullptr;
  Grammar grammar_;
  bool quiet_ = false;
  bool aborted_from_outside_ = false;  // at any time, also between two lines of the loop
  int queued_ = 0;
  int calls_ = 0;
  int calls_in_run_ = 0;
  int turns_after_abort_ = 0;
  int running_ = 0;
};

// The address sanitizer makes a run ten times as slow.
constexpr unsigned kRuns = test::kAddressSanitizer ? 1'500 : 10'000;

TEST(Property, RandomRunsKeepTheInvariants) {
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun(seed).play();
    if (testing::Test::HasFailure()) return;
  }
}

/// Tools that finish in the order c3, c2, c1. Returns the number of events.
int abort_at(int index, ToolExecutionMode mode) {
  asio::io_context io;
  test::FauxProvider provider;
  provider.replies = {test::call_reply({{"c1", "work"}, {"c2", "work"}, {"c3", "work"}}), test::text_reply("done")};
  int running = 0;
  const auto work = [&running](std::string id, std::stop_token stop, ToolUpdate update) {
    return [](int* count, std::string name, std::stop_token s, ToolUpdate tell) -> asio::awaitable<ToolResult> {
      ++*count;
      const int times = name == "c1" ? 30 : name == "c2" ? 20 : 10;
      for (int i = 0; i < times && !s.stop_requested(); ++i) {
        if (i == 5) tell(text_result("half"));
        co_await hop(1);
      }
      --*count;
      co_return text_result(name);
    }(&running, std::move(id), std::move(stop), std::move(update));
  };
  AgentOptions options = test::faux_options(provider, {test::make_tool("work", work)});
  options.loop.tool_execution = mode;
  Agent agent(io.get_executor(), std::move(options));
  Grammar grammar;
  int events = 0;
  agent.subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
    grammar.take(event);
    if (events++ == index) agent.abort();
    return std::nullopt;
  });
  test::run(io, agent.prompt("go"));
  grammar.finished();
  EXPECT_FALSE(agent.state().is_streaming);
  EXPECT_TRUE(agent.state().pending_tool_calls.empty());
  EXPECT_EQ(running, 0);
  EXPECT_TRUE(check_transcript(agent.state().messages).empty());
  index = -1;
  const int events_of_run = events;
  provider.replies = {test::text_reply("next")};
  test::run(io, agent.prompt("again"));
  EXPECT_EQ(test::text_at(agent, agent.state().messages.size() - 1), "next");
  return events_of_run;
}

TEST(Property, AnAbortAtAnyEventEndsTheRunProperly) {
  for (const ToolExecutionMode mode : {ToolExecutionMode::kParallel, ToolExecutionMode::kSequential}) {
    const int events = abort_at(-1, mode);
    EXPECT_GT(events, 30);
    for (int index = 0; index < events; ++index) {
      SCOPED_TRACE("abort at event " + std::to_string(index));
      abort_at(index, mode);
    }
  }
}

}  // namespace
