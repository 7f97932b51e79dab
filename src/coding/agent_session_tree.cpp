// Moving inside a session's tree, and to another session (SES sections 12 and 14).
#include <utility>

#include <fmt/format.h>

#include "coding/agent_session.h"
#include "coding/compaction/branch_range.h"
#include "coding/session/session_fork.h"

namespace tau::coding {

namespace {

/// Of a user message or the message of an extension; nothing for any other entry.
std::optional<std::string> text_to_edit(const Entry& entry) {
  const auto message = message_of(entry);
  if (!message) return std::nullopt;
  const bool is_written_anew = message->user() != nullptr || entry.type == EntryType::kCustomMessage;
  if (!is_written_anew) return std::nullopt;
  std::string text;
  for (const ai::MessageRef& projected : message->projection()) {
    const auto* user = std::get_if<ai::UserMessage>(projected.get());
    if (user == nullptr) continue;
    if (const auto* plain = std::get_if<std::string>(&user->content)) {
      text += *plain;
      continue;
    }
    for (const ai::UserBlock& block : std::get<std::vector<ai::UserBlock>>(user->content)) {
      if (const auto* part = std::get_if<ai::TextContent>(&block)) text += part->text;
    }
  }
  return text;
}

constexpr double kUnknownWindow = 128000;

}  // namespace

asio::awaitable<std::expected<Navigation, Error>> AgentSession::navigate_tree(std::string target,
                                                                              NavigateOptions options) {
  if (running_ || compacting()) {
    co_return std::unexpected(error("The agent is at work: wait until it has ended, or abort it, then move"));
  }
  Session& session = *options_.session;
  const auto number = session.index().find(target);
  if (!number) co_return std::unexpected(error(fmt::format("Entry {} not found", target)));
  if (session.leaf() == target) co_return Navigation{};
  const ai::Model model = agent_->state().model;
  if (options.summarize && model.id.empty()) {
    co_return std::unexpected(error("No model is chosen to summarise the branch: choose one, or move without summary"));
  }

  branch_stop_.emplace();
  const std::stop_token stop = branch_stop_->get_token();
  std::optional<BranchSummaryRecord> record;
  std::optional<std::string> failure;
  bool cancelled = false;
  std::exception_ptr thrown;
  try {
    const BranchRange range = branch_to_leave(session, *number);
    if (options_.hooks.before_navigation) {
      SessionHooks::BeforeNavigation answer = co_await options_.hooks.before_navigation(target, stop);
      cancelled = answer.cancel;
      record = std::move(answer.summary);
      if (record) record->from_hook = true;
    }
    if (!cancelled && !record && options.summarize && !range.entries.empty()) {
      const double window = model.context_window > 0 ? model.context_window : kUnknownWindow;
      BranchMessages branch =
          messages_of_branch(session, range.entries, window - options_.branch_summary_reserve_tokens);
      const json::object details = details_of(branch.files);
      auto summary =
          co_await summarize_branch(std::move(branch.messages), std::move(branch.files), options.custom_instructions,
                                    options.replace_instructions, model.max_tokens, summarizer(std::nullopt, stop));
      if (summary) {
        record = BranchSummaryRecord{std::move(summary->text), json::value(details), summary->usage, false};
      } else if (!summary.error().aborted) {
        failure = summary.error().message;
      }
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  const bool aborted = stop.stop_requested();
  branch_stop_.reset();
  if (thrown) std::rethrow_exception(thrown);
  if (aborted) co_return Navigation{true, true, std::nullopt, std::nullopt};
  if (cancelled) co_return Navigation{true, false, std::nullopt, std::nullopt};
  if (failure) co_return std::unexpected(error(*failure));

  const Entry entry = session.index().entry(*number);
  Navigation done;
  done.editor_text = text_to_edit(entry);
  std::optional<std::string> new_leaf = target;
  if (done.editor_text)
    new_leaf = entry.parent_id && session.index().find(*entry.parent_id) ? entry.parent_id : std::nullopt;
  if (record) {
    auto written = session.branch_with_summary(new_leaf, *record);
    report(written);
    if (!written) co_return std::unexpected(written.error());
    done.summary_id = session.last_appended();
  } else if (new_leaf) {
    if (auto moved = session.branch(*new_leaf); !moved) co_return std::unexpected(moved.error());
  } else {
    session.reset_leaf();
  }
  if (!options.label.empty()) report(session.append_label(done.summary_id.value_or(target), options.label));
  rebuild_messages();
  co_return done;
}

// ---- other sessions ----------------------------------------------------------------------------------------------

asio::awaitable<void> AgentSession::switch_session(std::shared_ptr<Session> session) {
  clear_queues();
  abort_bash();
  co_await abort_and_wait();
  pending_bash_.clear();
  pending_custom_.clear();
  next_prompt_.clear();
  retry_attempt_ = 0;
  options_.session = std::move(session);
  agent_->reset();
  agent_->loop_config().options.session_id = options_.session->id();
  const SessionContext context = options_.session->context();
  agent::AgentState& state = agent_->state();
  state.messages = context.messages;
  if (context.model && options_.find_model) {
    if (auto model = options_.find_model(*context.model)) state.model = *std::move(model);
  }
  if (context.has_thinking_level) {
    state.thinking_level = ai::thinking_level_from(context.thinking_level).value_or(state.thinking_level);
  }
  state.thinking_level = ai::clamp_thinking_level(state.model, state.thinking_level);
  record_start(context);
}

asio::awaitable<void> AgentSession::new_session(std::optional<std::filesystem::path> parent) {
  const Session& present = *options_.session;
  const auto file = present.file();
  auto session = file ? Session::create(file->parent_path(), present.cwd(), {}, SyncPolicy::kNever, parent)
                      : Session::in_memory(present.cwd());
  co_await switch_session(std::move(session));
}

namespace {

std::expected<std::filesystem::path, Error> folder_for_fork(const Session& session) {
  const auto file = session.file();
  if (!file) return std::filesystem::path();
  if (!session.is_on_disk()) {
    return std::unexpected(error("This session has not been saved yet. Send a first message, then clone or fork it."));
  }
  return file->parent_path();
}

}  // namespace

asio::awaitable<std::expected<std::string, Error>> AgentSession::fork(std::string entry_id) {
  const auto folder = folder_for_fork(*options_.session);
  if (!folder) co_return std::unexpected(folder.error());
  auto made = fork_before(*options_.session, entry_id, *folder);
  if (!made) co_return std::unexpected(made.error());
  co_await switch_session(std::move(made->session));
  co_return std::move(made->text);
}

asio::awaitable<std::expected<void, Error>> AgentSession::clone() {
  const auto folder = folder_for_fork(*options_.session);
  if (!folder) co_return std::unexpected(folder.error());
  const auto leaf = options_.session->leaf();
  if (!leaf) co_return std::unexpected(error("There is nothing to clone yet"));
  auto made = fork_at(*options_.session, *leaf, *folder);
  if (!made) co_return std::unexpected(made.error());
  co_await switch_session(*std::move(made));
  co_return std::expected<void, Error>{};
}

}  // namespace tau::coding
