#include "coding/agent_session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "ai/error_classification.h"
#include "base/utf8.h"
#include "coding/compaction/context_size.h"
#include "coding/roles/branch_summary.h"
#include "coding/roles/compaction_summary.h"
#include "coding/roles/convert_to_llm.h"
#include "coding/user_message.h"

namespace tau::coding {

namespace {

/// Removes the first entry that equals the text; true when there was one.
bool remove_first(std::vector<std::string>& texts, const std::string& text) {
  const auto it = std::find(texts.begin(), texts.end(), text);
  if (it == texts.end()) return false;
  texts.erase(it);
  return true;
}

asio::awaitable<std::vector<ai::MessageRef>> convert(std::vector<agent::AgentMessage> messages, bool block_images) {
  co_return convert_to_llm(messages, block_images);
}

}  // namespace

AgentSession::AgentSession(asio::any_io_executor executor, AgentSessionOptions options)
    : executor_(std::move(executor)), options_(std::move(options)), retry_timer_(executor_), idle_(executor_) {
  idle_.expires_at(std::chrono::steady_clock::time_point::max());
  const SessionContext context = options_.session->context();
  agent_ = make_agent(context);
  record_start(context);
}

std::unique_ptr<agent::Agent> AgentSession::make_agent(const SessionContext& context) {
  agent::AgentOptions agent_options;
  agent_options.steering_mode = options_.steering_mode;
  agent_options.follow_up_mode = options_.follow_up_mode;
  agent_options.initial_state.system_prompt = options_.system_prompt;
  agent_options.initial_state.model = options_.model;
  agent_options.initial_state.thinking_level = options_.thinking_level;
  agent_options.initial_state.tools = options_.tools;
  agent_options.initial_state.messages = context.messages;

  agent::LoopConfig& loop = agent_options.loop;
  loop.options = options_.request_options;
  loop.options.session_id = options_.session->id();
  loop.stream = [this](ai::Model model, ai::Context request, ai::StreamOptions stream_options, ai::EventSink sink,
                       std::stop_token stop) {
    return call_model(std::move(model), std::move(request), std::move(stream_options), std::move(sink),
                      std::move(stop));
  };
  loop.convert_to_llm = [this](std::vector<agent::AgentMessage> messages) {
    return convert(std::move(messages), options_.block_images && options_.block_images());
  };
  loop.transform_context = options_.hooks.transform_context;
  loop.settle_message = options_.hooks.settle_message;
  loop.before_tool_call = options_.hooks.before_tool_call;
  loop.after_tool_call = options_.hooks.after_tool_call;
  // What was changed during a run holds from the next turn on (SE-26).
  loop.prepare_next_turn = [this](agent::TurnInfo turn, std::stop_token) {
    std::vector<agent::AgentMessage> replaced_context;
    if (context_changed_) replaced_context = turn.context.messages;
    return next_turn(context_tokens(turn.context.messages, UsageScope::kSinceCompaction), std::move(replaced_context));
  };
  auto made = std::make_unique<agent::Agent>(executor_, std::move(agent_options));
  made->subscribe([this](const agent::AgentEvent& event, std::stop_token) -> agent::Completion {
    on_agent_event(event);
    return std::nullopt;
  });
  return made;
}

AgentSession::~AgentSession() {
  abort();
  abort_bash();
}

/// What a new session begins with (SES-56). Nothing goes to disk before the first prompt.
void AgentSession::record_start(const SessionContext& context) {
  const bool is_new = context.messages.empty();
  if (is_new && !options_.model.id.empty()) {
    report(options_.session->append_model_change({options_.model.provider, options_.model.id}));
  }
  if (is_new || !context.has_thinking_level) {
    report(options_.session->append_thinking_level_change(options_.thinking_level));
  }
}

/// `tokens`: estimate of what the loop works on. Compacts when that nears the window, between the results and the next
/// request (SE-37, FF-40).
asio::awaitable<agent::NextTurn> AgentSession::next_turn(double tokens,
                                                         std::vector<agent::AgentMessage> loop_messages) {
  agent::NextTurn next;
  const bool changed = std::exchange(context_changed_, false);
  const bool full = options_.compaction.enabled && !abort_requested_ && over_threshold(tokens);
  if (full) co_await compact_automatically(CompactionReason::kThreshold, false);
  const agent::AgentState& state = agent_->state();
  if (full || changed) {
    next.context =
        agent::AgentContext{state.system_prompt, full ? state.messages : std::move(loop_messages), state.tools};
  }
  next.model = state.model;
  next.thinking_level = state.thinking_level;
  co_return next;
}

asio::awaitable<std::expected<void, Error>> AgentSession::prompt(std::string text, std::vector<ai::ImageContent> images,
                                                                 PromptOptions options) {
  if (manual_compaction_) {
    co_return std::unexpected(error("A compaction is at work: wait until it has ended, then send the prompt again"));
  }
  if (running_) {
    if (!options.when_running) {
      co_return std::unexpected(error("The agent is at work already: send the message as steering or as follow-up"));
    }
    if (options.on_accepted) options.on_accepted();
    if (*options.when_running == QueueAs::kSteering) {
      steer(std::move(text), std::move(images));
    } else {
      follow_up(std::move(text), std::move(images));
    }
    co_return std::expected<void, Error>{};
  }
  flush_bash_records();
  flush_custom_messages();
  start_run();
  std::vector<agent::AgentMessage> messages;
  std::exception_ptr failure;
  try {
    const std::vector<agent::AgentMessage>& live = agent_->state().messages;
    const auto last =
        std::find_if(live.rbegin(), live.rend(), [](const agent::AgentMessage& m) { return m.assistant() != nullptr; });
    if (last != live.rend()) {
      agent::AgentMessage reply = *last;
      co_await check_compaction(std::move(reply), CheckedWhen::kBeforePrompt);
    }
    std::vector<agent::AgentMessage> added = std::exchange(next_prompt_, {});
    if (options_.hooks.before_run) {
      SessionHooks::RunStart start = co_await options_.hooks.before_run(text, images);
      std::move(start.messages.begin(), start.messages.end(), std::back_inserter(added));
      if (start.system_prompt) {
        prompt_of_run_ = std::move(start.system_prompt);
        agent_->state().system_prompt = *prompt_of_run_;
      }
    }
    messages.push_back(user_message(std::move(text), std::move(images)));
    std::move(added.begin(), added.end(), std::back_inserter(messages));
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    settle();
    std::rethrow_exception(failure);
  }
  if (options.on_accepted) options.on_accepted();
  co_await run(std::move(messages));
  co_return std::expected<void, Error>{};
}

void AgentSession::start_run() {
  running_ = true;
  abort_requested_ = false;
  settled_reply_.reset();
  compaction_stalled_ = false;
  completed_since_compaction_ = true;
  stall_reported_ = false;
}

/// The one place where a run ends: what waited for it is stored, in the order in which it came about (SE-8, SE-9).
void AgentSession::settle() {
  prompt_of_run_.reset();
  agent_->state().system_prompt = options_.system_prompt;
  flush_bash_records();
  flush_custom_messages();
  running_ = false;
  emit(AgentSettled{});
  idle_.cancel();
}

/// After start_run().
asio::awaitable<void> AgentSession::run(std::vector<agent::AgentMessage> messages) {
  std::exception_ptr failure;
  try {
    abort_requested_ = false;
    co_await agent_->prompt(std::move(messages));
    while (true) {
      const bool more = co_await wants_continuation();
      if (!more) break;
      abort_requested_ = false;
      co_await agent_->continue_run();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  settle();
  if (failure) std::rethrow_exception(failure);
}

/// Whether the run goes on by itself: a retry, a compaction after which the request is made again, or messages that
/// still wait (agent.md 10.5).
asio::awaitable<bool> AgentSession::wants_continuation() {
  const std::optional<agent::AgentMessage> settled = std::exchange(settled_reply_, std::nullopt);
  if (!settled) co_return false;
  const ai::AssistantMessage& reply = *settled->assistant();
  if (is_retryable(reply) && options_.retry.enabled && retry_attempt_ < options_.retry.max_retries) {
    const bool again = co_await wait_for_retry(reply);
    if (again) co_return true;
  } else if (reply.stop_reason == ai::StopReason::kError && retry_attempt_ > 0) {
    emit(AutoRetryEnd{false, std::exchange(retry_attempt_, 0), reply.error_message});
  }
  if (!abort_requested_) {
    const bool again = co_await check_compaction(*settled, CheckedWhen::kAfterRun);
    if (again) co_return true;
  }
  co_return agent_->has_queued_messages();
}

/// The failed reply leaves the live transcript (it stays on disk); after a pause the same request is made again
/// (SE-28).
asio::awaitable<bool> AgentSession::wait_for_retry(const ai::AssistantMessage& reply) {
  ++retry_attempt_;
  const auto delay = options_.retry.base_delay * (std::int64_t{1} << (retry_attempt_ - 1));
  emit(AutoRetryStart{retry_attempt_, options_.retry.max_retries, delay.count(), reply.error_message.value_or("")});
  drop_last_reply();
  retry_pause_ = true;
  retry_cancelled_ = false;
  // A listener may have aborted already.
  if (!abort_requested_) {
    retry_timer_.expires_after(delay);
    boost::system::error_code ignored;
    co_await retry_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  retry_pause_ = false;
  if (!abort_requested_ && !retry_cancelled_) co_return true;
  emit(AutoRetryEnd{false, std::exchange(retry_attempt_, 0), "Retry cancelled"});
  co_return false;
}

bool AgentSession::is_retryable(const ai::AssistantMessage& reply) const {
  return reply.stop_reason == ai::StopReason::kError && ai::is_retryable(reply);
}

bool AgentSession::will_retry(const std::vector<agent::AgentMessage>& messages) const {
  if (!options_.retry.enabled || retry_attempt_ >= options_.retry.max_retries) return false;
  const auto last = std::find_if(messages.rbegin(), messages.rend(),
                                 [](const agent::AgentMessage& m) { return m.assistant() != nullptr; });
  return last != messages.rend() && is_retryable(*last->assistant());
}

/// Order within one event (agent.md 10.1): queues, listeners, disk.
void AgentSession::on_agent_event(const agent::AgentEvent& event) {
  before_listeners(event);
  AgentActivity activity{event};
  if (const auto* end = std::get_if<agent::AgentEnd>(&event)) activity.will_retry = will_retry(end->messages);
  emit(activity);
  after_listeners(event);
}

void AgentSession::before_listeners(const agent::AgentEvent& event) {
  const auto* start = std::get_if<agent::MessageStart>(&event);
  const ai::UserMessage* user = start != nullptr ? start->message.user() : nullptr;
  if (user == nullptr) return;
  overflow_recovered_ = false;  // SE-34
  const std::string text = ai::text_of(user->content);
  if (remove_first(queues_.steering, text) || remove_first(queues_.follow_up, text)) emit_queues();
}

void AgentSession::after_listeners(const agent::AgentEvent& event) {
  if (std::holds_alternative<agent::TurnEnd>(event)) flush_custom_messages();
  const auto* end = std::get_if<agent::MessageEnd>(&event);
  if (end == nullptr) return;
  persist(end->message);
  const ai::AssistantMessage* reply = end->message.assistant();
  if (reply == nullptr) return;
  settled_reply_ = end->message;
  const ai::StopReason why = reply->stop_reason;
  if (why == ai::StopReason::kStop || why == ai::StopReason::kToolUse) completed_since_compaction_ = true;
  if (why != ai::StopReason::kError && why != ai::StopReason::kLength) overflow_recovered_ = false;  // SE-34
  if (why != ai::StopReason::kError && retry_attempt_ > 0) {
    emit(AutoRetryEnd{true, std::exchange(retry_attempt_, 0), std::nullopt});
  }
}

/// Records of user commands and summaries are written by whoever makes them; all other messages here, those of roles
/// that only the embedding program knows too.
void AgentSession::persist(const agent::AgentMessage& message) {
  if (message.as<BashExecution>() != nullptr || message.as<CompactionSummary>() != nullptr ||
      message.as<BranchSummary>() != nullptr) {
    return;
  }
  report(options_.session->append_message(message));
  // The prompt is on disk before the request that answers it leaves (FF-27).
  if (message.user() != nullptr) report(options_.session->ensure_on_disk());
}

/// A failed write is told; the record itself waits and is written before the next one (FF-26).
void AgentSession::report(const std::expected<void, Error>& written) {
  if (!written) emit(PersistenceFailed{written.error().message});
  if (auto notice = options_.session->take_notice()) emit(SecondWriterNoticed{*std::move(notice)});
}

void AgentSession::emit(const SessionEvent& event) {
  // By index: a listener may subscribe or unsubscribe.
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    const SessionListener listener = listeners_[i].second;
    listener(event);
  }
}

void AgentSession::emit_queues() {
  emit(QueueUpdate{queues_.steering, queues_.follow_up});
}

void AgentSession::abort() {
  abort_requested_ = true;
  retry_timer_.cancel();
  abort_compaction();
  abort_branch_summary();
  if (agent_) agent_->abort();
}

asio::awaitable<void> AgentSession::abort_and_wait() {
  abort();
  co_await wait_for_idle();
}

asio::awaitable<void> AgentSession::wait_for_idle() {
  while (running_) {
    boost::system::error_code ignored;
    co_await idle_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

void AgentSession::abort_retry() {
  retry_cancelled_ = true;
  retry_timer_.cancel();
}

void AgentSession::abort_compaction() {
  if (compaction_stop_) compaction_stop_->request_stop();
}

void AgentSession::abort_branch_summary() {
  if (branch_stop_) branch_stop_->request_stop();
}

std::function<void()> AgentSession::subscribe(SessionListener listener) {
  const int id = next_listener_++;
  listeners_.emplace_back(id, std::move(listener));
  return [this, id] { std::erase_if(listeners_, [id](const auto& entry) { return entry.first == id; }); };
}

const ai::Model& AgentSession::model() const {
  return agent_->state().model;
}
ai::ThinkingLevel AgentSession::thinking_level() const {
  return agent_->state().thinking_level;
}
const std::vector<agent::AgentTool>& AgentSession::tools() const {
  return agent_->state().tools;
}
const std::string& AgentSession::system_prompt() const {
  return agent_->state().system_prompt;
}
const std::vector<agent::AgentMessage>& AgentSession::messages() const {
  return agent_->state().messages;
}
const ai::AssistantMessage* AgentSession::streaming_reply() const {
  return agent_->state().streaming;
}

const ai::AssistantMessage* AgentSession::last_reply() const {
  return messages().empty() ? nullptr : messages().back().assistant();
}

std::optional<std::string> AgentSession::last_reply_text() const {
  for (auto it = messages().rbegin(); it != messages().rend(); ++it) {
    const ai::AssistantMessage* reply = it->assistant();
    if (reply == nullptr || (reply->stop_reason == ai::StopReason::kAborted && reply->content.empty())) continue;
    const std::string text = ai::text_of(*reply);
    const std::string_view trimmed = utf8::trim(text);
    if (trimmed.empty()) return std::nullopt;
    return std::string(trimmed);
  }
  return std::nullopt;
}

}  // namespace tau::coding
