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
//   - a context that nears the window, or did not fit, is compacted and the run goes on (SES-123 to SES-129), but a
//     compaction that does not help is not repeated (FF-35);
//   - model and thinking level, once changed, are recorded, clamped to what the model offers, and used from the next
//     turn on (SE-26).
#pragma once

#include <chrono>
#include <deque>
#include <expected>
#include <filesystem>
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
#include "coding/compaction/preparation.h"
#include "coding/compaction/summary.h"
#include "coding/roles/bash_execution.h"
#include "coding/session/session.h"
#include "coding/session/session_stats.h"
#include "coding/session_event.h"
#include "coding/tools/user_shell.h"

namespace tau::coding {

namespace asio = boost::asio;

struct RetryPolicy {
  bool enabled = true;
  int max_retries = 3;
  std::chrono::milliseconds base_delay{2000};
};

/// What extensions and embedding programs may take part in. Any may be empty. The first four are hooks of the loop
/// (agent/loop.h).
struct SessionHooks {
  decltype(agent::LoopConfig::transform_context) transform_context;
  decltype(agent::LoopConfig::settle_message) settle_message;
  decltype(agent::LoopConfig::before_tool_call) before_tool_call;
  decltype(agent::LoopConfig::after_tool_call) after_tool_call;

  /// Once for each prompt, before it is sent: messages that follow it, and the system prompt of this run (SE-14).
  struct RunStart {
    std::vector<agent::AgentMessage> messages;
    std::optional<std::string> system_prompt;
  };
  std::function<asio::awaitable<RunStart>(std::string prompt, std::vector<ai::ImageContent> images)> before_run;

  /// May refuse a compaction or make the summary itself (SES-150).
  struct BeforeCompaction {
    bool cancel = false;
    std::optional<CompactionRecord> record;
  };
  std::function<asio::awaitable<BeforeCompaction>(CompactionPreparation preparation, std::string custom_instructions,
                                                  std::stop_token stop)>
      before_compaction;

  /// May refuse a move in the tree or make the summary of the branch that is left itself.
  struct BeforeNavigation {
    bool cancel = false;
    std::optional<BranchSummaryRecord> summary;
  };
  std::function<asio::awaitable<BeforeNavigation>(std::string target, std::stop_token stop)> before_navigation;
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
  CompactionSettings compaction;
  double branch_summary_reserve_tokens = 16384;  // kept free of the branch, for its summary (SES-163)
  agent::QueueMode steering_mode = agent::QueueMode::kOneAtATime;
  agent::QueueMode follow_up_mode = agent::QueueMode::kOneAtATime;
  std::function<bool()> block_images;  // read at each projection (PR-20)
  UserShell shell;                     // of user commands
  SessionHooks hooks;
  /// The model of a session that is switched to, when it exists and may be used; nothing keeps the present one.
  std::function<std::optional<ai::Model>(const ModelReference& reference)> find_model;
};

/// Called synchronously, in order, before the loop goes on.
using SessionListener = std::function<void(const SessionEvent& event)>;

enum class QueueAs { kSteering, kFollowUp };

struct PromptOptions {
  /// Where the text goes when a run is active; nothing: that is refused (SE-33).
  std::optional<QueueAs> when_running;
  /// Called once, when the prompt is accepted: before the first event of its run (MO-123).
  std::function<void()> on_accepted;
};

struct CustomMessageOptions {
  /// Runs the model for it (idle), or lets it take part in the active run. Unset: only in an active run
  /// (agent.md 10.3).
  std::optional<bool> trigger_turn;
  enum class Delivery { kSteering, kFollowUp, kNextPrompt };
  Delivery deliver_as = Delivery::kSteering;
};

struct NavigateOptions {
  bool summarize = false;
  std::string custom_instructions;
  bool replace_instructions = false;  // the custom text stands instead of ours
  std::string label;                  // for the summary, or for the target when there is none
};

struct Navigation {
  bool cancelled = false;  // by abort_branch_summary or a hook; nothing was changed
  bool aborted = false;
  std::optional<std::string> editor_text;  // of the user message that may be written anew (SES-162)
  std::optional<std::string> summary_id;   // the entry that was added
};

/// Tokens in use; no number while it is not known, after a compaction (SES-112).
struct ContextUsage {
  std::optional<double> tokens;
  double context_window = 0;
  std::optional<double> percent;
};

class AgentSession {
 public:
  AgentSession(asio::any_io_executor executor, AgentSessionOptions options);
  ~AgentSession();
  AgentSession(const AgentSession&) = delete;
  AgentSession& operator=(const AgentSession&) = delete;

  // ---- prompts and queues ----------------------------------------------------------------------------------------

  /// Runs a prompt to its settled end: all turns, retries, compactions and queued messages. Fails without a run while a
  /// manual compaction is at work, and when a run is active and the options do not say where the text goes. Failures of
  /// the provider are replies, not errors: look at the last message.
  asio::awaitable<std::expected<void, Error>> prompt(std::string text, std::vector<ai::ImageContent> images = {},
                                                     PromptOptions options = {});

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
  void set_steering_mode(agent::QueueMode mode);
  void set_follow_up_mode(agent::QueueMode mode);
  agent::QueueMode steering_mode() const { return options_.steering_mode; }
  agent::QueueMode follow_up_mode() const { return options_.follow_up_mode; }

  /// A message of an extension: see the table in agent.md 10.3. Runs the model only when idle and asked to.
  asio::awaitable<std::expected<void, Error>> send_custom_message(agent::AgentMessage message,
                                                                  CustomMessageOptions options = {});
  /// The same where no run is to be started: `trigger_turn` of an idle session counts as unset.
  void add_custom_message(agent::AgentMessage message, CustomMessageOptions options = {});
  /// State of an extension; the model never sees it.
  void append_custom_entry(std::string_view custom_type, std::optional<json::value> data);

  // ---- ending ----------------------------------------------------------------------------------------------------

  /// Ends retry pause, compaction, branch summary and run; returns at once. Queued messages stay (SE-32). `prompt`
  /// returns when all has settled.
  void abort();
  /// The same, and waits until the session is idle: also for a run with what was queued.
  asio::awaitable<void> abort_and_wait();
  asio::awaitable<void> wait_for_idle();
  void abort_retry();
  void abort_compaction();
  void abort_branch_summary();

  /// From just before the first agent run to the settle point: with retry pauses and automatic compactions (SE-7).
  bool running() const { return running_; }
  bool retrying() const { return retry_pause_; }
  /// A compaction or the summary of a branch is being made.
  bool compacting() const { return compaction_stop_.has_value() || branch_stop_.has_value(); }

  // ---- user commands -----------------------------------------------------------------------------------------------

  /// Runs a `!` command and records it. Output comes as BashOutput. Several may run at once. Fails, with nothing
  /// recorded, when it cannot be started (SE-11).
  asio::awaitable<std::expected<BashExecution, Error>> run_bash(std::string command, bool exclude_from_context = false,
                                                                std::optional<std::string> id = {});
  /// Ends all running user commands.
  void abort_bash();
  bool bash_running() const { return !bash_stops_.empty(); }
  /// Adds a user command's record: at once when idle, else after the active run has settled (SE-6).
  void record_bash(BashExecution record);
  bool has_pending_bash() const { return !pending_bash_.empty(); }

  // ---- compaction and tree -----------------------------------------------------------------------------------------

  /// Ends an active run first. The error is what went wrong, without the event's prefix (SES-128).
  asio::awaitable<std::expected<CompactionResult, Error>> compact(std::string custom_instructions = {});
  void set_auto_compaction(bool enabled) { options_.compaction.enabled = enabled; }
  bool auto_compaction() const { return options_.compaction.enabled; }
  void set_auto_retry(bool enabled) { options_.retry.enabled = enabled; }
  bool auto_retry() const { return options_.retry.enabled; }

  /// Moves to another place of the tree, with a summary of what is left behind if wanted (SES-160 to SES-166). Refused
  /// while a run is active.
  asio::awaitable<std::expected<Navigation, Error>> navigate_tree(std::string target, NavigateOptions options = {});

  // ---- sessions ----------------------------------------------------------------------------------------------------

  /// Goes on in another session: ends the run, which is still written to the old file, drops the queues and takes
  /// transcript, model and thinking level of the new one (SES-180, SES-181, FF-31).
  asio::awaitable<void> switch_session(std::shared_ptr<Session> session);
  /// A new empty session in the folder of the present one, or in memory like it. `parent`: named in its header.
  asio::awaitable<void> new_session(std::optional<std::filesystem::path> parent = {});
  /// A session of what came before a user message; returns that message's text, for the editor (MO-141).
  asio::awaitable<std::expected<std::string, Error>> fork(std::string entry_id);
  /// A session of the current path (MO-142).
  asio::awaitable<std::expected<void, Error>> clone();

  void set_name(std::string name);
  std::expected<void, Error> set_label(std::string_view entry_id, std::string_view label);

  // ---- model ---------------------------------------------------------------------------------------------------

  void set_model(ai::Model model);
  void set_thinking_level(ai::ThinkingLevel level);
  /// The next level that the model offers; nothing when it does not reason.
  std::optional<ai::ThinkingLevel> cycle_thinking_level();
  /// From the next turn on.
  void set_tools(std::vector<agent::AgentTool> tools);
  void set_system_prompt(std::string text);

  // ---- reading -------------------------------------------------------------------------------------------------

  /// Subscribes until the returned function is called.
  std::function<void()> subscribe(SessionListener listener);

  const ai::Model& model() const;
  ai::ThinkingLevel thinking_level() const;
  const std::vector<agent::AgentTool>& tools() const;
  const std::string& system_prompt() const;
  const std::vector<agent::AgentMessage>& messages() const;
  /// The reply that is being streamed; null otherwise. Valid during an event.
  const ai::AssistantMessage* streaming_reply() const;
  /// The last message when it is an assistant's; null otherwise.
  const ai::AssistantMessage* last_reply() const;
  /// Text of the last reply that is not an abort without content, trimmed (CA-363).
  std::optional<std::string> last_reply_text() const;
  SessionStats stats() const { return stats_of(options_.session->index()); }
  /// Nothing for a model whose window is unknown.
  std::optional<ContextUsage> context_usage() const;
  Session& session() { return *options_.session; }
  const Session& session() const { return *options_.session; }
  std::shared_ptr<Session> shared_session() const { return options_.session; }

 private:
  void record_start(const SessionContext& context);
  std::unique_ptr<agent::Agent> make_agent(const SessionContext& context);

  // agent_session.cpp: the run
  asio::awaitable<agent::NextTurn> next_turn(double tokens, std::vector<agent::AgentMessage> loop_messages);
  void start_run();
  void settle();
  asio::awaitable<void> run(std::vector<agent::AgentMessage> messages);
  asio::awaitable<bool> wants_continuation();
  asio::awaitable<bool> wait_for_retry(const ai::AssistantMessage& reply);
  bool is_retryable(const ai::AssistantMessage& reply) const;
  bool will_retry(const std::vector<agent::AgentMessage>& messages) const;

  // agent_session.cpp: events
  void on_agent_event(const agent::AgentEvent& event);
  void before_listeners(const agent::AgentEvent& event);
  void after_listeners(const agent::AgentEvent& event);
  void persist(const agent::AgentMessage& message);
  void report(const std::expected<void, Error>& written);
  void emit(const SessionEvent& event);
  void emit_queues();

  // agent_session_messages.cpp
  void flush_bash_records();
  void flush_custom_messages();
  void append_custom_now(const agent::AgentMessage& message);

  // agent_session_compaction.cpp
  enum class CheckedWhen { kAfterRun, kBeforePrompt };
  asio::awaitable<bool> check_compaction(agent::AgentMessage reply, CheckedWhen when);
  asio::awaitable<bool> compact_automatically(CompactionReason reason, bool will_retry);
  asio::awaitable<std::expected<CompactionResult, Error>> make_compaction(CompactionPreparation preparation,
                                                                          CompactionReason reason,
                                                                          std::string custom_instructions,
                                                                          std::stop_token stop);
  asio::awaitable<ai::AssistantMessage> summary_reply(SummaryRequest request, std::optional<CompactionReason> reason,
                                                      std::stop_token stop);
  SummarizeFunction summarizer(std::optional<CompactionReason> reason, std::stop_token stop);
  std::optional<CompactionPreparation> prepare() const;
  bool is_stale(const agent::AgentMessage& reply) const;
  bool over_threshold(double tokens) const;
  double compaction_threshold() const;
  bool automatic_compaction_allowed(CompactionReason reason, double kept_tokens);
  bool knows_context_size() const;
  asio::awaitable<ai::AssistantMessage> call_model(ai::Model model, ai::Context context, ai::StreamOptions request,
                                                   ai::EventSink sink, std::stop_token stop);
  void rebuild_messages();
  void drop_last_reply();

  asio::any_io_executor executor_;
  AgentSessionOptions options_;
  std::unique_ptr<agent::Agent> agent_;
  std::vector<std::pair<int, SessionListener>> listeners_;
  int next_listener_ = 0;
  Queues queues_;
  std::deque<BashExecution> pending_bash_;
  std::deque<agent::AgentMessage> pending_custom_;             // for the end of the turn
  std::vector<agent::AgentMessage> next_prompt_;               // that join the next prompt
  std::vector<std::shared_ptr<std::stop_source>> bash_stops_;  // of running user commands
  bool running_ = false;
  bool abort_requested_ = false;  // since the run began
  bool retry_pause_ = false;
  bool retry_cancelled_ = false;
  bool context_changed_ = false;  // tools or system prompt, during a run
  int retry_attempt_ = 0;
  std::optional<agent::AgentMessage> settled_reply_;  // since the last continuation was decided
  std::optional<std::string> prompt_of_run_;          // system prompt of this run only
  std::optional<std::stop_source> compaction_stop_;   // while a compaction is at work
  std::optional<std::stop_source> branch_stop_;       // while a branch is summarised
  bool manual_compaction_ = false;
  bool overflow_recovered_ = false;         // since the last user message (SE-34)
  bool compaction_stalled_ = false;         // the last automatic one of this run did not help (FF-35)
  bool completed_since_compaction_ = true;  // a reply ended well since then
  bool stall_reported_ = false;             // in this run
  asio::steady_timer retry_timer_;
  asio::steady_timer idle_;  // cancelled when a run has settled
};

}  // namespace tau::coding
