// The Agent beyond the golden cases: listeners, waiting, other threads (AG section 7, AG-81).
#include "agent/agent.h"

#include <atomic>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "agent/builders.h"
#include "agent/check_transcript.h"

#include "support/run.h"

namespace {

using namespace tau;
using agent::Agent;
using agent::AgentEvent;
using agent::Completion;
namespace asio = boost::asio;

class AgentTest : public testing::Test {
 protected:
  Agent& make_agent(std::vector<agent::AgentTool> tools = {}) {
    agent.emplace(io.get_executor(), test::faux_options(provider, std::move(tools)));
    return *agent;
  }

  asio::io_context io;
  test::FauxProvider provider;
  std::optional<Agent> agent;
};

TEST_F(AgentTest, AListenerThatSubscribesAnotherSharesTheEventWithIt) {  // AG-65
  provider.replies = {test::text_reply("r")};
  make_agent();
  std::vector<std::string> heard;
  bool subscribed = false;
  agent->subscribe([&](const AgentEvent&, const std::stop_token&) -> Completion {
    if (!std::exchange(subscribed, true)) {
      agent->subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
        heard.emplace_back(agent::type_of(event));
        return std::nullopt;
      });
    }
    return std::nullopt;
  });
  test::run(io, agent->prompt("go"));
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard.front(), "agent_start");
  EXPECT_EQ(heard.back(), "agent_end");
}

TEST_F(AgentTest, AListenerThatIsRemovedBeforeItsTurnIsNotCalled) {  // AG-65
  provider.replies = {test::text_reply("r")};
  make_agent();
  std::function<void()> remove_second;
  agent->subscribe([&](const AgentEvent&, const std::stop_token&) -> Completion {
    remove_second();
    return std::nullopt;
  });
  int called = 0;
  remove_second = agent->subscribe([&](const AgentEvent&, const std::stop_token&) -> Completion {
    ++called;
    return std::nullopt;
  });
  test::run(io, agent->prompt("go"));
  EXPECT_EQ(called, 0);
}

TEST_F(AgentTest, ListenersSeeTheStateAfterTheEvent) {  // AG 7.2
  provider.replies = {test::call_reply({{"c1", "t"}}), test::text_reply("done")};
  make_agent({test::make_tool("t", test::instant)});
  agent->subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
    const agent::AgentState& state = agent->state();
    EXPECT_TRUE(state.is_streaming);
    if (const auto* start = std::get_if<agent::MessageStart>(&event)) {
      EXPECT_EQ(state.streaming_role, start->message.role());
      EXPECT_EQ(state.streaming, start->message.assistant());
    }
    if (const auto* end = std::get_if<agent::MessageEnd>(&event)) {
      EXPECT_EQ(state.messages.back(), end->message);
      EXPECT_EQ(state.streaming, nullptr);
    }
    if (std::holds_alternative<agent::ToolExecutionStart>(event)) {
      EXPECT_EQ(state.pending_tool_calls, std::vector<std::string>{"c1"});
    }
    if (std::holds_alternative<agent::ToolExecutionEnd>(event)) {
      EXPECT_TRUE(state.pending_tool_calls.empty());
    }
    return std::nullopt;
  });
  test::run(io, agent->prompt("go"));
  EXPECT_FALSE(agent->state().is_streaming);
}

TEST_F(AgentTest, TheMessageOfTurnEndAndAgentEndIsThatOfTheTranscript) {  // AG-54
  provider.replies = {test::call_reply({{"c1", "t"}}), test::text_reply("done")};
  make_agent({test::make_tool("t", test::instant)});
  agent->subscribe([&](const AgentEvent& event, const std::stop_token&) -> Completion {
    const auto& messages = agent->state().messages;
    if (const auto* turn = std::get_if<agent::TurnEnd>(&event); turn != nullptr && !turn->tool_results.empty()) {
      EXPECT_EQ(turn->message, messages.at(1));
      EXPECT_EQ(turn->tool_results.at(0), messages.at(2));
    }
    if (const auto* end = std::get_if<agent::AgentEnd>(&event)) {
      EXPECT_EQ(end->messages, messages);
    }
    return std::nullopt;
  });
  test::run(io, agent->prompt("go"));
}

TEST_F(AgentTest, WaitersForIdleWakeBeforeThePromptReturns) {  // AG-67
  provider.replies = {test::text_reply("r")};
  make_agent();
  std::string order;
  const auto prompts = [](Agent* a, std::string* out) -> asio::awaitable<void> {
    co_await a->prompt("go");
    *out += "prompt ";
  };
  const auto waits = [](Agent* a, std::string* out) -> asio::awaitable<void> {
    co_await a->wait_for_idle();
    EXPECT_FALSE(a->state().is_streaming);
    *out += "idle ";
  };
  asio::co_spawn(io, prompts(&*agent, &order), asio::detached);
  asio::co_spawn(io, waits(&*agent, &order), asio::detached);
  asio::co_spawn(io, waits(&*agent, &order), asio::detached);
  io.run();
  EXPECT_EQ(order, "idle idle prompt ");
}

TEST_F(AgentTest, WaitingForAnIdleAgentReturnsAtOnce) {
  make_agent();
  test::run(io, agent->wait_for_idle());
}

TEST_F(AgentTest, AbortWithoutARunDoesNothing) {  // AG-53
  provider.replies = {test::text_reply("r")};
  make_agent();
  agent->abort();
  test::run(io, agent->prompt("go"));
  EXPECT_EQ(test::text_at(*agent, 1), "r");
}

TEST_F(AgentTest, ResetForgetsTheConversationAndKeepsTheConfiguration) {
  provider.replies = {test::text_reply("r")};
  make_agent({test::make_tool("t", test::instant)});
  agent->state().system_prompt = "SYS";
  int heard = 0;
  agent->subscribe([&](const AgentEvent&, const std::stop_token&) -> Completion {
    ++heard;
    return std::nullopt;
  });
  test::run(io, agent->prompt("go"));
  agent->follow_up(test::user_message("later"));
  agent->reset();
  EXPECT_TRUE(agent->state().messages.empty());
  EXPECT_FALSE(agent->has_queued_messages());
  EXPECT_EQ(agent->state().system_prompt, "SYS");
  EXPECT_EQ(agent->state().tools.size(), 1U);
  heard = 0;
  test::run(io, agent->prompt("again"));  // no reply is left: an error, but a run
  EXPECT_GT(heard, 0);
  EXPECT_TRUE(agent->state().error_message);
}

TEST_F(AgentTest, TheQueuesCanBeClearedOneByOne) {
  make_agent();
  agent->steer(test::user_message("s"));
  agent->follow_up(test::user_message("f"));
  agent->clear_steering_queue();
  EXPECT_TRUE(agent->has_queued_messages());
  agent->clear_follow_up_queue();
  EXPECT_FALSE(agent->has_queued_messages());
  agent->steer(test::user_message("s"));
  agent->follow_up(test::user_message("f"));
  agent->clear_all_queues();
  EXPECT_FALSE(agent->has_queued_messages());
}

/// AG-81: steer, follow_up and abort come from anywhere. No message is lost, none comes twice.
TEST_F(AgentTest, QueuesAndAbortsFromOtherThreadsLoseNothing) {
  const auto short_work = [](std::string id, std::stop_token, agent::ToolUpdate) -> asio::awaitable<agent::ToolResult> {
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    co_await asio::post(executor, asio::use_awaitable);
    co_return agent::text_result(id);
  };
  make_agent({test::make_tool("t", short_work)});
  constexpr int kMessages = 200;
  std::atomic<bool> queued_all = false;
  std::jthread other([&] {
    for (int i = 0; i < kMessages; ++i) {
      if (i % 2 == 0) {
        agent->steer(test::user_message("q" + std::to_string(i)));
      } else {
        agent->follow_up(test::user_message("q" + std::to_string(i)));
      }
      if (i % 20 == 19) agent->abort();
      std::this_thread::yield();
    }
    queued_all = true;
  });
  int rounds = 0;
  while (!queued_all || agent->has_queued_messages()) {
    ASSERT_LT(++rounds, 100'000);
    for (int i = 0; i < 4; ++i)
      provider.replies.push_back(i == 0 ? test::call_reply({{"c", "t"}}) : test::text_reply("r"));
    if (agent->has_queued_messages() && !agent->state().messages.empty() &&
        agent->state().messages.back().assistant() != nullptr) {
      test::run(io, agent->continue_run());
    } else {
      test::run(io, agent->prompt("go"));
    }
  }
  int delivered = 0;
  for (const agent::AgentMessage& message : agent->state().messages) {
    if (message.user() != nullptr && ai::text_of(message.user()->content).starts_with("q")) ++delivered;
  }
  EXPECT_EQ(delivered, kMessages);
  EXPECT_TRUE(agent::check_transcript(agent->state().messages).empty());
}

}  // namespace
