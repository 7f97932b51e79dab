#include "coding/session_player.h"

#include <algorithm>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "base/clock.h"

#include "support/run.h"

namespace tau::test {

namespace {

namespace asio = boost::asio;
using namespace tau::coding;

asio::awaitable<std::expected<ai::RequestAuth, Error>> no_credentials_needed(ai::Model) {
  co_return ai::RequestAuth{};
}

asio::awaitable<agent::ToolResult> answer(std::function<void()> act, std::string text) {
  if (act) act();
  agent::ToolResult result;
  result.content.emplace_back(ai::TextContent{std::move(text), {}, {}});
  co_return result;
}

asio::awaitable<SessionHooks::BeforeCompaction> summary_of(CompactionPreparation preparation, std::string summary) {
  SessionHooks::BeforeCompaction made;
  made.record = CompactionRecord{std::move(summary), preparation.first_kept_id, preparation.tokens_before, {}, {}, {}};
  co_return made;
}

asio::awaitable<void> emit(const ai::EventSink& sink, ai::StreamEvent event) {
  std::optional<asio::awaitable<void>> wait = sink(event);
  if (wait) co_await *std::move(wait);
}

asio::awaitable<ai::AssistantMessage> play(SessionPlayer* player, ai::Model model, ai::Context context,
                                           ai::StreamOptions options, ai::EventSink sink, std::stop_token stop) {
  json::array roles;
  for (const ai::MessageRef& message : context.messages)
    roles.emplace_back(ai::role_of(*message));
  player->log.push_back(json::object{{"call", std::move(roles)}});
  player->requests.push_back(std::move(context));
  player->request_options.push_back(std::move(options));
  PlayedReply reply;
  reply.error = "the test has no further reply";
  if (!player->replies.empty()) {
    reply = player->replies.front();
    player->replies.pop_front();
  }
  ai::AssistantMessage message;
  message.api = model.api;
  message.provider = model.provider;
  message.model = model.id;
  message.timestamp = now_milliseconds();
  message.stop_reason = ai::StopReason::kPending;
  co_await emit(sink, {ai::StreamStart{}, message});
  if (reply.until_abort) {
    asio::steady_timer forever(co_await asio::this_coro::executor, std::chrono::seconds(20));
    const std::stop_callback wake(stop, [&forever] { forever.cancel(); });
    boost::system::error_code ignored;
    if (!stop.stop_requested()) co_await forever.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (!reply.text.empty()) message.content.emplace_back(ai::TextContent{reply.text, {}, {}});
  for (const std::string& id : reply.calls)
    message.content.emplace_back(ai::ToolCall{id, "t", json::object{}, {}, {}, {}, {}});
  message.usage.input = message.usage.total_tokens = reply.tokens;
  message.stop_reason = reply.calls.empty() ? reply.stop : ai::StopReason::kToolUse;
  if (!reply.error.empty()) {
    message.stop_reason = ai::StopReason::kError;
    message.error_message = reply.error;
  }
  if (stop.stop_requested()) {
    message.stop_reason = ai::StopReason::kAborted;
    message.error_message = "Request was aborted";
  }
  const bool failed = message.stop_reason == ai::StopReason::kError || message.stop_reason == ai::StopReason::kAborted;
  if (failed) {
    co_await emit(sink, {ai::StreamError{}, message});
  } else {
    co_await emit(sink, {ai::StreamDone{}, message});
  }
  co_return message;
}

json::array references(const json::array& messages) {
  json::array out;
  for (const json::value& message : messages)
    out.push_back(reference_of(message.as_object()));
  return out;
}

}  // namespace

json::value reference_of(const json::object& message) {
  std::string reference = json::string_or(message, "role");
  if (reference == "assistant") reference += "/" + json::string_or(message, "stopReason");
  if (reference == "toolResult") {
    reference += "/" + json::string_or(message, "toolCallId");
    if (message.at("isError").as_bool()) reference += "/error";
  }
  return json::value(reference);
}

SessionPlayer::SessionPlayer() {
  options.session = Session::create(folder.path(), "/p");
  options.credentials = no_credentials_needed;
  options.stream = [this](ai::Model model, ai::Context context, ai::StreamOptions request, ai::EventSink sink,
                          std::stop_token stop) {
    return play(this, std::move(model), std::move(context), std::move(request), std::move(sink), std::move(stop));
  };
  options.model.id = "m";
  options.model.provider = "p";
  options.model.api = "played";
  options.model.context_window = 100000;
  options.model.max_tokens = 8000;
  options.retry.base_delay = std::chrono::milliseconds(5);
}

void SessionPlayer::start() {
  agent_ = std::make_unique<AgentSession>(io.get_executor(), options);
  agent_->subscribe([this](const SessionEvent& event) { record(event); });
}

void SessionPlayer::prompt(const std::string& text) {
  const auto sent = run(io, agent_->prompt(text));
  ASSERT_TRUE(sent) << sent.error().message;
}

void SessionPlayer::use_tool(std::function<void()> while_running, std::string text) {
  agent::AgentTool tool;
  tool.declaration.name = "t";
  tool.declaration.parameters = {{"type", "object"}};
  tool.execute = [while_running, text](std::string, json::object, std::stop_token, agent::ToolUpdate) {
    return answer(while_running, text);
  };
  options.tools.push_back(std::move(tool));
}

void SessionPlayer::summarise_with(std::string summary) {
  options.hooks.before_compaction = [summary](CompactionPreparation preparation, std::string, std::stop_token) {
    return summary_of(std::move(preparation), summary);
  };
}

void SessionPlayer::on(std::string type, std::function<void()> act, int n) {
  triggers_.push_back({std::move(type), n, std::move(act)});
}

void SessionPlayer::record(const SessionEvent& event) {
  if (const auto* end = std::get_if<CompactionEnd>(&event)) compactions.push_back(*end);
  const auto o = to_json(event);
  if (!o) return;
  const std::string type = json::string_or(*o, "type");
  if (type == "message_update" || type == "tool_execution_update" || type == "bash_execution_update") return;
  json::object line{{"event", type}};
  for (const char* key : {"toolCallId", "steering", "followUp", "attempt", "maxAttempts", "delayMs", "errorMessage",
                          "success", "finalError", "willRetry", "reason", "aborted", "level"}) {
    if (const json::value* member = o->if_contains(key)) line.emplace(key, *member);
  }
  if (const json::object* message = json::find_object(*o, "message")) line["message"] = reference_of(*message);
  if (const json::array* messages = json::find_array(*o, "messages")) line["messages"] = references(*messages);
  if (const json::array* results = json::find_array(*o, "toolResults")) {
    json::array ids;
    for (const json::value& result : *results)
      ids.emplace_back(json::string_or(result.as_object(), "toolCallId"));
    line["toolResults"] = std::move(ids);
  }
  const EntryIndex& index = agent_->session().index();
  int persisted = 0;
  for (EntryNumber n = 0; n < index.size(); ++n) {
    const EntryType entry = index.head(n).type;
    if (entry == EntryType::kMessage || entry == EntryType::kCustomMessage) ++persisted;
  }
  line["persisted"] = persisted;
  line["state"] = agent_->messages().size();
  line["pendingBash"] = agent_->has_pending_bash();
  for (Trigger& trigger : triggers_) {
    if (trigger.type == type && --trigger.left == 0) trigger.act();
  }
  log.push_back(std::move(line));
}

int SessionPlayer::count(const std::string& type) const {
  return static_cast<int>(std::count_if(log.begin(), log.end(), [&](const json::value& line) {
    return json::string_or(line.as_object(), "event") == type;
  }));
}

json::array SessionPlayer::entries() const {
  json::array out;
  const EntryIndex& index = agent_->session().index();
  for (EntryNumber n = 0; n < index.size(); ++n) {
    const Entry entry = index.entry(n);
    json::object line{{"type", entry.type_name()}};
    if (const json::object* message = entry.message()) line["message"] = reference_of(*message);
    if (const auto type = json::find_string(entry.source, "customType")) line["customType"] = *type;
    out.push_back(std::move(line));
  }
  return out;
}

json::array SessionPlayer::state() const {
  json::array out;
  for (const agent::AgentMessage& message : agent_->messages())
    out.push_back(reference_of(message.to_json()));
  return out;
}

}  // namespace tau::test
