#include "coding/agent_session.h"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "ai/error_classification.h"
#include "ai/provider_call.h"
#include "base/clock.h"
#include "coding/roles/convert_to_llm.h"
#include "coding/roles/custom.h"

namespace tau::coding {

namespace {

std::vector<ai::UserBlock> content_of(std::string text, std::vector<ai::ImageContent> images) {
  std::vector<ai::UserBlock> content;
  content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  for (ai::ImageContent& image : images)
    content.emplace_back(std::move(image));
  return content;
}

agent::AgentMessage user_message(std::string text, std::vector<ai::ImageContent> images) {
  return ai::UserMessage{content_of(std::move(text), std::move(images)), now_milliseconds(), {}};
}

/// Removes the first entry that equals the text; true when there was one.
bool remove_first(std::vector<std::string>& texts, const std::string& text) {
  const auto it = std::find(texts.begin(), texts.end(), text);
  if (it == texts.end()) return false;
  texts.erase(it);
  return true;
}

/// The model call with the credentials of the moment. Failing to get them is an answer like any other failure.
asio::awaitable<ai::AssistantMessage> authorised_call(const AgentSessionOptions* options, ai::Model model,
                                                      ai::Context context, ai::StreamOptions request,
                                                      ai::EventSink sink, std::stop_token stop) {
  auto credentials = co_await options->credentials(model);
  if (!credentials) {
    ai::AssistantMessage refused =
        co_await ai::fail_call(std::move(model), credentials.error().message, std::move(sink));
    co_return refused;
  }
  if (credentials->api_key) request.api_key = std::move(credentials->api_key);
  ai::Headers headers = std::move(credentials->headers);
  ai::merge_headers(headers, request.headers);
  request.headers = std::move(headers);
  for (auto& [name, text] : credentials->env)
    request.env.emplace(name, std::move(text));
  if (credentials->base_url) model.base_url = *std::move(credentials->base_url);
  ai::AssistantMessage reply = co_await options->stream(std::move(model), std::move(context), std::move(request),
                                                        std::move(sink), std::move(stop));
  co_return reply;
}

asio::awaitable<std::vector<ai::MessageRef>> convert(std::vector<agent::AgentMessage> messages, bool block_images) {
  co_return convert_to_llm(messages, block_images);
}

}  // namespace

AgentSession::AgentSession(asio::any_io_executor executor, AgentSessionOptions options)
    : executor_(std::move(executor)), options_(std::move(options)), retry_timer_(executor_) {
  agent::AgentOptions agent_options;
  agent_options.steering_mode = options_.steering_mode;
  agent_options.follow_up_mode = options_.follow_up_mode;
  agent_options.initial_state.system_prompt = options_.system_prompt;
  agent_options.initial_state.model = options_.model;
  agent_options.initial_state.thinking_level = options_.thinking_level;
  agent_options.initial_state.tools = options_.tools;
  agent_options.loop.options = options_.request_options;
  agent_options.loop.options.session_id = options_.session->id();
  agent_options.loop.stream = [this](ai::Model model, ai::Context request, ai::StreamOptions stream_options,
                                     ai::EventSink sink, std::stop_token stop) {
    return authorised_call(&options_, std::move(model), std::move(request), std::move(stream_options), std::move(sink),
                           std::move(stop));
  };
  agent_options.loop.convert_to_llm = [this](std::vector<agent::AgentMessage> messages) {
    return convert(std::move(messages), options_.block_images && options_.block_images());
  };
  // Changes of model and level during a run hold from the next turn on (SE-26).
  agent_options.loop.prepare_next_turn = [this](agent::TurnInfo, std::stop_token) { return next_turn(); };
  agent_ = std::make_unique<agent::Agent>(executor_, std::move(agent_options));
  agent_->subscribe([this](const agent::AgentEvent& event, std::stop_token) -> agent::Completion {
    on_agent_event(event);
    return std::nullopt;
  });
  record_start();
}

AgentSession::~AgentSession() {
  abort();
}

/// What a new session begins with (SES-56). Nothing goes to disk before the first prompt.
void AgentSession::record_start() {
  const SessionSettings settings = options_.session->settings();
  const bool is_new = options_.session->message_count() == 0;
  if (is_new && !options_.model.id.empty()) {
    report(options_.session->append_model_change({options_.model.provider, options_.model.id}));
  }
  if (is_new || !settings.has_thinking_level) {
    report(options_.session->append_thinking_level_change(options_.thinking_level));
  }
}

/// The stored conversation is decoded when somebody needs its messages: a program that only says what session it has
/// open does not pay for it.
void AgentSession::load_messages() const {
  if (std::exchange(messages_loaded_, true)) return;
  agent_->state().messages = options_.session->context().messages;
}

asio::awaitable<agent::NextTurn> AgentSession::next_turn() {
  agent::NextTurn next;
  next.model = agent_->state().model;
  next.thinking_level = agent_->state().thinking_level;
  co_return next;
}

asio::awaitable<std::expected<void, Error>> AgentSession::prompt(std::string text,
                                                                 std::vector<ai::ImageContent> images) {
  if (running_) {
    co_return std::unexpected(error("The agent is at work already: send the message as steering or as follow-up"));
  }
  load_messages();
  flush_bash_records();
  std::vector<agent::AgentMessage> messages;
  messages.push_back(user_message(std::move(text), std::move(images)));
  co_await run(std::move(messages));
  co_return std::expected<void, Error>{};
}

asio::awaitable<void> AgentSession::run(std::vector<agent::AgentMessage> messages) {
  running_ = true;
  abort_requested_ = false;
  settled_reply_.reset();
  std::exception_ptr failure;
  try {
    co_await agent_->prompt(std::move(messages));
    while (true) {
      const bool more = co_await wants_continuation();
      if (!more) break;
      co_await agent_->continue_run();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  flush_bash_records();
  running_ = false;
  emit(AgentSettled{});
  if (failure) std::rethrow_exception(failure);
}

/// Whether the run goes on by itself: a retry, or messages that still wait (agent.md 10.5).
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
  co_return agent_->has_queued_messages();
}

/// The failed reply leaves the live transcript (it stays on disk); after a pause the same request is made again
/// (SE-28).
asio::awaitable<bool> AgentSession::wait_for_retry(const ai::AssistantMessage& reply) {
  ++retry_attempt_;
  const auto delay = options_.retry.base_delay * (std::int64_t{1} << (retry_attempt_ - 1));
  emit(AutoRetryStart{retry_attempt_, options_.retry.max_retries, delay.count(), reply.error_message.value_or("")});
  std::vector<agent::AgentMessage>& messages = agent_->state().messages;
  if (!messages.empty() && messages.back().assistant() != nullptr) messages.pop_back();
  if (!abort_requested_) {
    retry_timer_.expires_after(delay);
    boost::system::error_code ignored;
    co_await retry_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (!abort_requested_) co_return true;
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
  const std::string text = ai::text_of(user->content);
  if (remove_first(queues_.steering, text) || remove_first(queues_.follow_up, text)) emit_queues();
}

void AgentSession::after_listeners(const agent::AgentEvent& event) {
  const auto* end = std::get_if<agent::MessageEnd>(&event);
  if (end == nullptr) return;
  persist(end->message);
  const ai::AssistantMessage* reply = end->message.assistant();
  if (reply == nullptr) return;
  settled_reply_ = end->message;
  if (reply->stop_reason != ai::StopReason::kError && retry_attempt_ > 0) {
    emit(AutoRetryEnd{true, std::exchange(retry_attempt_, 0), std::nullopt});
  }
}

void AgentSession::persist(const agent::AgentMessage& message) {
  const bool standard = message.standard() != nullptr;
  if (!standard && message.as<CustomMessage>() == nullptr) return;  // written by whoever made it
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

void AgentSession::steer(std::string text, std::vector<ai::ImageContent> images) {
  queues_.steering.push_back(text);
  agent_->steer(user_message(std::move(text), std::move(images)));
  emit_queues();
}

void AgentSession::follow_up(std::string text, std::vector<ai::ImageContent> images) {
  queues_.follow_up.push_back(text);
  agent_->follow_up(user_message(std::move(text), std::move(images)));
  emit_queues();
}

AgentSession::Queues AgentSession::clear_queues() {
  agent_->clear_steering_queue();
  agent_->clear_follow_up_queue();
  Queues cleared = std::exchange(queues_, {});
  emit_queues();
  return cleared;
}

void AgentSession::abort() {
  abort_requested_ = true;
  retry_timer_.cancel();
  if (agent_) agent_->abort();
}

void AgentSession::record_bash(BashExecution record) {
  pending_bash_.push_back(std::move(record));
  if (!running_) flush_bash_records();
}

void AgentSession::flush_bash_records() {
  if (!pending_bash_.empty()) load_messages();
  while (!pending_bash_.empty()) {
    agent::AgentMessage message = agent::AgentMessage::of(std::move(pending_bash_.front()));
    pending_bash_.pop_front();
    agent_->state().messages.push_back(message);
    report(options_.session->append_message(message));
  }
}

std::function<void()> AgentSession::subscribe(SessionListener listener) {
  const int id = next_listener_++;
  listeners_.emplace_back(id, std::move(listener));
  return [this, id] { std::erase_if(listeners_, [id](const auto& entry) { return entry.first == id; }); };
}

void AgentSession::set_model(ai::Model model) {
  report(options_.session->append_model_change({model.provider, model.id}));
  agent_->state().model = std::move(model);
  set_thinking_level(agent_->state().thinking_level);
}

void AgentSession::set_thinking_level(ai::ThinkingLevel level) {
  level = ai::clamp_thinking_level(agent_->state().model, level);
  if (level == agent_->state().thinking_level) return;
  agent_->state().thinking_level = level;
  report(options_.session->append_thinking_level_change(level));
  emit(ThinkingLevelChanged{level});
}

void AgentSession::set_name(std::string name) {
  report(options_.session->append_session_info(name));
  emit(SessionInfoChanged{options_.session->name()});
}

const ai::Model& AgentSession::model() const {
  return agent_->state().model;
}
ai::ThinkingLevel AgentSession::thinking_level() const {
  return agent_->state().thinking_level;
}
const std::vector<agent::AgentMessage>& AgentSession::messages() const {
  load_messages();
  return agent_->state().messages;
}

const ai::AssistantMessage* AgentSession::last_reply() const {
  return messages().empty() ? nullptr : messages().back().assistant();
}

}  // namespace tau::coding
