#include "agent/agent.h"

#include <algorithm>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/default_stream.h"
#include "agent/tool_batch.h"
#include "base/clock.h"

namespace tau::agent {

namespace {

asio::awaitable<void> wait_on(asio::steady_timer& timer) {
  [[maybe_unused]] const auto result = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

}  // namespace

std::vector<AgentMessage> Agent::Queue::drain() {
  std::vector<AgentMessage> out;
  if (mode == QueueMode::kAll) {
    out.swap(messages);
  } else if (!messages.empty()) {
    out.push_back(std::move(messages.front()));
    messages.erase(messages.begin());
  }
  return out;
}

Agent::Agent(asio::any_io_executor executor, AgentOptions options)
    : executor_(std::move(executor)), options_(std::move(options)), idle_(executor_) {
  if (!options_.loop.stream) options_.loop.stream = default_stream_function();
  state_ = std::move(options_.initial_state);
  steering_.mode = options_.steering_mode;
  follow_ups_.mode = options_.follow_up_mode;
  idle_.expires_at(std::chrono::steady_clock::time_point::max());
}

Agent::~Agent() = default;

std::function<void()> Agent::subscribe(Listener listener) {
  auto subscription = std::make_shared<Subscription>(Subscription{std::move(listener)});
  subscriptions_.push_back(subscription);
  return [weak = std::weak_ptr<Subscription>(subscription)] {
    if (const auto alive = weak.lock()) alive->active = false;
  };
}

void Agent::require_idle(const char* operation) const {
  if (state_.is_streaming) throw AgentBusy(std::string(operation) + ": a run is active; wait for its end or abort it");
}

asio::awaitable<void> Agent::prompt(std::vector<AgentMessage> messages) {
  require_idle("prompt");
  co_await run(std::move(messages), false);
}

asio::awaitable<void> Agent::prompt(std::string text, std::vector<ai::ImageContent> images) {
  std::vector<ai::UserBlock> content;
  content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  for (ai::ImageContent& image : images)
    content.emplace_back(std::move(image));
  std::vector<AgentMessage> messages;
  messages.emplace_back(ai::UserMessage{std::move(content), now_milliseconds(), {}});
  co_await prompt(std::move(messages));
}

asio::awaitable<void> Agent::continue_run() {
  require_idle("continue");
  if (state_.messages.empty()) throw AgentBusy("continue: the transcript is empty");
  if (state_.messages.back().assistant() == nullptr) {
    co_await run({}, false);
    co_return;
  }
  std::vector<AgentMessage> queued;
  bool from_steering = false;
  {
    const std::scoped_lock lock(shared_);
    queued = steering_.drain();
    from_steering = !queued.empty();
    if (!from_steering) queued = follow_ups_.drain();
  }
  if (queued.empty()) throw AgentBusy("continue: the last message is a reply and nothing is queued");
  // What came from steering has had its poll: in one-at-a-time mode the next one waits for the next turn (AG-69).
  co_await run(std::move(queued), from_steering);
}

LoopConfig Agent::config_of_run(bool skip_first_steering) {
  LoopConfig config = options_.loop;
  config.model = state_.model;
  config.options.reasoning.reset();
  if (state_.thinking_level != ai::ThinkingLevel::kOff) config.options.reasoning = state_.thinking_level;
  // The closure is kept alive by the config; the coroutines get what they need as parameters.
  struct Poll {
    static asio::awaitable<std::vector<AgentMessage>> steering(Agent* agent, std::shared_ptr<bool> skip) {
      if (std::exchange(*skip, false)) co_return std::vector<AgentMessage>{};
      const std::scoped_lock lock(agent->shared_);
      co_return agent->steering_.drain();
    }
    static asio::awaitable<std::vector<AgentMessage>> follow_ups(Agent* agent) {
      const std::scoped_lock lock(agent->shared_);
      co_return agent->follow_ups_.drain();
    }
  };
  auto skip = std::make_shared<bool>(skip_first_steering);
  config.get_steering_messages = [this, skip] { return Poll::steering(this, skip); };
  config.get_follow_up_messages = [this] { return Poll::follow_ups(this); };
  return config;
}

asio::awaitable<void> Agent::run(std::vector<AgentMessage> prompts, bool skip_first_steering) {
  std::stop_source stop;
  {
    const std::scoped_lock lock(shared_);
    run_stop_ = stop;
  }
  state_.is_streaming = true;
  state_.streaming = nullptr;
  state_.streaming_role.reset();
  state_.error_message.reset();

  std::exception_ptr failure;
  try {
    co_await run_normalized(std::move(prompts), skip_first_steering, stop.get_token());
  } catch (...) {
    failure = std::current_exception();
  }
  finish();
  // Waiters for the idle agent go first (AG-67).
  co_await asio::post(executor_, asio::use_awaitable);
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> Agent::run_normalized(std::vector<AgentMessage> prompts, bool skip_first_steering,
                                            std::stop_token stop) {
  std::optional<std::string> failure;
  try {
    AgentContext context{state_.system_prompt, state_.messages, state_.tools};
    LoopConfig config = config_of_run(skip_first_steering);
    AgentEventSink sink = [this, stop](const AgentEvent& event) { return dispatch(event, stop); };
    co_await run_loop(std::move(prompts), std::move(context), std::move(config), std::move(sink), stop);
  } catch (const std::exception& e) {
    failure = e.what();
  } catch (...) {
    failure = "unknown failure";
  }
  if (failure) co_await report_failure(*std::move(failure), stop);
}

/// The run ends like any other, with a reply that says what went wrong (AG-72).
asio::awaitable<void> Agent::report_failure(std::string text, std::stop_token stop) {
  ai::AssistantMessage reply;
  reply.content.emplace_back(ai::TextContent{});
  reply.api = state_.model.api;
  reply.provider = state_.model.provider;
  reply.model = state_.model.id;
  reply.stop_reason = stop.stop_requested() ? ai::StopReason::kAborted : ai::StopReason::kError;
  reply.error_message = std::move(text);
  reply.timestamp = now_milliseconds();
  const AgentMessage message(std::move(reply));
  const AgentEventSink sink = [this, stop](const AgentEvent& event) { return dispatch(event, stop); };
  AgentEvent message_started = MessageStart{message};
  co_await deliver(sink, std::move(message_started));
  AgentEvent message_ended = MessageEnd{message};
  co_await deliver(sink, std::move(message_ended));
  AgentEvent turn_ended = TurnEnd{message, {}};
  co_await deliver(sink, std::move(turn_ended));
  AgentEvent ended = AgentEnd{{message}};
  co_await deliver(sink, std::move(ended));
}

void Agent::finish() {
  {
    const std::scoped_lock lock(shared_);
    run_stop_.reset();
  }
  state_.is_streaming = false;
  state_.streaming = nullptr;
  state_.streaming_role.reset();
  state_.pending_tool_calls.clear();
  std::erase_if(subscriptions_, [](const auto& s) { return !s->active; });
  idle_.cancel();
}

/// State first, then the listeners (AG section 7.2).
void Agent::reduce(const AgentEvent& event) {
  if (const auto* start = std::get_if<MessageStart>(&event)) {
    state_.streaming_role = std::string(start->message.role());
    state_.streaming = start->message.assistant();
  } else if (const auto* update = std::get_if<MessageUpdate>(&event)) {
    state_.streaming = &update->message;
  } else if (const auto* end = std::get_if<MessageEnd>(&event)) {
    state_.streaming = nullptr;
    state_.streaming_role.reset();
    state_.messages.push_back(end->message);
  } else if (const auto* tool = std::get_if<ToolExecutionStart>(&event)) {
    auto& ids = state_.pending_tool_calls;
    if (std::find(ids.begin(), ids.end(), tool->tool_call_id) == ids.end()) ids.push_back(tool->tool_call_id);
  } else if (const auto* done = std::get_if<ToolExecutionEnd>(&event)) {
    std::erase(state_.pending_tool_calls, done->tool_call_id);
  } else if (const auto* turn = std::get_if<TurnEnd>(&event)) {
    const ai::AssistantMessage* reply = turn->message.assistant();
    if (reply != nullptr && reply->error_message && !reply->error_message->empty()) {
      state_.error_message = reply->error_message;
    }
  } else if (std::holds_alternative<AgentEnd>(event)) {
    state_.streaming = nullptr;
    state_.streaming_role.reset();
  }
}

Completion Agent::dispatch(const AgentEvent& event, const std::stop_token& stop) {
  reduce(event);
  Delivery delivery(&state_);
  // By index: a listener may subscribe another one, which is called for this event too.
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    const std::shared_ptr<Subscription> subscription = subscriptions_[i];
    if (!subscription->active) continue;
    Completion wait = subscription->listener(event, stop);
    if (!wait) continue;
    return dispatch_rest(std::move(delivery), *std::move(wait), event, i + 1, stop);
  }
  return std::nullopt;
}

asio::awaitable<void> Agent::dispatch_rest([[maybe_unused]] Delivery delivery, asio::awaitable<void> wait,
                                           const AgentEvent& event, std::size_t next, std::stop_token stop) {
  co_await std::move(wait);
  for (std::size_t i = next; i < subscriptions_.size(); ++i) {
    const std::shared_ptr<Subscription> subscription = subscriptions_[i];
    if (!subscription->active) continue;
    Completion more = subscription->listener(event, stop);
    if (more) co_await *std::move(more);
  }
}

void Agent::steer(AgentMessage message) {
  const std::scoped_lock lock(shared_);
  steering_.messages.push_back(std::move(message));
}

void Agent::follow_up(AgentMessage message) {
  const std::scoped_lock lock(shared_);
  follow_ups_.messages.push_back(std::move(message));
}

void Agent::set_steering_mode(QueueMode mode) {
  const std::scoped_lock lock(shared_);
  steering_.mode = mode;
}

void Agent::set_follow_up_mode(QueueMode mode) {
  const std::scoped_lock lock(shared_);
  follow_ups_.mode = mode;
}

void Agent::clear_steering_queue() {
  const std::scoped_lock lock(shared_);
  steering_.messages.clear();
}

void Agent::clear_follow_up_queue() {
  const std::scoped_lock lock(shared_);
  follow_ups_.messages.clear();
}

void Agent::clear_all_queues() {
  const std::scoped_lock lock(shared_);
  steering_.messages.clear();
  follow_ups_.messages.clear();
}

bool Agent::has_queued_messages() const {
  const std::scoped_lock lock(shared_);
  return !steering_.messages.empty() || !follow_ups_.messages.empty();
}

void Agent::abort() {
  std::optional<std::stop_source> stop;
  {
    const std::scoped_lock lock(shared_);
    stop = run_stop_;
  }
  if (stop) stop->request_stop();
}

asio::awaitable<void> Agent::wait_for_idle() {
  while (state_.is_streaming)
    co_await wait_on(idle_);
}

void Agent::reset() {
  require_idle("reset");
  state_.messages.clear();
  state_.streaming = nullptr;
  state_.streaming_role.reset();
  state_.pending_tool_calls.clear();
  state_.error_message.reset();
  clear_all_queues();
}

}  // namespace tau::agent
