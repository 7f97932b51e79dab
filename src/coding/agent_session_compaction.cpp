// When a session compacts itself, and how it asks for summaries (SES-123 to SES-129, SE-34 to SE-38).
#include <algorithm>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "ai/error_classification.h"
#include "ai/provider_call.h"
#include "base/clock.h"
#include "coding/agent_session.h"
#include "coding/compaction/context_size.h"
#include "coding/roles/user_text.h"

namespace tau::coding {

namespace {

std::string_view prefix_of(CompactionReason reason) {
  constexpr std::string_view kPrefixes[] = {
      "Compaction failed: ", "Auto-compaction failed: ", "Context overflow recovery failed: "};
  return kPrefixes[static_cast<std::size_t>(reason)];
}

/// "the result of bash (about 10000 tokens)"
std::string largest_part(const std::vector<agent::AgentMessage>& messages) {
  const auto largest = std::max_element(messages.begin(), messages.end(), [](const auto& a, const auto& b) {
    return estimate_tokens(a) < estimate_tokens(b);
  });
  if (largest == messages.end()) return "nothing";
  std::string what = fmt::format("a message of role {}", largest->role());
  if (const ai::ToolResultMessage* result = largest->tool_result())
    what = fmt::format("a result of {}", result->tool_name);
  return fmt::format("{} (about {:.0f} tokens)", what, estimate_tokens(*largest));
}

std::optional<EntryType> type_of_leaf(const Session& session) {
  if (!session.leaf_number()) return std::nullopt;
  return session.index().head(*session.leaf_number()).type;
}

bool was_cut_or_failed(const ai::AssistantMessage& reply) {
  return reply.stop_reason == ai::StopReason::kError || reply.stop_reason == ai::StopReason::kLength;
}

}  // namespace

// ---- model calls -------------------------------------------------------------------------------------------------

/// With the credentials of the moment. Failing to get them is an answer like any other failure.
asio::awaitable<ai::AssistantMessage> AgentSession::call_model(ai::Model model, ai::Context context,
                                                               ai::StreamOptions request, ai::EventSink sink,
                                                               std::stop_token stop) {
  auto credentials = co_await options_.credentials(model);
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
  ai::AssistantMessage reply = co_await options_.stream(std::move(model), std::move(context), std::move(request),
                                                        std::move(sink), std::move(stop));
  co_return reply;
}

/// SES-149
asio::awaitable<ai::AssistantMessage> AgentSession::summary_reply(SummaryRequest request,
                                                                  std::optional<CompactionReason> reason,
                                                                  std::stop_token stop) {
  const ai::Model model = agent_->state().model;
  ai::Context context;
  context.system_prompt = std::move(request.system_prompt);
  context.messages = user_text(std::move(request.text), now_milliseconds());
  ai::StreamOptions options = options_.request_options;
  options.session_id = uuid_v7();
  options.cache_retention = ai::CacheRetention::kNone;
  options.reasoning.reset();
  if (model.reasoning && agent_->state().thinking_level != ai::ThinkingLevel::kOff) {
    options.reasoning = agent_->state().thinking_level;
  }
  if (request.max_tokens > 0) options.max_tokens = request.max_tokens;

  asio::steady_timer pause(executor_);
  for (int attempt = 0;; ++attempt) {
    ai::EventSink ignore = [](const ai::StreamEvent&) -> std::optional<asio::awaitable<void>> { return std::nullopt; };
    ai::AssistantMessage reply = co_await call_model(model, context, options, std::move(ignore), stop);
    if (stop.stop_requested()) reply.stop_reason = ai::StopReason::kAborted;
    const bool again = options_.retry.enabled && attempt < options_.retry.max_retries && is_retryable(reply);
    if (!again) {
      if (attempt > 0) emit(SummaryRetryFinished{});
      co_return reply;
    }
    const auto delay = options_.retry.base_delay * (std::int64_t{1} << attempt);
    emit(SummaryRetryScheduled{attempt + 1, options_.retry.max_retries, delay.count(),
                               reply.error_message.value_or("")});
    pause.expires_after(delay);
    {
      const std::stop_callback cancel(stop, [&pause] { pause.cancel(); });
      boost::system::error_code ignored;
      if (!stop.stop_requested()) co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (stop.stop_requested()) {
      emit(SummaryRetryFinished{});
      reply.stop_reason = ai::StopReason::kAborted;
      co_return reply;
    }
    emit(SummaryRetryStart{reason});
  }
}

SummarizeFunction AgentSession::summarizer(std::optional<CompactionReason> reason, std::stop_token stop) {
  return [this, reason, stop](SummaryRequest request) { return summary_reply(std::move(request), reason, stop); };
}

// ---- when --------------------------------------------------------------------------------------------------------

/// Settings that would leave nothing of a small window count as half of it.
double AgentSession::compaction_threshold() const {
  const double window = agent_->state().model.context_window;
  const double reserve = options_.compaction.reserve_tokens;
  return window - (reserve < window ? reserve : window / 2);
}

bool AgentSession::over_threshold(double tokens) const {
  return agent_->state().model.context_window > 0 && tokens > compaction_threshold();
}

std::optional<CompactionPreparation> AgentSession::prepare() const {
  const double window = agent_->state().model.context_window;
  double keep = options_.compaction.keep_recent_tokens;
  if (window > 0) keep = std::min(keep, window / 2);
  return prepare_compaction(*options_.session, keep);
}

/// Whether the reply was made before the latest compaction of the path: its usage is that of the old context (FF-36).
bool AgentSession::is_stale(const agent::AgentMessage& reply) const {
  const std::vector<EntryNumber> path = options_.session->path();
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    const EntryHead& head = options_.session->index().head(*it);
    if (head.type == EntryType::kCompaction) return reply.assistant() != nullptr;
    if (head.type != EntryType::kMessage) continue;
    const MessageRole role =
        head.role == MessageRole::kUnread ? role_of(options_.session->index().entry(*it)) : head.role;
    if (role == MessageRole::kAssistant) return false;
  }
  return false;
}

/// A compaction that did not help, or that no reply has followed, is not repeated: each costs a long request (FF-35).
bool AgentSession::automatic_compaction_allowed(CompactionReason reason, double kept_tokens) {
  const bool in_vain = compaction_stalled_ && over_threshold(kept_tokens);
  if (completed_since_compaction_ && !in_vain) return true;
  if (!std::exchange(stall_reported_, true)) {
    const std::vector<agent::AgentMessage>& messages = agent_->state().messages;
    emit(CompactionEnd{reason, std::nullopt, false, false,
                       fmt::format("{}the context is still too large after a compaction, no other one is tried in this "
                                   "run. About {:.0f} of {:.0f} tokens are in use; the largest part is {}.",
                                   prefix_of(reason), context_tokens(messages, UsageScope::kSinceCompaction),
                                   agent_->state().model.context_window, largest_part(messages))});
  }
  return false;
}

/// Whether the run is to go on with the request that did not fit (SES-124 to SES-126).
asio::awaitable<bool> AgentSession::check_compaction(agent::AgentMessage message, CheckedWhen when) {
  const ai::AssistantMessage& reply = *message.assistant();
  const ai::Model model = agent_->state().model;
  if (!options_.compaction.enabled) co_return false;
  if (reply.stop_reason == ai::StopReason::kAborted && when == CheckedWhen::kAfterRun) co_return false;
  if (is_stale(message)) co_return false;

  const bool same_model = reply.provider == model.provider && reply.model == model.id;
  const bool too_large = ai::is_context_overflow(reply, model.context_window);
  if (same_model && (too_large || ai::is_recoverable_length(reply, model.max_tokens))) {
    if (reply.stop_reason == ai::StopReason::kStop) {
      co_await compact_automatically(CompactionReason::kOverflow, false);
      co_return false;
    }
    if (overflow_recovered_) {
      stall_reported_ = true;
      emit(CompactionEnd{
          CompactionReason::kOverflow, std::nullopt, false, false,
          fmt::format("{}the request still did not fit, it failed after one compact-and-retry attempt. The largest "
                      "part of the context is {}. Go back in the tree to a smaller context, or use a "
                      "model with a larger window.",
                      prefix_of(CompactionReason::kOverflow), largest_part(agent_->state().messages))});
      co_return false;
    }
    overflow_recovered_ = true;
    const bool compacted = co_await compact_automatically(CompactionReason::kOverflow, true);
    co_return compacted;
  }

  const double reported = reported_tokens(reply);
  const double tokens =
      reported > 0 ? reported : context_tokens(agent_->state().messages, UsageScope::kSinceCompaction);
  if (over_threshold(tokens)) co_await compact_automatically(CompactionReason::kThreshold, false);
  co_return false;
}

void AgentSession::drop_last_reply() {
  std::vector<agent::AgentMessage>& messages = agent_->state().messages;
  if (!messages.empty() && messages.back().assistant() != nullptr) messages.pop_back();
}

void AgentSession::rebuild_messages() {
  agent_->state().messages = options_.session->context().messages;
}

/// True when a compaction was stored. Without anything to compact nothing is said (SES-127).
asio::awaitable<bool> AgentSession::compact_automatically(CompactionReason reason, bool will_retry) {
  std::optional<CompactionPreparation> preparation = prepare();
  if (!preparation) co_return false;
  const bool allowed = automatic_compaction_allowed(reason, preparation->kept_tokens);
  if (!allowed) co_return false;

  const std::vector<agent::AgentMessage> before = agent_->state().messages;
  if (will_retry) drop_last_reply();
  compaction_stop_.emplace();
  emit(CompactionStart{reason});
  auto result = co_await make_compaction(*std::move(preparation), reason, {}, compaction_stop_->get_token());
  const bool aborted = compaction_stop_->stop_requested() && !result;
  compaction_stop_.reset();
  if (!result) {
    // The session stays as it was, the reply that did not fit included.
    if (will_retry) agent_->state().messages = before;
    CompactionEnd end{reason, std::nullopt, aborted, false, std::nullopt};
    if (!aborted) end.error_message = std::string(prefix_of(reason)) + result.error().message;
    completed_since_compaction_ = aborted;  // what has failed is not tried again at once
    emit(end);
    co_return false;
  }
  completed_since_compaction_ = false;
  compaction_stalled_ = over_threshold(result->estimated_tokens_after);
  emit(CompactionEnd{reason, *std::move(result), false, will_retry, std::nullopt});
  if (will_retry) {
    const ai::AssistantMessage* last = last_reply();
    if (last != nullptr && was_cut_or_failed(*last)) drop_last_reply();
  }
  co_return true;
}

/// Makes the summary, stores it and rebuilds the transcript from the session (SES-129).
asio::awaitable<std::expected<CompactionResult, Error>> AgentSession::make_compaction(CompactionPreparation preparation,
                                                                                      CompactionReason reason,
                                                                                      std::string custom_instructions,
                                                                                      std::stop_token stop) {
  std::optional<CompactionRecord> record;
  std::optional<std::string> failure;
  try {
    if (options_.hooks.before_compaction) {
      SessionHooks::BeforeCompaction answer =
          co_await options_.hooks.before_compaction(preparation, custom_instructions, stop);
      if (answer.cancel) failure = "Compaction cancelled";
      record = std::move(answer.record);
      if (record) record->from_hook = true;
    }
    if (!record && !failure) {
      const auto summary =
          co_await summarize(preparation, std::move(custom_instructions), options_.compaction.reserve_tokens,
                             agent_->state().model.max_tokens, summarizer(reason, stop));
      if (summary) {
        record = CompactionRecord{summary->text,
                                  preparation.first_kept_id,
                                  preparation.tokens_before,
                                  json::value(details_of(preparation.files)),
                                  summary->usage,
                                  false};
      } else {
        failure = summary.error().message;
      }
    }
  } catch (const std::exception& thrown) {
    failure = thrown.what();
  }
  if (stop.stop_requested()) co_return std::unexpected(error("Compaction cancelled"));
  if (failure) co_return std::unexpected(error(*failure));

  const auto written = options_.session->append_compaction(*record);
  report(written);
  if (!written) co_return std::unexpected(written.error());
  rebuild_messages();
  co_return CompactionResult{std::move(record->summary), std::move(record->first_kept_id),
                             record->tokens_before,      estimate_tokens(agent_->state().messages),
                             std::move(record->usage),   std::move(record->details)};
}

asio::awaitable<std::expected<CompactionResult, Error>> AgentSession::compact(std::string custom_instructions) {
  if (manual_compaction_ || (compacting() && !running_)) {
    co_return std::unexpected(error("A compaction is at work already"));
  }
  manual_compaction_ = true;
  co_await abort_and_wait();
  flush_bash_records();
  compaction_stop_.emplace();
  const std::stop_token stop = compaction_stop_->get_token();
  emit(CompactionStart{CompactionReason::kManual});
  std::expected<CompactionResult, Error> result = std::unexpected(Error{});
  auto preparation = prepare();
  if (agent_->state().model.id.empty()) {
    result = std::unexpected(error("No model is chosen: choose one with /model"));
  } else if (!preparation) {
    const bool twice = type_of_leaf(*options_.session) == EntryType::kCompaction;
    result = std::unexpected(error(twice ? "Already compacted" : "Nothing to compact (session too small)"));
  } else {
    result = co_await make_compaction(*std::move(preparation), CompactionReason::kManual,
                                      std::move(custom_instructions), stop);
  }
  const bool aborted = stop.stop_requested() && !result;
  compaction_stop_.reset();
  manual_compaction_ = false;
  CompactionEnd end{CompactionReason::kManual, std::nullopt, aborted, false, std::nullopt};
  if (result) {
    end.result = *result;
  } else if (!aborted) {
    end.error_message = std::string(prefix_of(CompactionReason::kManual)) + result.error().message;
  }
  emit(end);
  co_return result;
}

// ---- what is in use ----------------------------------------------------------------------------------------------

std::optional<ContextUsage> AgentSession::context_usage() const {
  const double window = agent_->state().model.context_window;
  if (window <= 0) return std::nullopt;
  ContextUsage usage{std::nullopt, window, std::nullopt};
  if (!knows_context_size()) return usage;
  usage.tokens = context_tokens(agent_->state().messages, UsageScope::kSinceCompaction);
  usage.percent = *usage.tokens / window * 100;
  return usage;
}

/// Not after a compaction, until a reply has reported what the new context takes (SES-112).
bool AgentSession::knows_context_size() const {
  const std::vector<EntryNumber> path = options_.session->path();
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    const EntryHead& head = options_.session->index().head(*it);
    if (head.type == EntryType::kCompaction) return false;
    if (head.type != EntryType::kMessage) continue;
    const auto message = message_of(options_.session->index().entry(*it));
    const ai::AssistantMessage* reply = message ? message->assistant() : nullptr;
    if (reply != nullptr && reported_tokens(*reply) > 0) return true;
  }
  return true;
}

}  // namespace tau::coding
