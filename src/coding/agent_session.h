// One coding session: the object that every mode drives (command line, screen, protocol, library).
//
// It ties the agent to what makes it a product, and decides when a record enters transcript, screen and disk:
//
//   - a message is written when it has ended, after the listeners have seen it, before the loop goes on (SE-1 to SE-4);
//     the first prompt is on disk before the first request leaves (FF-27);
//   - a `!` command that ends while a run is active waits until the run has settled, so that it never stands between a
//     tool call and its result (SE-6 to SE-10);
//   - a reply that failed for a passing reason is taken out of the live transcript (it stays on disk) and asked for
//     again, with growing pauses (SE-27 to SE-31);
//   - model and thinking level, once changed, are recorded, clamped to what the model offers, and used from the next
//     turn on (SE-26).
#pragma once

#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/agent.h"
#include "ai/auth/environment.h"
#include "ai/stream.h"
#include "base/error.h"
#include "coding/roles/bash_execution.h"
#include "coding/session/session.h"
#include "coding/session_event.h"

namespace tau::coding {

namespace asio = boost::asio;

struct RetryPolicy {
  bool enabled = true;
  int max_retries = 3;
  std::chrono::milliseconds base_delay{2000};
};

struct AgentSessionOptions {
  std::shared_ptr<Session> session;
  ai::StreamFunction stream;
  ai::StreamOptions request_options;  // timeouts, cache, retries inside one request
  /// Key, headers and the like of one request; asked for at each model call, because a key may come from a command or
  /// may have been replaced.
  std::function<asio::awaitable<std::expected<ai::RequestAuth, Error>>(ai::Model model)> credentials;
  ai::Model model;
  ai::ThinkingLevel thinking_level = ai::ThinkingLevel::kOff;
  std::vector<agent::AgentTool> tools;
  std::string system_prompt;
  RetryPolicy retry;
  agent::QueueMode steering_mode = agent::QueueMode::kOneAtATime;
  agent::QueueMode follow_up_mode = agent::QueueMode::kOneAtATime;
  std::function<bool()> block_images;  // read at each projection (PR-20)
};

/// Called synchronously, in order, before the loop goes on.
using SessionListener = std::function<void(const SessionEvent& event)>;

class AgentSession {
 public:
  AgentSession(asio::any_io_executor executor, AgentSessionOptions options);
  ~AgentSession();
  AgentSession(const AgentSession&) = delete;
  AgentSession& operator=(const AgentSession&) = delete;

  /// Runs a prompt to its settled end: all turns, retries and queued messages. Fails without a run when one is active
  /// already. Failures of the provider are replies, not errors: look at the last message.
  asio::awaitable<std::expected<void, Error>> prompt(std::string text, std::vector<ai::ImageContent> images = {});

  /// A user message for the next turn of the active run, or for the time when it would end. Shown in QueueUpdate until
  /// it is delivered.
  void steer(std::string text, std::vector<ai::ImageContent> images = {});
  void follow_up(std::string text, std::vector<ai::ImageContent> images = {});
  struct Queues {
    std::vector<std::string> steering;
    std::vector<std::string> follow_up;
  };
  const Queues& queues() const { return queues_; }
  /// Empties both queues and returns what was in them.
  Queues clear_queues();

  /// Ends retry pause and run; returns at once. Queued messages stay (SE-32). `prompt` returns when all has settled.
  void abort();

  /// Adds a user command's record: at once when idle, else after the active run has settled (SE-6).
  void record_bash(BashExecution record);

  /// Subscribes until the returned function is called.
  std::function<void()> subscribe(SessionListener listener);

  void set_model(ai::Model model);
  void set_thinking_level(ai::ThinkingLevel level);
  void set_name(std::string name);

  bool running() const { return running_; }
  const ai::Model& model() const;
  ai::ThinkingLevel thinking_level() const;
  const std::vector<agent::AgentMessage>& messages() const;
  /// The last message when it is an assistant's; null otherwise.
  const ai::AssistantMessage* last_reply() const;
  Session& session() { return *options_.session; }

 private:
  void record_start();
  void load_messages() const;
  asio::awaitable<agent::NextTurn> next_turn();
  asio::awaitable<void> run(std::vector<agent::AgentMessage> messages);
  asio::awaitable<bool> wants_continuation();
  asio::awaitable<bool> wait_for_retry(const ai::AssistantMessage& reply);
  void on_agent_event(const agent::AgentEvent& event);
  void before_listeners(const agent::AgentEvent& event);
  void after_listeners(const agent::AgentEvent& event);
  void persist(const agent::AgentMessage& message);
  void report(const std::expected<void, Error>& written);
  void emit(const SessionEvent& event);
  void emit_queues();
  void flush_bash_records();
  bool is_retryable(const ai::AssistantMessage& reply) const;
  bool will_retry(const std::vector<agent::AgentMessage>& messages) const;

  asio::any_io_executor executor_;
  AgentSessionOptions options_;
  std::unique_ptr<agent::Agent> agent_;
  std::vector<std::pair<int, SessionListener>> listeners_;
  int next_listener_ = 0;
  Queues queues_;
  std::deque<BashExecution> pending_bash_;
  mutable bool messages_loaded_ = false;  // into the agent's state
  bool running_ = false;
  bool abort_requested_ = false;  // since the run began
  int retry_attempt_ = 0;
  std::optional<agent::AgentMessage> settled_reply_;  // since the last continuation was decided
  asio::steady_timer retry_timer_;
};

}  // namespace tau::coding
