// The loop beyond the golden cases: aborts, tools that do not obey, broken arguments, failing hooks (FF-16 to FF-20).
#include "agent/loop.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "agent/builders.h"
#include "agent/check_transcript.h"
#include "agent/default_stream.h"

#include "support/run.h"

namespace {

using namespace tau;
using namespace std::chrono_literals;
using agent::Agent;
using agent::AgentEvent;
using agent::AgentMessage;
using agent::AgentTool;
using agent::Completion;
using agent::ToolResult;
using agent::ToolUpdate;
using test::Call;
namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

/// Something that a coroutine waits for and a test opens.
class Gate {
 public:
  explicit Gate(asio::io_context& io) : timer_(io, Clock::time_point::max()) {}
  void open() {
    open_ = true;
    timer_.cancel();
  }
  asio::awaitable<void> wait() {
    while (!open_) {
      boost::system::error_code ignored;
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

 private:
  asio::steady_timer timer_;
  bool open_ = false;
};

asio::awaitable<void> sleep_for(Clock::duration time) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

class LoopTest : public testing::Test {
 protected:
  Agent& make_agent(std::vector<AgentTool> tools) { return make_agent(test::faux_options(provider, std::move(tools))); }
  Agent& make_agent(agent::AgentOptions options) {
    agent.emplace(io.get_executor(), std::move(options));
    return *agent;
  }
  void prompt(std::string text = "go") { test::run(io, agent->prompt(std::move(text))); }
  void on(std::string type, std::function<void()> action) {
    agent->subscribe([type = std::move(type), action = std::move(action)](const AgentEvent& event,
                                                                          const std::stop_token&) -> Completion {
      if (agent::type_of(event) == type) action();
      return std::nullopt;
    });
  }
  const ai::ToolResultMessage& result_at(std::size_t i) const { return *agent->state().messages.at(i).tool_result(); }

  asio::io_context io;
  test::FauxProvider provider;
  std::optional<Agent> agent;
};

// ---- FF-17: aborts -----------------------------------------------------------------------------------------------

TEST_F(LoopTest, AbortGivesEveryCallOfABatchAResult) {
  provider.replies = {test::call_reply({{"c1", "sleep"}, {"c2", "sleep"}, {"c3", "sleep"}}), test::text_reply("next")};
  auto options = test::faux_options(provider, {test::make_tool("sleep", test::until_abort)});
  options.loop.tool_execution = agent::ToolExecutionMode::kSequential;
  make_agent(std::move(options));
  on("tool_execution_start", [this] { asio::post(io, [this] { agent->abort(); }); });

  const auto start = Clock::now();
  prompt();
  EXPECT_LT(Clock::now() - start, 2s);
  EXPECT_EQ(test::roles(agent->state().messages), "user assistant toolResult toolResult toolResult assistant");
  for (std::size_t i = 2; i <= 4; ++i) {
    EXPECT_EQ(result_at(i).tool_call_id, "c" + std::to_string(i - 1));
    EXPECT_TRUE(result_at(i).is_error);
  }
  EXPECT_EQ(test::text_at(*agent, 2), "stopped");
  EXPECT_EQ(test::text_at(*agent, 4), "Operation aborted");
  EXPECT_EQ(agent->state().messages.back().assistant()->stop_reason, ai::StopReason::kAborted);
  EXPECT_EQ(provider.calls, 1);
  EXPECT_TRUE(agent::check_transcript(agent->state().messages).empty());

  prompt("again");
  EXPECT_EQ(test::text_at(*agent, agent->state().messages.size() - 1), "next");
}

TEST_F(LoopTest, AToolThatIgnoresTheAbortIsGivenUp) {
  Gate gate(io);
  bool ended = false;
  bool entered = false;
  const auto deaf = [&](std::string, std::stop_token, ToolUpdate update) {
    return [](Gate* g, bool* done, bool* in, ToolUpdate tell) -> asio::awaitable<ToolResult> {
      *in = true;
      co_await g->wait();
      tell(agent::text_result("late update"));
      *done = true;
      co_return agent::text_result("late result");
    }(&gate, &ended, &entered, std::move(update));
  };
  provider.replies = {test::call_reply({{"c1", "deaf"}, {"c2", "quick"}}), test::text_reply("next")};
  make_agent({test::make_tool("deaf", deaf), test::make_tool("quick", test::instant)});
  int updates = 0;
  on("tool_execution_update", [&] { ++updates; });
  Clock::time_point aborted;
  on("tool_execution_end", [&] {  // of the quick one
    if (agent->state().pending_tool_calls.size() != 1 || aborted != Clock::time_point{}) return;
    aborted = Clock::now();
    agent->abort();
  });
  prompt();
  const auto took = Clock::now() - aborted;
  EXPECT_GE(took, 100ms);
  EXPECT_LT(took, 1s);  // a loaded machine is slow; without the grace it would never end
  ASSERT_EQ(test::roles(agent->state().messages), "user assistant toolResult toolResult assistant");
  EXPECT_TRUE(result_at(2).is_error);
  EXPECT_NE(test::text_at(*agent, 2).find("did not stop"), std::string::npos);
  EXPECT_NE(test::text_at(*agent, 2).find("deaf"), std::string::npos);
  EXPECT_EQ(test::text_at(*agent, 3), "c2");
  EXPECT_TRUE(entered);
  EXPECT_FALSE(ended);
  EXPECT_FALSE(agent->state().is_streaming);
  EXPECT_TRUE(agent->state().pending_tool_calls.empty());

  // What it does later reaches nobody, not even during another run.
  const std::size_t settled = agent->state().messages.size();
  on("turn_start", [&] { gate.open(); });
  prompt("again");
  EXPECT_TRUE(ended);
  EXPECT_EQ(updates, 0);
  EXPECT_EQ(agent->state().messages.size(), settled + 2);
}

TEST(Loop, AToolThatWasGivenUpMayOutliveTheAgent) {
  asio::io_context io;
  Gate gate(io);
  bool ended = false;
  bool hook_called = false;
  {
    test::FauxProvider provider;
    provider.replies = {test::call_reply({{"c1", "deaf"}})};
    const auto deaf = [&](std::string, std::stop_token, ToolUpdate update) {
      return [](Gate* g, bool* done, ToolUpdate tell) -> asio::awaitable<ToolResult> {
        co_await g->wait();
        tell(agent::text_result("late"));
        *done = true;
        co_return agent::text_result("late");
      }(&gate, &ended, std::move(update));
    };
    AgentTool tool = test::make_tool("deaf", deaf);
    tool.stop_grace = 5ms;
    agent::AgentOptions options = test::faux_options(provider, {tool});
    options.loop.after_tool_call = [&](agent::ToolCallInfo, const ToolResult&, bool, std::stop_token) {
      hook_called = true;
      return []() -> asio::awaitable<agent::AfterToolCall> { co_return agent::AfterToolCall{}; }();
    };
    Agent agent(io.get_executor(), std::move(options));
    agent.subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
      if (std::holds_alternative<agent::ToolExecutionStart>(event)) asio::post(io, [&] { agent.abort(); });
      return std::nullopt;
    });
    test::run(io, agent.prompt("go"));
    EXPECT_EQ(agent.state().messages.size(), 4U);
  }
  gate.open();
  io.restart();
  io.run();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(hook_called);
}

TEST_F(LoopTest, EachToolHasItsOwnGrace) {
  const auto slow_to_stop = [](std::string id, std::stop_token stop, ToolUpdate) -> asio::awaitable<ToolResult> {
    while (!stop.stop_requested())
      co_await sleep_for(1ms);
    co_await sleep_for(30ms);
    co_return agent::text_result("cleaned up " + id);
  };
  std::vector<AgentTool> tools{test::make_tool("hasty", slow_to_stop), test::make_tool("patient", slow_to_stop)};
  tools[0].stop_grace = 5ms;
  tools[1].stop_grace = 10s;
  provider.replies = {test::call_reply({{"c1", "hasty"}, {"c2", "patient"}})};
  make_agent(std::move(tools));
  on("tool_execution_start", [this] { asio::post(io, [this] { agent->abort(); }); });
  prompt();
  ASSERT_EQ(test::roles(agent->state().messages), "user assistant toolResult toolResult assistant");
  EXPECT_NE(test::text_at(*agent, 2).find("did not stop within 5 ms"), std::string::npos) << test::text_at(*agent, 2);
  EXPECT_EQ(test::text_at(*agent, 3), "cleaned up c2");
  EXPECT_FALSE(result_at(3).is_error);
}

TEST_F(LoopTest, AnAbortInsideTheHookBeforeACallComesBeforeItsBlock) {  // AG-37
  provider.replies = {test::call_reply({{"c1", "quick"}})};
  auto options = test::faux_options(provider, {test::make_tool("quick", test::instant)});
  options.loop.before_tool_call = [this](agent::ToolCallInfo, std::stop_token) {
    agent->abort();
    return []() -> asio::awaitable<agent::BeforeToolCall> {
      agent::BeforeToolCall answer;
      answer.block = true;
      answer.reason = "not allowed";
      co_return answer;
    }();
  };
  make_agent(std::move(options));
  prompt();
  EXPECT_EQ(test::text_at(*agent, 2), "Operation aborted");
}

TEST_F(LoopTest, AnAbortKeepsTheQueues) {
  provider.replies = {test::call_reply({{"c1", "sleep"}}), test::text_reply("steered"), test::text_reply("followed")};
  make_agent({test::make_tool("sleep", test::until_abort)});
  on("tool_execution_start", [this] {
    agent->steer(test::user_message("S"));
    agent->follow_up(test::user_message("F"));
    agent->abort();
  });
  prompt();
  EXPECT_TRUE(agent->has_queued_messages());
  EXPECT_EQ(provider.calls, 1);
  test::run(io, agent->continue_run());
  EXPECT_EQ(test::roles(agent->state().messages), "user assistant toolResult assistant user assistant user assistant");
  EXPECT_FALSE(agent->has_queued_messages());
}

TEST_F(LoopTest, AnAbortWhileTheLastHookRunsMakesNoFurtherCall) {
  provider.replies = {test::call_reply({{"c1", "quick"}}), test::text_reply("never")};
  auto options = test::faux_options(provider, {test::make_tool("quick", test::instant)});
  options.loop.prepare_next_turn = [this](agent::TurnInfo, std::stop_token) {
    agent->abort();
    return []() -> asio::awaitable<agent::NextTurn> { co_return agent::NextTurn{}; }();
  };
  make_agent(std::move(options));
  prompt();
  EXPECT_EQ(provider.calls, 1);
  EXPECT_EQ(agent->state().messages.back().assistant()->stop_reason, ai::StopReason::kAborted);
}

/// An abort may come while a hook runs, after the turn has been found in order.
TEST_F(LoopTest, AnAbortInsideAHookBetweenTurnsKeepsTheQueues) {
  for (const bool in_should_stop : {true, false}) {
    provider = {};
    provider.replies = {test::call_reply({{"c1", "quick"}}), test::text_reply("never")};
    auto options = test::faux_options(provider, {test::make_tool("quick", test::instant)});
    const auto queue_and_abort = [this] {
      agent->steer(test::user_message("S"));
      agent->follow_up(test::user_message("F"));
      agent->abort();
    };
    if (in_should_stop) {
      options.loop.should_stop_after_turn = [=](agent::TurnInfo, std::stop_token) {
        queue_and_abort();
        return []() -> asio::awaitable<bool> { co_return false; }();
      };
    } else {
      options.loop.prepare_next_turn = [=](agent::TurnInfo, std::stop_token) {
        queue_and_abort();
        return []() -> asio::awaitable<agent::NextTurn> { co_return agent::NextTurn{}; }();
      };
    }
    make_agent(std::move(options));
    prompt();
    EXPECT_EQ(test::roles(agent->state().messages), "user assistant toolResult assistant");
    EXPECT_EQ(agent->state().messages.back().assistant()->stop_reason, ai::StopReason::kAborted);
    EXPECT_EQ(provider.calls, 1);
    agent->clear_steering_queue();
    EXPECT_TRUE(agent->has_queued_messages()) << "the follow-up is still there";
  }
}

/// The same without tools: the run just ends.
TEST_F(LoopTest, AnAbortInsideAHookAfterAnAnswerEndsTheRun) {
  provider.replies = {test::text_reply("answer"), test::text_reply("never")};
  auto options = test::faux_options(provider);
  options.loop.should_stop_after_turn = [this](agent::TurnInfo, std::stop_token) {
    agent->follow_up(test::user_message("F"));
    agent->abort();
    return []() -> asio::awaitable<bool> { co_return false; }();
  };
  make_agent(std::move(options));
  prompt();
  EXPECT_EQ(test::roles(agent->state().messages), "user assistant");
  EXPECT_EQ(provider.calls, 1);
  EXPECT_TRUE(agent->has_queued_messages());
}

// ---- FF-16: order ------------------------------------------------------------------------------------------------

TEST_F(LoopTest, EndsComeAsToolsFinishAndResultsInTheOrderOfTheCalls) {
  const auto slow = [](std::string id, std::stop_token, ToolUpdate) -> asio::awaitable<ToolResult> {
    co_await sleep_for(20ms);
    co_return agent::text_result(id);
  };
  provider.replies = {test::call_reply({{"c1", "slow"}, {"c2", "quick"}, {"c3", "quick"}}), test::text_reply("ok")};
  std::string in_request;
  provider.on_call = [&](int call, const ai::Model&, const ai::Context& context, const ai::StreamOptions&,
                         const std::stop_token&) {
    if (call != 2) return;
    for (const ai::MessageRef& message : context.messages) {
      if (const auto* result = std::get_if<ai::ToolResultMessage>(message.get())) in_request += result->tool_call_id;
    }
  };
  make_agent({test::make_tool("slow", slow), test::make_tool("quick", test::instant)});
  std::string ends;
  agent->subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
    if (const auto* end = std::get_if<agent::ToolExecutionEnd>(&event)) ends += end->tool_call_id;
    return std::nullopt;
  });
  prompt();
  EXPECT_EQ(ends, "c2c3c1");
  EXPECT_EQ(in_request, "c1c2c3");
  EXPECT_EQ(test::text_at(*agent, 2) + test::text_at(*agent, 3) + test::text_at(*agent, 4), "c1c2c3");
}

TEST_F(LoopTest, ASlowHookAfterOneToolDoesNotHoldTheOthers) {
  Gate gate(io);
  provider.replies = {test::call_reply({{"c1", "quick"}, {"c2", "quick"}}), test::text_reply("ok")};
  auto options = test::faux_options(provider, {test::make_tool("quick", test::instant)});
  options.loop.after_tool_call = [&](agent::ToolCallInfo info, const ToolResult&, bool, std::stop_token) {
    return [](Gate* g, bool waits) -> asio::awaitable<agent::AfterToolCall> {
      if (waits) co_await g->wait();
      co_return agent::AfterToolCall{};
    }(&gate, info.call.id == "c1");
  };
  make_agent(std::move(options));
  std::string ends;
  agent->subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
    if (const auto* end = std::get_if<agent::ToolExecutionEnd>(&event)) {
      ends += end->tool_call_id;
      gate.open();
    }
    return std::nullopt;
  });
  prompt();
  EXPECT_EQ(ends, "c2c1");
}

TEST_F(LoopTest, AnUpdateAfterItsToolHasSettledIsIgnored) {  // AG-43
  ToolUpdate of_first;
  const auto leaves = [&](std::string id, std::stop_token stop, ToolUpdate update) {
    of_first = update;
    return test::instant(std::move(id), std::move(stop), std::move(update));
  };
  const auto tells_for_it = [&](std::string id, std::stop_token, ToolUpdate) {
    return [](ToolUpdate* tell, std::string name) -> asio::awaitable<ToolResult> {
      co_await sleep_for(5ms);
      (*tell)(agent::text_result("late"));
      co_await sleep_for(5ms);
      co_return agent::text_result(name);
    }(&of_first, std::move(id));
  };
  provider.replies = {test::call_reply({{"c1", "leaves"}, {"c2", "tells"}}), test::text_reply("ok")};
  make_agent({test::make_tool("leaves", leaves), test::make_tool("tells", tells_for_it)});
  int updates = 0;
  on("tool_execution_update", [&] { ++updates; });
  prompt();
  EXPECT_EQ(updates, 0);
  EXPECT_EQ(test::text_at(*agent, 2), "c1");
}

TEST_F(LoopTest, AnUpdateWhileTheHookLooksAtTheResultIsIgnored) {  // AG-43
  ToolUpdate tell;
  const auto leaves = [&](std::string id, std::stop_token stop, ToolUpdate update) {
    tell = update;
    return test::instant(std::move(id), std::move(stop), std::move(update));
  };
  provider.replies = {test::call_reply({{"c1", "leaves"}}), test::text_reply("ok")};
  auto options = test::faux_options(provider, {test::make_tool("leaves", leaves)});
  options.loop.after_tool_call = [&](agent::ToolCallInfo, const ToolResult&, bool, std::stop_token) {
    tell(agent::text_result("late"));
    return []() -> asio::awaitable<agent::AfterToolCall> { co_return agent::AfterToolCall{}; }();
  };
  make_agent(std::move(options));
  int updates = 0;
  on("tool_execution_update", [&] { ++updates; });
  prompt();
  EXPECT_EQ(updates, 0);
}

/// AG 13.5: real threads, random delays.
TEST_F(LoopTest, EightParallelToolsOnThreadsKeepTheirOrder) {
  asio::thread_pool pool(4);
  std::atomic<int> running = 0;
  const auto work = [&](std::string id, std::stop_token, ToolUpdate update) {
    return [](std::string name, ToolUpdate tell, std::atomic<int>* count,
              asio::any_io_executor threads) -> asio::awaitable<ToolResult> {
      ++*count;
      auto job = [name, tell]() -> asio::awaitable<void> {
        const auto spin = std::hash<std::string>()(name) % 50;
        std::this_thread::sleep_for(std::chrono::microseconds(spin));
        tell(agent::text_result("from a thread"));
        co_return;
      };
      co_await asio::co_spawn(threads, job, asio::use_awaitable);
      --*count;
      co_return agent::text_result(name);
    }(std::move(id), std::move(update), &running, pool.get_executor());
  };
  make_agent({test::make_tool("work", work)});
  int updates = 0;
  int starts = 0;
  on("tool_execution_update", [&] { ++updates; });
  on("tool_execution_start", [&] { ++starts; });
  for (int round = 0; round < 200; ++round) {
    std::vector<Call> calls;
    for (int i = 0; i < 8; ++i)
      calls.push_back({std::to_string(round * 8 + i), "work"});
    provider.replies = {test::call_reply(calls), test::text_reply("ok")};
    const std::size_t before = agent->state().messages.size();
    prompt();
    ASSERT_EQ(agent->state().messages.size(), before + 11);
    for (std::size_t i = 0; i < 8; ++i)
      ASSERT_EQ(result_at(before + 2 + i).tool_call_id, calls[i].id);
    ASSERT_EQ(running, 0);
  }
  EXPECT_EQ(starts, 1600);
  EXPECT_EQ(updates, 1600);
  EXPECT_TRUE(agent::check_transcript(agent->state().messages).empty());
}

// ---- FF-18, FF-19: what must not run -----------------------------------------------------------------------------

TEST_F(LoopTest, MalformedArgumentsAreNotRunAndGoBackAsTheyCame) {
  bool ran = false;
  const auto write = [&](std::string, std::stop_token, ToolUpdate) {
    ran = true;
    return test::instant({}, {}, {});
  };
  const std::string raw = R"({"path":"a.txt","content":"x" "mode":1})";
  auto options = test::faux_options(provider, {test::make_tool("write", write)});
  ai::StreamFunction faux = provider.stream();
  provider.replies = {test::text_reply("sorry")};
  bool first = true;
  options.loop.stream = [&](ai::Model model, ai::Context context, ai::StreamOptions o, ai::EventSink sink,
                            std::stop_token stop) {
    if (!std::exchange(first, false)) return faux(model, std::move(context), std::move(o), std::move(sink), stop);
    return [](std::string text) -> asio::awaitable<ai::AssistantMessage> {
      ai::ToolCall call;
      call.id = "c1";
      call.name = "write";
      call.arguments = json::object{{"path", "a.txt"}, {"content", "x"}};
      call.malformed_arguments = text;
      ai::AssistantMessage reply;
      reply.content.emplace_back(std::move(call));
      reply.stop_reason = ai::StopReason::kToolUse;
      co_return reply;
    }(raw);
  };
  std::string sent_back;
  provider.on_call = [&](int, const ai::Model&, const ai::Context& context, const ai::StreamOptions&,
                         const std::stop_token&) {
    sent_back = ai::text_of(std::get<ai::ToolResultMessage>(*context.messages.back()).content);
  };
  make_agent(std::move(options));
  prompt();
  EXPECT_FALSE(ran);
  EXPECT_TRUE(result_at(2).is_error);
  EXPECT_NE(sent_back.find(raw), std::string::npos) << sent_back;
  EXPECT_EQ(test::text_at(*agent, 3), "sorry");
}

TEST_F(LoopTest, CallsOfACutReplyAreNotRunAndTheLoopGoesOn) {
  bool ran = false;
  const auto write = [&](std::string, std::stop_token, ToolUpdate) {
    ran = true;
    return test::instant({}, {}, {});
  };
  auto cut = test::call_reply({{"c1", "write"}});
  cut["stopReason"] = "length";
  provider.replies = {std::move(cut), test::text_reply("again, in parts")};
  make_agent({test::make_tool("write", write)});
  prompt();
  EXPECT_FALSE(ran);
  EXPECT_EQ(provider.calls, 2);
  EXPECT_TRUE(result_at(2).is_error);
}

// ---- FF-20: hooks that fail --------------------------------------------------------------------------------------

TEST_F(LoopTest, AFailingHookTouchesOnlyItsOwnCall) {
  for (const bool before : {true, false}) {
    provider = {};
    provider.replies = {test::call_reply({{"c1", "quick"}, {"c2", "quick"}, {"c3", "quick"}}), test::text_reply("ok")};
    auto options = test::faux_options(provider, {test::make_tool("quick", test::instant)});
    if (before) {
      options.loop.before_tool_call = [](agent::ToolCallInfo info, std::stop_token) {
        return [](bool fails) -> asio::awaitable<agent::BeforeToolCall> {
          if (fails) throw std::runtime_error("guard.ts failed: no policy");
          co_return agent::BeforeToolCall{};
        }(info.call.id == "c2");
      };
    } else {
      options.loop.after_tool_call = [](agent::ToolCallInfo info, const ToolResult&, bool, std::stop_token) {
        return [](bool fails) -> asio::awaitable<agent::AfterToolCall> {
          if (fails) throw std::runtime_error("guard.ts failed: no policy");
          co_return agent::AfterToolCall{};
        }(info.call.id == "c2");
      };
    }
    make_agent(std::move(options));
    prompt();
    ASSERT_EQ(test::roles(agent->state().messages), "user assistant toolResult toolResult toolResult assistant");
    EXPECT_EQ(test::text_at(*agent, 2), "c1");
    EXPECT_EQ(test::text_at(*agent, 3), "guard.ts failed: no policy");
    EXPECT_TRUE(result_at(3).is_error);
    EXPECT_EQ(test::text_at(*agent, 4), "c3");
  }
}

TEST_F(LoopTest, AFailingListenerDoesNotLeaveToolsBehind) {  // AG-68, AG-82
  int running = 0;
  const auto counted = [&](std::string id, std::stop_token stop, ToolUpdate update) {
    return [](int* count, std::string name, std::stop_token s, ToolUpdate u) -> asio::awaitable<ToolResult> {
      ++*count;
      std::exception_ptr thrown;
      try {
        co_await test::until_abort(std::move(name), std::move(s), std::move(u));
      } catch (...) {
        thrown = std::current_exception();
      }
      --*count;
      std::rethrow_exception(thrown);
    }(&running, std::move(id), std::move(stop), std::move(update));
  };
  provider.replies = {test::call_reply({{"c1", "wait"}, {"c2", "quick"}, {"c3", "wait"}})};
  make_agent({test::make_tool("wait", counted), test::make_tool("quick", test::instant)});
  on("tool_execution_end", [] { throw std::runtime_error("disk full"); });
  on("agent_end", [&] { EXPECT_EQ(running, 0); });
  prompt();
  EXPECT_EQ(running, 0);
  EXPECT_EQ(agent->state().error_message, "disk full");
  EXPECT_EQ(agent->state().messages.back().assistant()->stop_reason, ai::StopReason::kError);
  EXPECT_TRUE(agent->state().pending_tool_calls.empty());
}

// ---- streams -----------------------------------------------------------------------------------------------------

/// IV-7: what a faulty provider leaves pending is stored as an error.
TEST_F(LoopTest, AReplyThatStaysPendingBecomesAnError) {
  auto options = test::faux_options(provider);
  options.loop.stream = [](ai::Model, ai::Context, ai::StreamOptions, ai::EventSink, std::stop_token) {
    return []() -> asio::awaitable<ai::AssistantMessage> {
      ai::AssistantMessage reply;
      reply.stop_reason = ai::StopReason::kPending;
      co_return reply;
    }();
  };
  make_agent(std::move(options));
  prompt();
  const ai::AssistantMessage& reply = *agent->state().messages.back().assistant();
  EXPECT_EQ(reply.stop_reason, ai::StopReason::kError);
  EXPECT_TRUE(reply.error_message);
  EXPECT_TRUE(agent->state().error_message);
}

/// A delta that nobody has to wait for costs no coroutine and no copy of the message.
TEST_F(LoopTest, ADeltaIsHandledWithoutACoroutineAndWithoutACopy) {
  auto options = test::faux_options(provider);
  int waited = 0;
  const ai::AssistantMessage* live = nullptr;
  options.loop.stream = [&](ai::Model, ai::Context, ai::StreamOptions, ai::EventSink sink, std::stop_token) {
    return [](ai::EventSink out, int* waits,
              const ai::AssistantMessage** partial) -> asio::awaitable<ai::AssistantMessage> {
      ai::AssistantMessage reply;
      *partial = &reply;
      Completion started = out({ai::StreamStart{}, reply});
      if (started) co_await *std::move(started);
      reply.content.emplace_back(ai::TextContent{});
      for (int i = 0; i < 1000; ++i) {
        const Completion wait = out({ai::BlockDelta{ai::BlockKind::kText, 0, "x"}, reply});
        if (wait) ++*waits;
      }
      co_return reply;
    }(std::move(sink), &waited, &live);
  };
  make_agent(std::move(options));
  int deltas = 0;
  agent->subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
    if (const auto* update = std::get_if<agent::MessageUpdate>(&event)) {
      ++deltas;
      EXPECT_EQ(&update->message, live);
      EXPECT_EQ(agent->state().streaming, live);
    }
    return std::nullopt;
  });
  prompt();
  EXPECT_EQ(deltas, 1000);
  EXPECT_EQ(waited, 0);
  EXPECT_EQ(agent->state().streaming, nullptr);
}

TEST_F(LoopTest, ASlowListenerHoldsTheStream) {  // AG-29
  provider.replies = {test::text_reply(std::string(64, 'x'))};
  make_agent(std::vector<AgentTool>{});
  int inside = 0;
  int updates = 0;
  const auto wait_a_moment = [](int* in) -> asio::awaitable<void> {
    EXPECT_EQ(++*in, 1);
    co_await sleep_for(1ms);
    --*in;
  };
  agent->subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
    EXPECT_EQ(inside, 0) << "an event came before the one before it was handled";
    if (!std::holds_alternative<agent::MessageUpdate>(event)) return std::nullopt;
    ++updates;
    return wait_a_moment(&inside);
  });
  prompt();
  EXPECT_EQ(updates, 6);
}

TEST_F(LoopTest, ASettledMessageIsNotReplacedByOneOfAnotherRole) {  // SE-22
  provider.replies = {test::text_reply("answer")};
  auto options = test::faux_options(provider);
  options.loop.settle_message = [](AgentMessage) {
    return
        []() -> asio::awaitable<AgentMessage> { co_return AgentMessage(agent::UnknownMessage{{{"role", "poll"}}}); }();
  };
  make_agent(std::move(options));
  prompt();
  EXPECT_EQ(test::roles(agent->state().messages), "user assistant");
}

TEST_F(LoopTest, ASettledReplyIsNotReplacedByAPendingOne) {  // IV-7
  provider.replies = {test::text_reply("answer")};
  auto options = test::faux_options(provider);
  options.loop.settle_message = [](AgentMessage message) {
    return [](AgentMessage m) -> asio::awaitable<AgentMessage> {
      if (m.assistant() == nullptr) co_return m;
      ai::AssistantMessage pending = *m.assistant();
      pending.stop_reason = ai::StopReason::kPending;
      co_return AgentMessage(std::move(pending));
    }(std::move(message));
  };
  make_agent(std::move(options));
  prompt();
  EXPECT_EQ(agent->state().messages.back().assistant()->stop_reason, ai::StopReason::kStop);
  EXPECT_TRUE(agent::check_transcript(agent->state().messages).empty());
}

TEST_F(LoopTest, WithoutAKeyFromTheHookTheOneOfTheOptionsIsUsed) {
  provider.replies = {test::call_reply({{"c1", "quick"}}), test::call_reply({{"c2", "quick"}}), test::text_reply("ok")};
  auto options = test::faux_options(provider, {test::make_tool("quick", test::instant)});
  options.loop.options.api_key = "configured";
  std::vector<std::optional<std::string>> keys{"fresh", "", std::nullopt};
  options.loop.get_api_key = [&](std::string) {
    std::optional<std::string> key = keys.front();
    keys.erase(keys.begin());
    return [](std::optional<std::string> k) -> asio::awaitable<std::optional<std::string>> { co_return k; }(key);
  };
  std::string used;
  provider.on_call = [&](int, const ai::Model&, const ai::Context&, const ai::StreamOptions& o,
                         const std::stop_token&) { used += o.api_key.value_or("none") + " "; };
  make_agent(std::move(options));
  prompt();
  EXPECT_EQ(used, "fresh configured configured ");
}

TEST(Loop, NeedsAStreamFunctionOrTheDefault) {  // AG-19, PX-1
  asio::io_context io;
  EXPECT_THROW(Agent(io.get_executor(), agent::AgentOptions{}), std::logic_error);
  EXPECT_THROW(test::run(io, agent::run_loop({test::user_message("go")}, {}, {},
                                             [](const AgentEvent&) -> Completion { return std::nullopt; }, {})),
               std::logic_error);

  test::FauxProvider provider;
  provider.replies = {test::text_reply("from the default")};
  agent::set_default_stream_function(provider.stream());
  Agent agent(io.get_executor(), agent::AgentOptions{});
  test::run(io, agent.prompt("go"));
  EXPECT_EQ(test::text_at(agent, 1), "from the default");
  agent::set_default_stream_function({});
}

}  // namespace
