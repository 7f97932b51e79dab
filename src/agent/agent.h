// The Agent: a transcript, a model, tools, and one run at a time (AG section 7).
//
// It reduces the loop's events to state, keeps the two message queues, and turns failures of a run into an ordinary
// reply, so that a screen or a session file that lives on its events never sees a run without an end.
//
// Everything happens on one executor. steer, follow_up and abort may be called from any thread; the rest on the
// executor only.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/agent_message.h"
#include "agent/events.h"
#include "agent/loop.h"
#include "agent/tool.h"

namespace tau::agent {

enum class QueueMode { kAll, kOneAtATime };

/// The operation is not possible now: a run is active, or there is nothing to continue.
class AgentBusy : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

struct AgentState {
  std::string system_prompt;
  ai::Model model;
  ai::ThinkingLevel thinking_level = ai::ThinkingLevel::kOff;
  std::vector<AgentTool> tools;
  std::vector<AgentMessage> messages;

  // Written by the agent only.
  bool is_streaming = false;                        // from the start of a run until the listeners of its end are done
  std::optional<std::string> streaming_role;        // role of the message between its start and its end
  const ai::AssistantMessage* streaming = nullptr;  // the live partial reply, never in the transcript (AG-64); set
                                                    // while listeners handle its start and its updates, null otherwise
  std::vector<std::string> pending_tool_calls;      // ids, in the order of their start
  std::optional<std::string> error_message;         // of the last run that failed; cleared when the next one starts
};

struct AgentOptions {
  AgentState initial_state;
  /// model, options.reasoning and the queues are filled in for each run; everything else is used as it is.
  LoopConfig loop;
  QueueMode steering_mode = QueueMode::kOneAtATime;
  QueueMode follow_up_mode = QueueMode::kOneAtATime;
};

class Agent {
 public:
  /// Takes an event and the stop token of its run. Listeners are called in the order of subscription, one after the
  /// other, each awaited (AG-65). One that throws fails the run (AG-74).
  using Listener = std::function<Completion(const AgentEvent& event, std::stop_token stop)>;

  /// `executor` runs one thing at a time: an io_context with one thread, or a strand. Throws std::logic_error when
  /// there is no stream function, neither in the options nor as default (AG-19).
  Agent(asio::any_io_executor executor, AgentOptions options);
  /// No run may be active: abort it and wait for idle first.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// System prompt, model, tools and messages may be changed between runs, and during one: the running loop works on a
  /// snapshot and does not see it (AG-61).
  AgentState& state() { return state_; }
  const AgentState& state() const { return state_; }
  /// Used by the next run (AG-59).
  LoopConfig& loop_config() { return options_.loop; }

  /// Subscribes until the returned function is called.
  std::function<void()> subscribe(Listener listener);

  /// A run on these messages. Ends when the run is over and its listeners are done; what went wrong is in the last
  /// message and in error_message, not thrown (AG-71). Throws AgentBusy while a run is active.
  asio::awaitable<void> prompt(std::vector<AgentMessage> messages);
  /// A user message of a text block and the images.
  asio::awaitable<void> prompt(std::string text, std::vector<ai::ImageContent> images = {});
  /// Goes on with the transcript; after a reply, with what is queued (AG-69). Throws AgentBusy when there is nothing.
  asio::awaitable<void> continue_run();

  /// Queued for the next turn of the active run, or the next run. Thread-safe.
  void steer(AgentMessage message);
  /// Queued for when a run would end. Thread-safe.
  void follow_up(AgentMessage message);
  void set_steering_mode(QueueMode mode);
  void set_follow_up_mode(QueueMode mode);
  void clear_steering_queue();
  void clear_follow_up_queue();
  void clear_all_queues();
  bool has_queued_messages() const;

  /// Asks the active run to end; returns at once. Thread-safe, idempotent.
  void abort();
  asio::awaitable<void> wait_for_idle();
  /// Forgets transcript, error and queues. Throws AgentBusy while a run is active.
  void reset();

 private:
  struct Queue {
    std::vector<AgentMessage> messages;
    QueueMode mode = QueueMode::kOneAtATime;

    std::vector<AgentMessage> drain();
  };
  struct Subscription {
    Listener listener;
    bool active = true;
  };

  /// The partial reply lives as long as the delivery of its event; nothing may point to it afterwards.
  struct ForgetPartial {
    void operator()(AgentState* state) const { state->streaming = nullptr; }
  };
  using Delivery = std::unique_ptr<AgentState, ForgetPartial>;

  asio::awaitable<void> run(std::vector<AgentMessage> prompts, bool skip_first_steering);
  asio::awaitable<void> run_normalized(std::vector<AgentMessage> prompts, bool skip_first_steering,
                                       std::stop_token stop);
  asio::awaitable<void> report_failure(std::string text, std::stop_token stop);
  LoopConfig config_of_run(bool skip_first_steering);
  void require_idle(const char* operation) const;
  void finish();
  void reduce(const AgentEvent& event);
  Completion dispatch(const AgentEvent& event, const std::stop_token& stop);
  asio::awaitable<void> dispatch_rest(Delivery delivery, asio::awaitable<void> wait, const AgentEvent& event,
                                      std::size_t next, std::stop_token stop);

  asio::any_io_executor executor_;
  AgentOptions options_;
  AgentState state_;
  std::vector<std::shared_ptr<Subscription>> subscriptions_;

  mutable std::mutex shared_;  // guards what other threads may touch
  Queue steering_;
  Queue follow_ups_;
  std::optional<std::stop_source> run_stop_;

  asio::steady_timer idle_;  // cancelled when a run is over
};

}  // namespace tau::agent
