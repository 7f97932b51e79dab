// What enters a session beside prompts: queues, user commands, messages of extensions, changes of model and names.
#include <algorithm>
#include <utility>

#include "coding/agent_session.h"
#include "coding/roles/custom.h"
#include "coding/user_message.h"

namespace tau::coding {

// ---- queues ------------------------------------------------------------------------------------------------------

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

void AgentSession::set_steering_mode(agent::QueueMode mode) {
  options_.steering_mode = mode;
  agent_->set_steering_mode(mode);
}

void AgentSession::set_follow_up_mode(agent::QueueMode mode) {
  options_.follow_up_mode = mode;
  agent_->set_follow_up_mode(mode);
}

// ---- user commands -----------------------------------------------------------------------------------------------

asio::awaitable<std::expected<BashExecution, Error>> AgentSession::run_bash(std::string command,
                                                                            bool exclude_from_context,
                                                                            std::optional<std::string> id) {
  const auto stop = std::make_shared<std::stop_source>();
  bash_stops_.push_back(stop);
  UserShell shell = options_.shell;
  if (shell.cwd.empty()) shell.cwd = options_.session->cwd();
  auto show = [this, id](std::string_view text) { emit(BashOutput{id, std::string(text)}); };
  std::exception_ptr failure;
  std::expected<BashExecution, Error> record = std::unexpected(Error{});
  try {
    record = co_await run_user_command(std::move(shell), std::move(command), std::move(show), stop->get_token());
  } catch (...) {
    failure = std::current_exception();
  }
  std::erase(bash_stops_, stop);
  if (failure) std::rethrow_exception(failure);
  if (record) {
    if (exclude_from_context) record->exclude_from_context = true;
    record_bash(*record);
  }
  co_return record;
}

void AgentSession::abort_bash() {
  for (const auto& stop : std::vector(bash_stops_))
    stop->request_stop();
}

void AgentSession::record_bash(BashExecution record) {
  pending_bash_.push_back(std::move(record));
  if (!running_) flush_bash_records();
}

void AgentSession::flush_bash_records() {
  while (!pending_bash_.empty()) {
    agent::AgentMessage message = agent::AgentMessage::of(std::move(pending_bash_.front()));
    pending_bash_.pop_front();
    agent_->state().messages.push_back(message);
    report(options_.session->append_message(message));
  }
}

// ---- messages of extensions --------------------------------------------------------------------------------------

asio::awaitable<std::expected<void, Error>> AgentSession::send_custom_message(agent::AgentMessage message,
                                                                              CustomMessageOptions options) {
  const bool runs = !running_ && options.trigger_turn.value_or(false) &&
                    options.deliver_as != CustomMessageOptions::Delivery::kNextPrompt;
  if (!runs) {
    add_custom_message(std::move(message), options);
    co_return std::expected<void, Error>{};
  }
  if (manual_compaction_) {
    co_return std::unexpected(error("A compaction is at work: wait until it has ended, then send the message again"));
  }
  flush_bash_records();
  flush_custom_messages();
  start_run();
  std::vector<agent::AgentMessage> messages{std::move(message)};
  co_await run(std::move(messages));
  co_return std::expected<void, Error>{};
}

void AgentSession::add_custom_message(agent::AgentMessage message, CustomMessageOptions options) {
  using Delivery = CustomMessageOptions::Delivery;
  if (options.deliver_as == Delivery::kNextPrompt) {
    next_prompt_.push_back(std::move(message));
  } else if (!running_) {
    append_custom_now(message);
  } else if (!options.trigger_turn.value_or(true)) {
    pending_custom_.push_back(std::move(message));
  } else if (options.deliver_as == Delivery::kFollowUp) {
    agent_->follow_up(std::move(message));
  } else {
    agent_->steer(std::move(message));
  }
}

void AgentSession::flush_custom_messages() {
  while (!pending_custom_.empty()) {
    const agent::AgentMessage message = std::move(pending_custom_.front());
    pending_custom_.pop_front();
    append_custom_now(message);
  }
}

void AgentSession::append_custom_now(const agent::AgentMessage& message) {
  agent_->state().messages.push_back(message);
  persist(message);
  const agent::AgentEvent started = agent::MessageStart{message};
  emit(AgentActivity{started});
  const agent::AgentEvent ended = agent::MessageEnd{message};
  emit(AgentActivity{ended});
}

void AgentSession::append_custom_entry(std::string_view custom_type, std::optional<json::value> data) {
  const auto written = options_.session->append_custom(custom_type, std::move(data));
  report(written);
  if (!written) return;
  const auto id = options_.session->last_appended();
  const auto entry = id ? options_.session->find(*id) : std::nullopt;
  if (entry) emit(EntryAppended{entry->source});
}

// ---- model, tools, names -----------------------------------------------------------------------------------------

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

std::optional<ai::ThinkingLevel> AgentSession::cycle_thinking_level() {
  const std::vector<ai::ThinkingLevel> levels = ai::supported_thinking_levels(agent_->state().model);
  if (!agent_->state().model.reasoning || levels.empty()) return std::nullopt;
  const auto at = std::find(levels.begin(), levels.end(), agent_->state().thinking_level);
  const bool is_last = at == levels.end() || std::next(at) == levels.end();
  set_thinking_level(is_last ? levels.front() : *std::next(at));
  return agent_->state().thinking_level;
}

void AgentSession::set_tools(std::vector<agent::AgentTool> tools) {
  options_.tools = std::move(tools);
  agent_->state().tools = options_.tools;
  context_changed_ = true;
}

void AgentSession::set_system_prompt(std::string text) {
  options_.system_prompt = std::move(text);
  if (prompt_of_run_) return;  // holds until the run has settled
  agent_->state().system_prompt = options_.system_prompt;
  context_changed_ = true;
}

void AgentSession::set_name(std::string name) {
  report(options_.session->append_session_info(name));
  emit(SessionInfoChanged{options_.session->name()});
}

std::expected<void, Error> AgentSession::set_label(std::string_view entry_id, std::string_view label) {
  auto written = options_.session->append_label(entry_id, label);
  report({});
  return written;
}

}  // namespace tau::coding
