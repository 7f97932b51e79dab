// What an AgentSession reports: the agent's own events, and those of the product around it (MO-100).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/events.h"
#include "ai/model.h"
#include "ai/usage.h"
#include "base/json.h"

namespace tau::coding {

/// An event of the agent. For agent_end `will_retry` says that the run goes on by itself (SE-30).
struct AgentActivity {
  const agent::AgentEvent& event;  // valid during the call of the listener
  bool will_retry = false;
};

/// The texts that wait to be delivered (CA-215).
struct QueueUpdate {
  std::vector<std::string> steering;
  std::vector<std::string> follow_up;
};

struct AutoRetryStart {
  int attempt = 1;
  int max_attempts = 0;
  std::int64_t delay_ms = 0;
  std::string error_message;
};

struct AutoRetryEnd {
  bool success = false;
  int attempt = 0;
  std::optional<std::string> final_error;
};

/// Nothing more follows by itself: no retry, no queued message.
struct AgentSettled {};

struct ThinkingLevelChanged {
  ai::ThinkingLevel level;
};

struct SessionInfoChanged {
  std::optional<std::string> name;
};

/// A record could not be written. It is kept and written with the next one (FF-26); the user must be told.
struct PersistenceFailed {
  std::string message;
};

/// Another program writes to the same session file (FF-110).
struct SecondWriterNoticed {
  std::string message;
};

/// Why a compaction runs: asked for, the context is near the window, or a request did not fit (SES-123 to SES-128).
enum class CompactionReason { kManual, kThreshold, kOverflow };
std::string_view to_string(CompactionReason reason);

struct CompactionResult {
  std::string summary;
  std::string first_kept_id;
  double tokens_before = 0;           // of the context, as the last reply reported or as estimated
  double estimated_tokens_after = 0;  // of the rebuilt context (SES-129)
  std::optional<ai::Usage> usage;     // of the requests that made the summary
  std::optional<json::value> details;
};
json::object to_json(const CompactionResult& result);

struct CompactionStart {
  CompactionReason reason;
};

/// No result and not aborted: it failed, the message says why, and nothing was stored. Also comes without a start, when
/// an automatic compaction that is due is not tried any more (FF-35).
struct CompactionEnd {
  CompactionReason reason;
  std::optional<CompactionResult> result;
  bool aborted = false;
  bool will_retry = false;  // the request that did not fit is made again
  std::optional<std::string> error_message;
};

/// A request for a summary failed for a passing reason and is made again after a pause (SES-149).
struct SummaryRetryScheduled {
  int attempt = 1;
  int max_attempts = 0;
  std::int64_t delay_ms = 0;
  std::string error_message;
};
struct SummaryRetryStart {
  std::optional<CompactionReason> reason;  // nothing: the summary of a branch
};
struct SummaryRetryFinished {};

/// Output of a user command, cleaned (CA-90). `id`: what the caller of run_bash named it.
struct BashOutput {
  std::optional<std::string> id;
  std::string delta;
};

/// A record of an extension was stored.
struct EntryAppended {
  json::object entry;
};

using SessionEvent =
    std::variant<AgentActivity, QueueUpdate, AutoRetryStart, AutoRetryEnd, AgentSettled, ThinkingLevelChanged,
                 SessionInfoChanged, PersistenceFailed, SecondWriterNoticed, CompactionStart, CompactionEnd,
                 SummaryRetryScheduled, SummaryRetryStart, SummaryRetryFinished, BashOutput, EntryAppended>;

/// The protocol form of MO-100 and MO-101. Nothing for events that have none: starts and ends inside a stream that
/// show as message events, and the two that are for people only.
std::optional<json::object> to_json(const SessionEvent& event);

/// Writes events as lines of JSON, the same text that to_json gives. A delta is written without making JSON values: a
/// long answer has half a million of them.
class EventLines {
 public:
  /// The line with its end, valid until the next call; empty for events without a protocol form.
  std::string_view line_of(const SessionEvent& event);

 private:
  void write_delta(const agent::MessageUpdate& update, const ai::BlockDelta& delta);

  std::string line_;
  std::string usage_;  // as JSON, of the last delta
  double usage_key_[4] = {-1, -1, -1, -1};
};

}  // namespace tau::coding
