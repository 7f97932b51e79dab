#include "agent/loop.h"

#include <stdexcept>
#include <utility>

#include "agent/check_transcript.h"
#include "agent/default_stream.h"
#include "agent/tool_batch.h"
#include "base/clock.h"

namespace tau::agent {

namespace {

/// The reply of a call that is not made because the run was aborted (FF-17).
ai::AssistantMessage aborted_reply(const ai::Model& model) {
  ai::AssistantMessage reply;
  reply.api = model.api;
  reply.provider = model.provider;
  reply.model = model.id;
  reply.stop_reason = ai::StopReason::kAborted;
  reply.error_message = "Request was aborted";
  reply.timestamp = now_milliseconds();
  return reply;
}

class Run {
 public:
  Run(AgentContext context, LoopConfig config, AgentEventSink sink, std::stop_token stop)
      : context_(std::move(context)),
        config_(std::move(config)),
        sink_(std::move(sink)),
        stop_(std::move(stop)),
        known_(context_.messages.size()) {}

  asio::awaitable<std::vector<AgentMessage>> run(std::vector<AgentMessage> prompts) {
    AgentEvent started = AgentStart{};
    co_await deliver(sink_, std::move(started));
    co_await start_turn();
    for (AgentMessage& prompt : prompts)
      co_await take(std::move(prompt));

    // Outer loop: follow-ups start again what had come to an end.
    std::vector<AgentMessage> pending = co_await steering();
    bool first_turn = true;
    while (true) {
      // Inner loop: one turn a round, as long as there are tool results or steering messages to answer.
      bool more = true;
      while (more || !pending.empty()) {
        if (!first_turn) {
          co_await prepare_turn();
          if (pending.empty()) pending = co_await steering();  // AG-23
          co_await start_turn();
        }
        first_turn = false;
        for (AgentMessage& message : pending)
          co_await take(std::move(message));
        pending.clear();

        const AgentMessage reply = co_await ask_model();
        const ai::AssistantMessage& answer = *reply.assistant();
        if (failed(answer)) {
          AgentEvent turn_ended = TurnEnd{reply, {}};
          co_await deliver(sink_, std::move(turn_ended));
          co_return co_await finish();
        }
        BatchResult batch = co_await run_tools(reply);
        more = !batch.messages.empty() && !batch.terminate;
        const bool ran_tools = !batch.messages.empty();
        turn_.emplace(Turn{reply, std::move(batch.messages)});
        AgentEvent turn_ended = TurnEnd{reply, turn_->tool_results};
        co_await deliver(sink_, std::move(turn_ended));

        if (stop_.stop_requested()) {
          if (ran_tools) co_await report_abort();
          co_return co_await finish();
        }
        const bool stop_here = co_await should_stop();
        if (stop_here) co_return co_await finish();
        pending = co_await steering();
      }
      pending = co_await follow_ups();
      if (pending.empty()) co_return co_await finish();
    }
  }

 private:
  struct Turn {
    AgentMessage reply;
    std::vector<AgentMessage> tool_results;
  };

  static bool failed(const ai::AssistantMessage& reply) {
    return reply.stop_reason == ai::StopReason::kError || reply.stop_reason == ai::StopReason::kAborted;
  }

  asio::awaitable<void> start_turn() {
    AgentEvent turn_started = TurnStart{};
    co_await deliver(sink_, std::move(turn_started));
  }

  TurnInfo turn_info() const { return {turn_->reply, turn_->tool_results, context_, new_messages_}; }

  asio::awaitable<std::vector<AgentMessage>> finish() {
    check_run("at the end of a run", context_.messages, known_);
    AgentEvent ended = AgentEnd{new_messages_};
    co_await deliver(sink_, std::move(ended));
    co_return std::move(new_messages_);
  }

  /// A message enters the conversation: events first, then the transcript (AG-21).
  asio::awaitable<void> take(AgentMessage message) {
    AgentMessage settled = co_await deliver_message(config_, sink_, std::move(message));
    add(std::move(settled));
  }

  void add(AgentMessage message) {
    context_.messages.push_back(message);
    new_messages_.push_back(std::move(message));
  }

  // After an abort the queues keep what is in them, also when it came while a hook ran (FF-17).
  asio::awaitable<std::vector<AgentMessage>> steering() {
    if (!config_.get_steering_messages || stop_.stop_requested()) co_return std::vector<AgentMessage>{};
    std::vector<AgentMessage> messages = co_await config_.get_steering_messages();
    co_return messages;
  }

  asio::awaitable<std::vector<AgentMessage>> follow_ups() {
    if (!config_.get_follow_up_messages || stop_.stop_requested()) co_return std::vector<AgentMessage>{};
    std::vector<AgentMessage> messages = co_await config_.get_follow_up_messages();
    co_return messages;
  }

  asio::awaitable<bool> should_stop() {
    if (!config_.should_stop_after_turn) co_return false;
    const bool stop = co_await config_.should_stop_after_turn(turn_info(), stop_);
    co_return stop;
  }

  asio::awaitable<void> prepare_turn() {
    if (!config_.prepare_next_turn) co_return;
    NextTurn next = co_await config_.prepare_next_turn(turn_info(), stop_);
    if (next.context) {
      context_ = *std::move(next.context);
      known_ = context_.messages.size();
    }
    if (next.model) config_.model = *std::move(next.model);
    if (next.thinking_level) set_reasoning(*next.thinking_level);
  }

  void set_reasoning(ai::ThinkingLevel level) {
    if (level == ai::ThinkingLevel::kOff) {
      config_.options.reasoning.reset();
    } else {
      config_.options.reasoning = level;
    }
  }

  /// The two stages and the request (S6). The transcript is not changed by them.
  asio::awaitable<ai::Context> model_context() {
    check_run("before a model call", context_.messages, known_);
    ai::Context context;
    if (!config_.transform_context && !config_.convert_to_llm) {
      context.messages = standard_messages(context_.messages);
    } else {
      std::vector<AgentMessage> messages = context_.messages;
      if (config_.transform_context) messages = co_await config_.transform_context(std::move(messages), stop_);
      if (config_.convert_to_llm) {
        context.messages = co_await config_.convert_to_llm(std::move(messages));
      } else {
        context.messages = standard_messages(messages);
      }
    }
    if (!context_.system_prompt.empty()) context.system_prompt = context_.system_prompt;
    context.tools.reserve(context_.tools.size());
    for (const AgentTool& tool : context_.tools)
      context.tools.push_back(tool.declaration);
    co_return context;
  }

  /// One model call: returns the settled reply, which is in the transcript then.
  asio::awaitable<AgentMessage> ask_model() {
    // The first call of a run is made even so: the provider answers that it was aborted, and hooks see one call a turn.
    if (turn_ && stop_.stop_requested()) {
      AgentMessage aborted(aborted_reply(config_.model));
      AgentMessage reply = co_await deliver_message(config_, sink_, std::move(aborted));
      add(reply);
      co_return reply;
    }
    if (!config_.stream) config_.stream = default_stream_function();
    ai::Context context = co_await model_context();
    ai::StreamOptions options = config_.options;
    if (config_.get_api_key) {
      std::optional<std::string> key = co_await config_.get_api_key(config_.model.provider);
      if (key && !key->empty()) options.api_key = std::move(key);
    }
    bool started = false;
    ai::EventSink sink = [this, &started](const ai::StreamEvent& event) -> Completion {
      if (std::holds_alternative<ai::StreamStart>(event.what)) {
        started = true;
        AgentEvent message_started = MessageStart{AgentMessage(event.partial)};
        return deliver(sink_, std::move(message_started));
      }
      const bool terminal =
          std::holds_alternative<ai::StreamDone>(event.what) || std::holds_alternative<ai::StreamError>(event.what);
      if (!started || terminal) return std::nullopt;  // AG-31; the end is delivered with the settled message
      return deliver_update(event);
    };
    ai::AssistantMessage settled =
        co_await config_.stream(config_.model, std::move(context), std::move(options), std::move(sink), stop_);
    if (settled.stop_reason == ai::StopReason::kPending) {  // IV-7: a partial is never stored
      settled.stop_reason = ai::StopReason::kError;
      settled.error_message = "The provider's stream ended without a result";
    }
    AgentMessage reply(std::move(settled));
    if (!started) {
      AgentEvent message_started = MessageStart{reply};
      co_await deliver(sink_, std::move(message_started));
    }
    if (config_.settle_message) {
      AgentMessage replaced = co_await config_.settle_message(reply);
      const ai::AssistantMessage* answer = replaced.assistant();
      if (answer != nullptr && answer->stop_reason != ai::StopReason::kPending) reply = std::move(replaced);
    }
    AgentEvent message_ended = MessageEnd{reply};
    co_await deliver(sink_, std::move(message_ended));
    add(reply);
    co_return reply;
  }

  /// Makes no coroutine of its own: 500,000 of these come in one long answer. The event lives until the next one.
  Completion deliver_update(const ai::StreamEvent& event) {
    update_.emplace(MessageUpdate{event.partial, event});
    return sink_(*update_);
  }

  asio::awaitable<BatchResult> run_tools(AgentMessage reply) {
    const ai::AssistantMessage& answer = *reply.assistant();
    BatchResult batch;
    if (ai::tool_calls_of(answer).empty()) co_return batch;
    if (answer.stop_reason == ai::StopReason::kLength) {
      batch = co_await refuse_cut_calls(reply, config_, sink_);
    } else {
      batch = co_await run_tool_batch(reply, context_, config_, sink_, stop_);
    }
    for (const AgentMessage& message : batch.messages)
      add(message);
    co_return batch;
  }

  /// After an aborted batch: a turn of its own says that the run was aborted, without a model call (FF-17).
  asio::awaitable<void> report_abort() {
    co_await start_turn();
    AgentMessage reply = co_await ask_model();
    AgentEvent turn_ended = TurnEnd{reply, {}};
    co_await deliver(sink_, std::move(turn_ended));
  }

  AgentContext context_;
  LoopConfig config_;
  AgentEventSink sink_;
  std::stop_token stop_;
  std::size_t known_;  // messages of context_ that came from the caller (check_run)
  std::vector<AgentMessage> new_messages_;
  std::optional<Turn> turn_;          // the last finished one
  std::optional<AgentEvent> update_;  // being delivered
};

}  // namespace

asio::awaitable<std::vector<AgentMessage>> run_loop(std::vector<AgentMessage> prompts, AgentContext context,
                                                    LoopConfig config, AgentEventSink sink, std::stop_token stop) {
  Run run(std::move(context), std::move(config), std::move(sink), std::move(stop));
  std::vector<AgentMessage> messages = co_await run.run(std::move(prompts));
  co_return messages;
}

asio::awaitable<std::vector<AgentMessage>> continue_loop(AgentContext context, LoopConfig config, AgentEventSink sink,
                                                         std::stop_token stop) {
  if (context.messages.empty()) throw std::invalid_argument("there is nothing to continue: the transcript is empty");
  if (context.messages.back().assistant() != nullptr) {
    throw std::invalid_argument("there is nothing to continue: the last message is a reply");
  }
  Run run(std::move(context), std::move(config), std::move(sink), std::move(stop));
  std::vector<AgentMessage> messages = co_await run.run({});
  co_return messages;
}

}  // namespace tau::agent
