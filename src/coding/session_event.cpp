#include "coding/session_event.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "coding/session/entry.h"

namespace tau::coding {

namespace {

/// message_update carries usage and the event instead of the message (MO-100, MO-101).
std::optional<json::object> update_to_json(const agent::MessageUpdate& update) {
  json::object event = ai::to_json(update.event);
  if (const auto* start = std::get_if<ai::BlockStart>(&update.event.what)) {
    const auto* call = std::get_if<ai::ToolCall>(&update.message.content.at(start->index));
    if (call != nullptr) {
      event.emplace("id", call->id);
      event.emplace("toolName", call->name);
    }
  }
  return json::object{{"type", "message_update"},
                      {"usage", ai::to_json(update.message.usage)},
                      {"assistantMessageEvent", std::move(event)}};
}

struct ToJson {
  using Result = std::optional<json::object>;

  Result operator()(const AgentActivity& a) const {
    if (const auto* update = std::get_if<agent::MessageUpdate>(&a.event)) return update_to_json(*update);
    json::object o = agent::to_json(a.event);
    if (std::holds_alternative<agent::AgentEnd>(a.event)) o.emplace("willRetry", a.will_retry);
    return o;
  }
  Result operator()(const QueueUpdate& q) const {
    return json::object{{"type", "queue_update"},
                        {"steering", json::array(q.steering.begin(), q.steering.end())},
                        {"followUp", json::array(q.follow_up.begin(), q.follow_up.end())}};
  }
  Result operator()(const AutoRetryStart& r) const {
    return json::object{{"type", "auto_retry_start"},
                        {"attempt", r.attempt},
                        {"maxAttempts", r.max_attempts},
                        {"delayMs", r.delay_ms},
                        {"errorMessage", r.error_message}};
  }
  Result operator()(const AutoRetryEnd& r) const {
    json::object o{{"type", "auto_retry_end"}, {"success", r.success}, {"attempt", r.attempt}};
    if (r.final_error) o.emplace("finalError", *r.final_error);
    return o;
  }
  Result operator()(const AgentSettled&) const { return json::object{{"type", "agent_settled"}}; }
  Result operator()(const ThinkingLevelChanged& t) const {
    return json::object{{"type", "thinking_level_changed"}, {"level", ai::to_string(t.level)}};
  }
  Result operator()(const SessionInfoChanged& s) const {
    json::object o{{"type", "session_info_changed"}};
    if (s.name) o.emplace("name", *s.name);
    return o;
  }
  Result operator()(const CompactionStart& c) const {
    return json::object{{"type", "compaction_start"}, {"reason", to_string(c.reason)}};
  }
  Result operator()(const CompactionEnd& c) const {
    json::object o{{"type", "compaction_end"}, {"reason", to_string(c.reason)}};
    if (c.result) o.emplace("result", coding::to_json(*c.result));
    o.emplace("aborted", c.aborted);
    o.emplace("willRetry", c.will_retry);
    if (c.error_message) o.emplace("errorMessage", *c.error_message);
    return o;
  }
  Result operator()(const SummaryRetryScheduled& r) const {
    return json::object{{"type", "summarization_retry_scheduled"},
                        {"attempt", r.attempt},
                        {"maxAttempts", r.max_attempts},
                        {"delayMs", r.delay_ms},
                        {"errorMessage", r.error_message}};
  }
  Result operator()(const SummaryRetryStart& r) const {
    json::object o{{"type", "summarization_retry_attempt_start"}};
    o.emplace("source", r.reason ? "compaction" : "branchSummary");
    if (r.reason) o.emplace("reason", to_string(*r.reason));
    return o;
  }
  Result operator()(const SummaryRetryFinished&) const {
    return json::object{{"type", "summarization_retry_finished"}};
  }
  Result operator()(const BashOutput& b) const {
    json::object o{{"type", "bash_execution_update"}};
    if (b.id) o.emplace("id", *b.id);
    o.emplace("delta", b.delta);
    return o;
  }
  Result operator()(const EntryAppended& e) const {
    return json::object{{"type", "entry_appended"}, {"entry", e.entry}};
  }
  Result operator()(const PersistenceFailed&) const { return std::nullopt; }
  Result operator()(const SecondWriterNoticed&) const { return std::nullopt; }
};

}  // namespace

std::string_view to_string(CompactionReason reason) {
  constexpr std::string_view kNames[] = {"manual", "threshold", "overflow"};
  return kNames[static_cast<std::size_t>(reason)];
}

json::object to_json(const CompactionResult& result) {
  json::object o{{"summary", result.summary},
                 {"firstKeptEntryId", id_value(result.first_kept_id)},
                 {"tokensBefore", json::number(result.tokens_before)},
                 {"estimatedTokensAfter", json::number(result.estimated_tokens_after)}};
  if (result.usage) o.emplace("usage", ai::to_json(*result.usage));
  if (result.details) o.emplace("details", *result.details);
  return o;
}

std::optional<json::object> to_json(const SessionEvent& event) {
  return std::visit(ToJson{}, event);
}

std::string_view EventLines::line_of(const SessionEvent& event) {
  line_.clear();
  const auto* activity = std::get_if<AgentActivity>(&event);
  const auto* update = activity != nullptr ? std::get_if<agent::MessageUpdate>(&activity->event) : nullptr;
  const auto* delta = update != nullptr ? std::get_if<ai::BlockDelta>(&update->event.what) : nullptr;
  if (delta != nullptr) {
    write_delta(*update, *delta);
  } else if (const auto o = to_json(event)) {
    json::write(line_, *o);
    line_ += '\n';
  }
  return line_;
}

void EventLines::write_delta(const agent::MessageUpdate& update, const ai::BlockDelta& delta) {
  constexpr std::string_view kTypes[] = {"text_delta", "thinking_delta", "toolcall_delta"};
  const ai::Usage& usage = update.message.usage;
  const double key[4] = {usage.input, usage.output, usage.cache_read, usage.cache_write};
  if (usage_.empty() || !std::equal(std::begin(key), std::end(key), std::begin(usage_key_))) {
    std::copy(std::begin(key), std::end(key), std::begin(usage_key_));
    usage_.clear();
    json::write(usage_, ai::to_json(usage));
  }
  fmt::format_to(
      std::back_inserter(line_),
      R"({{"type":"message_update","usage":{},"assistantMessageEvent":{{"type":"{}","contentIndex":{},"delta":)",
      usage_, kTypes[static_cast<std::size_t>(delta.kind)], delta.index);
  json::write(line_, delta.delta);
  line_ += "}}\n";
}

}  // namespace tau::coding
