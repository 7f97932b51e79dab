#include "agent/tool_batch.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "ai/tool_arguments.h"
#include "base/clock.h"

namespace tau::agent {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kAborted = "Operation aborted";

struct Outcome {
  ToolResult result;
  bool is_error = false;
};

Outcome failed(std::string text) {
  return {text_result(std::move(text)), true};
}

/// Text of whatever was thrown (AG-38, AG-84).
std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown failure";
  }
}

AgentMessage result_message(const ai::ToolCall& call, const Outcome& outcome) {
  ai::ToolResultMessage message;
  message.tool_call_id = call.id;
  message.tool_name = call.name;
  message.content = outcome.result.content;
  message.details = outcome.result.details;
  message.usage = outcome.result.usage;
  message.added_tool_names = outcome.result.added_tool_names;
  message.is_error = outcome.is_error;
  message.timestamp = now_milliseconds();
  return message;
}

/// What running tools share with the batch. It outlives the batch when a tool had to be given up.
struct Running {
  enum class Phase { kTool, kHook, kOver };

  struct Item {
    std::size_t index;
    std::variant<ToolResult, Outcome> what;  // an update, or the end
  };

  Running(asio::any_io_executor e, std::size_t calls)
      : executor(std::move(e)), wake(executor), phases(calls, Phase::kTool) {}

  void update(std::size_t index, ToolResult partial) {
    if (phases[index] == Phase::kTool) push(index, std::move(partial));
  }

  void end(std::size_t index, Outcome outcome) {
    phases[index] = Phase::kOver;
    push(index, std::move(outcome));
  }

  asio::any_io_executor executor;
  asio::steady_timer wake;  // the batch waits on it for the next item
  std::deque<Item> items;
  std::vector<Phase> phases;  // of each call; kOver also when its tool was given up

 private:
  void push(std::size_t index, std::variant<ToolResult, Outcome> what) {
    items.push_back({index, std::move(what)});
    wake.cancel();
  }
};

/// The tool alone: everything that it can still use after it was given up is in here.
asio::awaitable<Outcome> execute(std::shared_ptr<Running> running, std::size_t index, AgentTool tool, std::string id,
                                 json::object arguments, std::stop_token stop) {
  std::exception_ptr thrown;
  Outcome outcome;
  try {
    ToolUpdate update = [running, index](ToolResult partial) {
      asio::dispatch(running->executor, [running, index, partial = std::move(partial)]() mutable {
        running->update(index, std::move(partial));
      });
    };
    outcome.result = co_await tool.execute(std::move(id), std::move(arguments), std::move(stop), std::move(update));
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) outcome = failed(text_of(thrown));
  co_return outcome;
}

class Batch {
 public:
  Batch(AgentMessage reply, const AgentContext& context, const LoopConfig& config, AgentEventSink sink,
        std::stop_token stop, asio::any_io_executor executor)
      : reply_(std::move(reply)),
        context_(context),
        config_(config),
        sink_(std::move(sink)),
        stop_(std::move(stop)),
        executor_(std::move(executor)) {
    for (const ai::ToolCall* call : ai::tool_calls_of(*reply_.assistant()))
      calls_.push_back({call, {}, {}, {}});
    running_ = std::make_shared<Running>(executor_, calls_.size());
  }

  asio::awaitable<BatchResult> run() {
    // Tools get a token of the batch's own: it is also requested when a listener fails, so that they can be joined.
    std::stop_callback forward(stop_, [this] { tools_stop_.request_stop(); });
    std::stop_callback wake(tools_stop_.get_token(), [running = running_] {
      asio::post(running->executor, [running] { running->wake.cancel(); });
    });

    std::exception_ptr failure;
    try {
      if (is_sequential()) {
        co_await run_sequentially();
      } else {
        co_await run_in_parallel();
      }
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      tools_stop_.request_stop();
      co_await join();
      std::rethrow_exception(failure);
    }
    co_return finish();
  }

 private:
  struct Call {
    const ai::ToolCall* call;
    const AgentTool* tool;
    json::object arguments;
    std::optional<Outcome> outcome;
    bool started = false;  // its body runs, or ran
  };

  bool is_sequential() const {
    if (config_.tool_execution == ToolExecutionMode::kSequential) return true;
    return std::any_of(calls_.begin(), calls_.end(), [this](const Call& c) {
      const AgentTool* tool = find_tool(c.call->name);
      return tool != nullptr && tool->execution_mode == ToolExecutionMode::kSequential;
    });
  }

  const AgentTool* find_tool(const std::string& name) const {
    const auto it = std::find_if(context_.tools.begin(), context_.tools.end(),
                                 [&](const AgentTool& tool) { return tool.declaration.name == name; });
    return it != context_.tools.end() ? &*it : nullptr;
  }

  asio::awaitable<void> run_sequentially() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      co_await begin(i);
      if (!calls_[i].outcome) {
        start(i);
        co_await pump();
      } else {
        co_await end(i);
      }
      co_await deliver_result(i);
      if (stop_.stop_requested()) break;
    }
    while (begun_ < calls_.size()) {
      co_await refuse_next();
      co_await deliver_result(begun_ - 1);
    }
  }

  asio::awaitable<void> run_in_parallel() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      co_await begin(i);
      if (calls_[i].outcome) co_await end(i);
      if (stop_.stop_requested()) break;
    }
    for (std::size_t i = 0; i < begun_; ++i) {
      if (calls_[i].outcome) continue;
      if (stop_.stop_requested()) {
        calls_[i].outcome = failed(std::string(kAborted));
        co_await end(i);
      } else {
        start(i);
      }
    }
    co_await pump();
    while (begun_ < calls_.size())
      co_await refuse_next();
    for (std::size_t i = 0; i < calls_.size(); ++i)
      co_await deliver_result(i);
  }

  /// A call that an abort kept from beginning has its events and its result all the same (FF-17).
  asio::awaitable<void> refuse_next() {
    const std::size_t i = begun_++;
    co_await announce(i);
    calls_[i].outcome = failed(std::string(kAborted));
    co_await end(i);
  }

  asio::awaitable<void> announce(std::size_t i) {
    const ai::ToolCall& call = *calls_[i].call;
    AgentEvent event = ToolExecutionStart{call.id, call.name, call.arguments};
    co_await deliver(sink_, std::move(event));
  }

  /// Everything before the tool runs (AG section 4.2). An outcome means that it will not run.
  asio::awaitable<void> begin(std::size_t i) {
    begun_ = i + 1;
    co_await announce(i);
    Call& c = calls_[i];
    c.tool = find_tool(c.call->name);
    if (c.tool == nullptr) {
      c.outcome = failed(fmt::format("Tool {} not found", c.call->name));
      co_return;
    }
    if (c.call->malformed_arguments) {  // FF-19
      c.outcome =
          failed(fmt::format("The arguments of {} are not valid JSON, so it was not run. Send the call again "
                             "with valid JSON.\n\nReceived arguments:\n{}",
                             c.call->name, *c.call->malformed_arguments));
      co_return;
    }
    json::value arguments = c.call->arguments;
    if (c.tool->prepare_arguments) {
      try {
        arguments = c.tool->prepare_arguments(std::move(arguments));
      } catch (...) {
        c.outcome = failed(text_of(std::current_exception()));
        co_return;
      }
    }
    auto valid = ai::validate_tool_arguments(c.tool->declaration, arguments);
    if (!valid) {
      c.outcome = failed(std::move(valid.error()));
      co_return;
    }
    c.arguments = *std::move(valid);
    if (config_.before_tool_call) co_await ask_before(c);
    if (!c.outcome && stop_.stop_requested()) c.outcome = failed(std::string(kAborted));
  }

  asio::awaitable<void> ask_before(Call& c) {
    std::exception_ptr thrown;
    BeforeToolCall answer;
    try {
      const ToolCallInfo info{reply_, *c.call, c.arguments, context_};
      answer = co_await config_.before_tool_call(info, stop_);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) {
      c.outcome = failed(text_of(thrown));
    } else if (stop_.stop_requested()) {  // AG-37: an abort comes before the block
      c.outcome = failed(std::string(kAborted));
    } else if (answer.block) {
      c.outcome = failed(answer.reason.empty() ? "Tool execution was blocked" : answer.reason);
      c.outcome->result.terminate = answer.terminate;
    } else if (answer.arguments) {
      c.arguments = *std::move(answer.arguments);
    }
  }

  void start(std::size_t i) {
    Call& c = calls_[i];
    c.started = true;
    ++unfinished_;
    asio::co_spawn(executor_, run_call(this, running_, i, *c.tool, c.call->id, c.arguments, tools_stop_.get_token()),
                   asio::detached);
  }

  /// The tool, then the hook on its result. `batch` is gone when the tool ends after it was given up; it is there until
  /// the end otherwise.
  static asio::awaitable<void> run_call(Batch* batch, std::shared_ptr<Running> running, std::size_t i, AgentTool tool,
                                        std::string id, json::object arguments, std::stop_token stop) {
    Outcome outcome =
        co_await execute(running, i, std::move(tool), std::move(id), std::move(arguments), std::move(stop));
    if (running->phases[i] == Running::Phase::kOver) co_return;
    running->phases[i] = Running::Phase::kHook;
    // All tools of a batch are started before the first result is looked at.
    co_await asio::post(running->executor, asio::use_awaitable);
    Outcome changed = co_await batch->ask_after(i, std::move(outcome));
    running->end(i, std::move(changed));
  }

  /// Delivers updates and ends in the order in which they come, until no started call is unfinished.
  asio::awaitable<void> pump() {
    while (unfinished_ > 0) {
      co_await wait_for_item();
      if (running_->items.empty()) {
        co_await give_up_overdue();
        continue;
      }
      Running::Item item = std::move(running_->items.front());
      running_->items.pop_front();
      const ai::ToolCall& call = *calls_[item.index].call;
      if (auto* partial = std::get_if<ToolResult>(&item.what)) {
        AgentEvent event = ToolExecutionUpdate{call.id, call.name, call.arguments, std::move(*partial)};
        co_await deliver(sink_, std::move(event));
      } else {
        --unfinished_;
        calls_[item.index].outcome = std::get<Outcome>(std::move(item.what));
        co_await end(item.index);
      }
    }
  }

  /// Returns when there is an item, or when a tool is overdue after an abort.
  asio::awaitable<void> wait_for_item() {
    while (running_->items.empty()) {
      const Clock::time_point deadline = next_deadline();
      if (deadline <= Clock::now()) co_return;
      running_->wake.expires_at(deadline);
      boost::system::error_code ignored;
      co_await running_->wake.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

  Clock::time_point deadline_of(std::size_t i) const { return stopped_at_ + calls_[i].tool->stop_grace; }

  /// A hook is never given up: it uses the batch.
  bool is_in_tool(std::size_t i) const { return calls_[i].started && running_->phases[i] == Running::Phase::kTool; }

  Clock::time_point next_deadline() {
    if (!tools_stop_.stop_requested()) return Clock::time_point::max();
    if (stopped_at_ == Clock::time_point{}) stopped_at_ = Clock::now();
    Clock::time_point next = Clock::time_point::max();
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (is_in_tool(i)) next = std::min(next, deadline_of(i));
    }
    return next;
  }

  /// Takes the calls whose tool did not stop in time out of the running ones and returns them. Their coroutines go on,
  /// on state of their own; what they report is dropped.
  std::vector<std::size_t> drop_overdue() {
    std::vector<std::size_t> overdue;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (!is_in_tool(i) || deadline_of(i) > Clock::now()) continue;
      running_->phases[i] = Running::Phase::kOver;
      --unfinished_;
      overdue.push_back(i);
    }
    return overdue;
  }

  asio::awaitable<void> give_up_overdue() {
    const std::vector<std::size_t> overdue = drop_overdue();
    for (const std::size_t i : overdue) {
      calls_[i].outcome = failed(
          fmt::format("The tool {} did not stop within {} ms after the abort. It was given up; its result is unknown.",
                      calls_[i].call->name, calls_[i].tool->stop_grace.count()));
      co_await end(i);
    }
  }

  asio::awaitable<Outcome> ask_after(std::size_t i, Outcome outcome) {
    if (!config_.after_tool_call) co_return outcome;
    const Call& c = calls_[i];
    std::exception_ptr thrown;
    AfterToolCall change;
    try {
      const ToolCallInfo info{reply_, *c.call, c.arguments, context_};
      change = co_await config_.after_tool_call(info, outcome.result, outcome.is_error, stop_);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) co_return failed(text_of(thrown));
    if (change.content) outcome.result.content = *std::move(change.content);
    if (change.details) outcome.result.details = *std::move(change.details);
    if (change.usage) outcome.result.usage = *std::move(change.usage);
    if (change.terminate) outcome.result.terminate = *change.terminate;
    if (change.is_error) outcome.is_error = *change.is_error;
    co_return outcome;
  }

  asio::awaitable<void> end(std::size_t i) {
    const Call& c = calls_[i];
    AgentEvent event = ToolExecutionEnd{c.call->id, c.call->name, c.outcome->result, c.outcome->is_error};
    co_await deliver(sink_, std::move(event));
  }

  asio::awaitable<void> deliver_result(std::size_t i) {
    AgentMessage result = result_message(*calls_[i].call, *calls_[i].outcome);
    AgentMessage settled = co_await deliver_message(config_, sink_, std::move(result));
    results_.push_back(std::move(settled));
  }

  /// After a failure: waits for what still runs, without delivering anything.
  asio::awaitable<void> join() {
    while (unfinished_ > 0) {
      co_await wait_for_item();
      if (running_->items.empty()) {
        drop_overdue();
        continue;
      }
      if (std::holds_alternative<Outcome>(running_->items.front().what)) --unfinished_;
      running_->items.pop_front();
    }
  }

  BatchResult finish() {
    const bool terminate = !calls_.empty() && std::all_of(calls_.begin(), calls_.end(),
                                                          [](const Call& c) { return c.outcome->result.terminate; });
    return {std::move(results_), terminate};
  }

  AgentMessage reply_;
  const AgentContext& context_;
  const LoopConfig& config_;
  AgentEventSink sink_;
  std::stop_token stop_;
  std::stop_source tools_stop_;
  asio::any_io_executor executor_;
  std::shared_ptr<Running> running_;
  std::vector<Call> calls_;
  std::vector<AgentMessage> results_;
  std::size_t begun_ = 0;       // calls that were announced
  std::size_t unfinished_ = 0;  // calls whose body runs
  Clock::time_point stopped_at_{};
};

}  // namespace

asio::awaitable<void> deliver(const AgentEventSink& sink, AgentEvent event) {
  Completion wait = sink(event);
  if (wait) co_await std::move(*wait);
}

asio::awaitable<AgentMessage> deliver_message(const LoopConfig& config, const AgentEventSink& sink,
                                              AgentMessage message) {
  AgentEvent message_started = MessageStart{message};
  co_await deliver(sink, std::move(message_started));
  if (config.settle_message) {
    AgentMessage settled = co_await config.settle_message(message);
    if (settled.role() == message.role()) message = std::move(settled);
  }
  AgentEvent message_ended = MessageEnd{message};
  co_await deliver(sink, std::move(message_ended));
  co_return message;
}

asio::awaitable<BatchResult> run_tool_batch(AgentMessage reply, const AgentContext& context, const LoopConfig& config,
                                            AgentEventSink sink, std::stop_token stop) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  Batch batch(std::move(reply), context, config, std::move(sink), std::move(stop), executor);
  BatchResult result = co_await batch.run();
  co_return result;
}

asio::awaitable<BatchResult> refuse_cut_calls(AgentMessage reply, const LoopConfig& config, AgentEventSink sink) {
  BatchResult batch;
  for (const ai::ToolCall* call : ai::tool_calls_of(*reply.assistant())) {
    AgentEvent tool_started = ToolExecutionStart{call->id, call->name, call->arguments};
    co_await deliver(sink, std::move(tool_started));
    const Outcome outcome = failed(
        fmt::format("{} was not run: the answer reached the output limit, so its arguments may be cut off. Send the "
                    "complete call again, in smaller parts if need be.",
                    call->name));
    AgentEvent tool_ended = ToolExecutionEnd{call->id, call->name, outcome.result, true};
    co_await deliver(sink, std::move(tool_ended));
    AgentMessage result = result_message(*call, outcome);
    AgentMessage settled = co_await deliver_message(config, sink, std::move(result));
    batch.messages.push_back(std::move(settled));
  }
  co_return batch;
}

}  // namespace tau::agent
