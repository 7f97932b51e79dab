#include "agent/scripted_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "agent/agent.h"
#include "agent/faux_provider.h"
#include "agent/role_set.h"

#include "support/run.h"

namespace tau::test {

namespace {

namespace asio = boost::asio;
using namespace agent;  // NOLINT(google-build-using-namespace): the whole file is about it

constexpr auto kNever = std::chrono::steady_clock::time_point::max();

asio::awaitable<void> wait_on(asio::steady_timer& timer) {
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

AgentMessage message_of(const json::value& v) {
  if (v.is_object()) return RoleSet().read(v.as_object());
  ai::UserMessage message;
  message.content = std::vector<ai::UserBlock>{ai::TextContent{std::string(json::view(v.as_string())), {}, {}}};
  message.timestamp = 1;
  return AgentMessage(std::move(message));
}

std::vector<AgentMessage> messages_of(const json::value* v) {
  std::vector<AgentMessage> out;
  if (v == nullptr) return out;
  if (!v->is_array()) return {message_of(*v)};
  for (const json::value& one : v->as_array())
    out.push_back(message_of(one));
  return out;
}

json::array roles_of(const std::vector<AgentMessage>& messages) {
  json::array roles;
  for (const AgentMessage& message : messages)
    roles.emplace_back(message.role());
  return roles;
}

ToolResult tool_result_of(const json::object& o) {
  ToolResult result;
  if (const json::array* content = json::find_array(o, "content")) result.content = ai::user_blocks_from_json(*content);
  if (const json::value* details = json::find(o, "details")) result.details = *details;
  if (const json::array* names = json::find_array(o, "addedToolNames")) {
    for (const json::value& name : *names)
      result.added_tool_names.emplace_back(json::view(name.as_string()));
  }
  result.terminate = json::bool_or(o, "terminate");
  return result;
}

/// The text of a thrown non-Error in the log: its string form.
std::string string_form(const json::value& v) {
  return v.is_string() ? std::string(json::view(v.as_string())) : json::to_text(v);
}

ai::StreamEvent stream_event_of(const json::object& o, const ai::AssistantMessage& partial) {
  const std::string type = json::string_or(o, "type");
  if (type == "start") return {ai::StreamStart{}, partial};
  if (type == "done") return {ai::StreamDone{}, partial};
  if (type == "error") return {ai::StreamError{}, partial};
  const auto index = static_cast<std::size_t>(json::find_integer(o, "contentIndex").value_or(0));
  const ai::BlockKind kind = type.starts_with("text")       ? ai::BlockKind::kText
                             : type.starts_with("thinking") ? ai::BlockKind::kThinking
                                                            : ai::BlockKind::kToolCall;
  if (type.ends_with("_start")) return {ai::BlockStart{kind, index}, partial};
  if (type.ends_with("_end")) return {ai::BlockEnd{kind, index}, partial};
  return {ai::BlockDelta{kind, index, json::find_string(o, "delta").value_or("")}, partial};
}

ai::AssistantMessage reply_of(const json::object& o) {
  auto message = ai::message_from_json(o);
  return std::get<ai::AssistantMessage>(*std::move(message));
}

class Script {
 public:
  explicit Script(const json::object& script) : script_(script) {}

  std::vector<json::value> play() {
    if (const json::array* replies = json::find_array(script_, "responses")) {
      for (const json::value& reply : *replies)
        provider_.replies.push_back(reply.as_object());
    }
    provider_.on_call = [this](int n, const ai::Model& model, const ai::Context& context,
                               const ai::StreamOptions& options,
                               const std::stop_token& stop) { log_call(n, model, context, options, stop); };
    if (json::string_or(script_, "driver", "agent") == "agent") {
      run(io_, drive_agent(this));
    } else {
      run(io_, drive_loop(this));
    }
    return std::move(log_);
  }

 private:
  // ---- the log -----------------------------------------------------------------------------------------------------

  void log(std::string_view kind, json::object line) {
    line["kind"] = kind;
    log_.push_back(normalized(std::move(line)));
  }

  void log_call(int n, const ai::Model& model, const ai::Context& context, const ai::StreamOptions& options,
                const std::stop_token& stop) {
    json::array messages;
    for (const ai::MessageRef& message : context.messages)
      messages.emplace_back(ai::to_json(*message));
    json::array tools;
    for (const ai::Tool& tool : context.tools)
      tools.emplace_back(tool.name);
    json::object o{
        {"reasoning", nullptr}, {"apiKey", nullptr}, {"sessionId", nullptr}, {"signalAborted", stop.stop_requested()}};
    if (options.reasoning) o["reasoning"] = ai::to_string(*options.reasoning);
    if (options.api_key) o["apiKey"] = *options.api_key;
    if (options.session_id) o["sessionId"] = *options.session_id;
    log("call", {{"n", n},
                 {"model", model.id},
                 {"systemPrompt", context.system_prompt.value_or("")},
                 {"messages", std::move(messages)},
                 {"tools", std::move(tools)},
                 {"options", std::move(o)}});
    const json::object* hook = hook_of("streamFn");
    if (hook != nullptr && json::find_integer(*hook, "throwOnCall") == n) {
      throw std::runtime_error(json::string_or(*hook, "message"));
    }
  }

  json::object state_of_agent() const {
    const AgentState& s = agent_->state();
    json::object o{{"isStreaming", s.is_streaming},
                   {"streaming", nullptr},
                   {"pendingToolCalls", json::array(s.pending_tool_calls.begin(), s.pending_tool_calls.end())},
                   {"roles", roles_of(s.messages)},
                   {"errorMessage", nullptr},
                   {"queued", agent_->has_queued_messages()}};
    if (s.streaming_role) o["streaming"] = *s.streaming_role;
    if (s.error_message) o["errorMessage"] = *s.error_message;
    return o;
  }

  void log_event(const AgentEvent& event, const std::stop_token& stop) {
    json::object line{{"event", to_json(event)}};
    if (agent_) {
      line["state"] = state_of_agent();
      line["signalAborted"] = stop.stop_requested();
    }
    log("event", std::move(line));
  }

  void log_action(std::string_view action, const std::exception_ptr& thrown) {
    json::object line{{"action", action}};
    if (thrown) {
      line["throws"] = text_of(thrown);
    } else {
      line["ok"] = true;
    }
    log("action", std::move(line));
  }

  static std::string text_of(const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  // ---- hooks -------------------------------------------------------------------------------------------------------

  const json::object* hook_of(const char* name) const {
    const json::object* hooks = json::find_object(script_, "hooks");
    return hooks != nullptr ? json::find_object(*hooks, name) : nullptr;
  }
  const json::array* hook_list(const char* name) const {
    const json::object* hooks = json::find_object(script_, "hooks");
    return hooks != nullptr ? json::find_array(*hooks, name) : nullptr;
  }
  /// The n-th value of a list hook; null beyond its end.
  static json::value nth(const json::array& list, int n) {
    return static_cast<std::size_t>(n) <= list.size() ? list[static_cast<std::size_t>(n - 1)] : json::value(nullptr);
  }
  static void throw_if_told(const json::value& v) {
    if (const auto* o = v.if_object()) {
      if (const auto text = json::find_string(*o, "throw")) throw std::runtime_error(std::string(*text));
    }
  }
  static void throw_on_call(const json::object& hook, int n) {
    if (json::find_integer(hook, "throwOnCall") == n) throw std::runtime_error(json::string_or(hook, "message"));
  }

  static asio::awaitable<std::vector<AgentMessage>> transform(Script* self, std::vector<AgentMessage> messages,
                                                              std::stop_token stop) {
    const json::object& hook = *self->hook_of("transformContext");
    const int n = ++self->counts_["transformContext"];
    self->log("hook", {{"hook", "transformContext"},
                       {"n", n},
                       {"roles", roles_of(messages)},
                       {"signalAborted", stop.stop_requested()}});
    throw_on_call(hook, n);
    if (const auto keep = json::find_integer(hook, "keepLast"))
      messages.erase(messages.begin(), messages.end() - *keep);
    co_return messages;
  }

  static asio::awaitable<std::vector<ai::MessageRef>> convert(Script* self, std::vector<AgentMessage> messages) {
    const int n = ++self->counts_["convertToLlm"];
    self->log("hook", {{"hook", "convertToLlm"}, {"n", n}, {"roles", roles_of(messages)}});
    throw_on_call(*self->hook_of("convertToLlm"), n);
    co_return standard_messages(messages);
  }

  static asio::awaitable<std::optional<std::string>> api_key(Script* self, std::string provider) {
    const int n = ++self->counts_["getApiKey"];
    const json::value v = nth(*self->hook_list("getApiKey"), n);
    self->log("hook", {{"hook", "getApiKey"}, {"n", n}, {"provider", provider}, {"returns", v}});
    throw_if_told(v);
    std::optional<std::string> key;
    if (v.is_string()) key = std::string(json::view(v.as_string()));
    co_return key;
  }

  static asio::awaitable<BeforeToolCall> before(Script* self, ToolCallInfo info, std::stop_token stop) {
    self->log("hook", {{"hook", "beforeToolCall"},
                       {"toolCallId", info.call.id},
                       {"args", info.arguments},
                       {"contextRoles", roles_of(info.context.messages)},
                       {"signalAborted", stop.stop_requested()}});
    BeforeToolCall answer;
    const json::object* told = json::find_object(*self->hook_of("beforeToolCall"), info.call.id);
    if (told == nullptr) co_return answer;
    if (json::bool_or(*told, "abort")) self->agent_->abort();
    throw_if_told(*told);
    if (const json::object* changes = json::find_object(*told, "mutate")) {
      answer.arguments = info.arguments;
      for (const auto& member : *changes)
        (*answer.arguments)[member.key()] = member.value();
    }
    if (const json::object* returned = json::find_object(*told, "return")) {
      answer.block = json::bool_or(*returned, "block");
      answer.reason = json::string_or(*returned, "reason");
      answer.terminate = json::bool_or(*returned, "terminate");
    }
    co_return answer;
  }

  static asio::awaitable<AfterToolCall> after(Script* self, ToolCallInfo info, json::object result, bool is_error,
                                              std::stop_token stop) {
    self->log("hook", {{"hook", "afterToolCall"},
                       {"toolCallId", info.call.id},
                       {"isError", is_error},
                       {"result", std::move(result)},
                       {"contextRoles", roles_of(info.context.messages)},
                       {"signalAborted", stop.stop_requested()}});
    AfterToolCall change;
    const json::object* told = json::find_object(*self->hook_of("afterToolCall"), info.call.id);
    if (told == nullptr) co_return change;
    throw_if_told(*told);
    if (const json::object* returned = json::find_object(*told, "return")) {
      if (const json::array* content = json::find_array(*returned, "content"))
        change.content = ai::user_blocks_from_json(*content);
      if (const json::value* details = json::find(*returned, "details")) change.details = *details;
      change.is_error = json::find_bool(*returned, "isError");
      change.terminate = json::find_bool(*returned, "terminate");
    }
    co_return change;
  }

  static asio::awaitable<bool> should_stop(Script* self, TurnInfo turn) {
    const int n = ++self->counts_["shouldStopAfterTurn"];
    json::value v = nth(*self->hook_list("shouldStopAfterTurn"), n);
    if (v.is_null()) v = false;
    self->log("hook", {{"hook", "shouldStopAfterTurn"},
                       {"n", n},
                       {"toolResults", turn.tool_results.size()},
                       {"contextRoles", roles_of(turn.context.messages)},
                       {"newRoles", roles_of(turn.new_messages)},
                       {"returns", v}});
    throw_if_told(v);
    co_return v.as_bool();
  }

  static asio::awaitable<NextTurn> prepare(Script* self, TurnInfo turn) {
    const int n = ++self->counts_["prepareNextTurn"];
    const json::value v = nth(*self->hook_list("prepareNextTurn"), n);
    self->log(
        "hook",
        {{"hook", "prepareNextTurn"}, {"n", n}, {"contextRoles", roles_of(turn.context.messages)}, {"returns", v}});
    NextTurn next;
    if (!v.is_object()) co_return next;
    const json::object& told = v.as_object();
    if (const auto prompt = json::find_string(told, "systemPrompt")) {
      next.context = turn.context;
      next.context->system_prompt = std::string(*prompt);
    }
    if (const auto model = json::find_string(told, "model")) next.model = faux_model(std::string(*model));
    if (const auto level = json::find_string(told, "thinkingLevel")) {
      next.thinking_level = ai::thinking_level_from(*level);
    }
    if (const json::array* actions = json::find_array(told, "do")) {
      for (const json::value& action : *actions)
        self->act(action.as_object());
    }
    co_return next;
  }

  static asio::awaitable<std::vector<AgentMessage>> poll(Script* self, const char* hook, const char* field) {
    const int n = ++self->counts_[hook];
    std::vector<AgentMessage> messages;
    if (const json::array* polls = json::find_array(self->script_, field)) {
      const json::value v = nth(*polls, n);
      if (!v.is_null()) messages = messages_of(&v);
    }
    self->log("hook", {{"hook", hook}, {"n", n}, {"returns", messages.size()}});
    co_return messages;
  }

  /// In pi a listener rewrites the message of a message_end in place; here this hook replaces it before the event.
  static asio::awaitable<AgentMessage> settle(Script* self, AgentMessage message) {
    if (const json::array* triggers = json::find_array(self->script_, "on")) {
      for (const json::value& trigger : *triggers) {
        const json::object& on = *json::find_object(trigger.as_object(), "on");
        if (json::string_or(on, "type") != "message_end" || json::string_or(on, "role") != message.role()) continue;
        for (const json::value& action : *json::find_array(trigger.as_object(), "do")) {
          const json::object* changes = json::find_object(action.as_object(), "mutateMessage");
          if (changes == nullptr || !self->mutated_.insert({&trigger, true}).second) continue;
          json::object o = message.to_json();
          for (const auto& member : *changes)
            o[member.key()] = member.value();
          message = RoleSet().read(o);
        }
      }
    }
    co_return message;
  }

  LoopConfig config() {
    LoopConfig config;
    config.model = faux_model();
    config.stream = provider_.stream();
    if (const json::object* hook = hook_of("streamFn"); hook != nullptr && hook->contains("scriptedStream")) {
      config.stream = [this](ai::Model model, ai::Context context, ai::StreamOptions options, ai::EventSink sink,
                             std::stop_token stop) {
        return raw_stream(this, std::move(model), std::move(context), std::move(options), std::move(sink),
                          std::move(stop));
      };
    }
    if (json::string_or(script_, "toolExecution") == "sequential")
      config.tool_execution = ToolExecutionMode::kSequential;
    if (const auto id = json::find_string(script_, "sessionId")) config.options.session_id = std::string(*id);
    if (hook_of("transformContext") != nullptr) {
      config.transform_context = [this](std::vector<AgentMessage> messages, std::stop_token stop) {
        return transform(this, std::move(messages), std::move(stop));
      };
    }
    if (hook_of("convertToLlm") != nullptr) {
      config.convert_to_llm = [this](std::vector<AgentMessage> messages) { return convert(this, std::move(messages)); };
    }
    if (hook_list("getApiKey") != nullptr) {
      config.get_api_key = [this](std::string provider) { return api_key(this, std::move(provider)); };
    }
    if (hook_of("beforeToolCall") != nullptr) {
      config.before_tool_call = [this](ToolCallInfo info, std::stop_token stop) { return before(this, info, stop); };
    }
    if (hook_of("afterToolCall") != nullptr) {
      config.after_tool_call = [this](ToolCallInfo info, const ToolResult& result, bool is_error,
                                      std::stop_token stop) {
        return after(this, info, to_json(result), is_error, stop);
      };
    }
    if (hook_list("shouldStopAfterTurn") != nullptr) {
      config.should_stop_after_turn = [this](TurnInfo turn, std::stop_token) { return should_stop(this, turn); };
    }
    if (hook_list("prepareNextTurn") != nullptr) {
      config.prepare_next_turn = [this](TurnInfo turn, std::stop_token) { return prepare(this, turn); };
    }
    config.settle_message = [this](AgentMessage message) { return settle(this, std::move(message)); };
    return config;
  }

  static asio::awaitable<ai::AssistantMessage> raw_stream(Script* self, ai::Model model, ai::Context context,
                                                          ai::StreamOptions options, ai::EventSink sink,
                                                          std::stop_token stop) {
    self->log_call(++self->provider_.calls, model, context, options, stop);
    const json::object& hook = *self->hook_of("streamFn");
    for (const json::value& v : *json::find_array(hook, "events")) {
      const json::object& o = v.as_object();
      const json::object* message = json::find_object(o, o.contains("partial") ? "partial" : "message");
      const ai::AssistantMessage partial = reply_of(*message);
      const ai::StreamEvent event = stream_event_of(o, partial);
      Completion wait = sink(event);
      if (wait) co_await *std::move(wait);
    }
    co_return reply_of(*json::find_object(hook, "final"));
  }

  // ---- tools -------------------------------------------------------------------------------------------------------

  asio::steady_timer& gate(const std::string& name) {
    auto& timer = gates_[name];
    if (!timer) timer = std::make_unique<asio::steady_timer>(io_, kNever);
    return *timer;
  }

  void release(const std::string& name) { gate(name).expires_at(std::chrono::steady_clock::time_point::min()); }

  static asio::awaitable<void> late(Script* self, ToolUpdate update, ToolResult partial) {
    asio::steady_timer timer(self->io_, std::chrono::milliseconds(2));
    co_await wait_on(timer);
    update(std::move(partial));
  }

  static asio::awaitable<ToolResult> execute(Script* self, json::object tool, std::string id, json::object arguments,
                                             std::stop_token stop, ToolUpdate update) {
    self->log("execute", {{"toolCallId", id}, {"args", arguments}, {"signalAborted", stop.stop_requested()}});
    const json::array* steps = nullptr;
    if (const json::object* all = json::find_object(tool, "steps")) {
      steps = json::find_array(*all, id);
      if (steps == nullptr) steps = json::find_array(*all, "*");
    }
    if (steps == nullptr) co_return text_result("ok");
    for (const json::value& v : *steps) {
      const json::object& step = v.as_object();
      if (const auto name = json::find_string(step, "wait")) {
        asio::steady_timer& timer = self->gate(std::string(*name));
        while (timer.expiry() == kNever)
          co_await wait_on(timer);
      } else if (step.contains("waitAbort")) {
        asio::steady_timer timer(self->io_, kNever);
        const std::stop_callback wake(stop, [&] { asio::post(self->io_, [&timer] { timer.cancel(); }); });
        while (!stop.stop_requested())
          co_await wait_on(timer);
      } else if (const json::object* partial = json::find_object(step, "update")) {
        update(tool_result_of(*partial));
      } else if (const json::object* late_partial = json::find_object(step, "lateUpdate")) {
        asio::co_spawn(self->io_, late(self, update, tool_result_of(*late_partial)), asio::detached);
      } else if (step.contains("throw") || step.contains("throwValue")) {
        throw ToolFailure(string_form(step.contains("throw") ? step.at("throw") : step.at("throwValue")));
      } else if (const json::object* result = json::find_object(step, "return")) {
        co_return tool_result_of(*result);
      } else {
        self->act(step);
      }
    }
    co_return text_result("ok");
  }

  std::vector<AgentTool> tools() {
    std::vector<AgentTool> out;
    const json::array* list = json::find_array(script_, "tools");
    if (list == nullptr) return out;
    for (const json::value& v : *list) {
      const json::object& o = v.as_object();
      AgentTool tool;
      tool.declaration = ai::tool_from_json(o);
      tool.label = json::string_or(o, "label");
      if (const auto mode = json::find_string(o, "executionMode")) {
        tool.execution_mode = *mode == "sequential" ? ToolExecutionMode::kSequential : ToolExecutionMode::kParallel;
      }
      if (const json::object* repair = json::find_object(o, "prepareArguments")) {
        tool.prepare_arguments = [repair](json::value arguments) {
          throw_if_told(*repair);
          if (const json::object* rename = json::find_object(*repair, "rename")) {
            for (const auto& name : *rename) {
              auto& object = arguments.as_object();
              const auto from = object.find(name.key());
              if (from == object.end()) continue;
              json::value moved = from->value();
              object.erase(from);
              object[json::view(name.value().as_string())] = std::move(moved);
            }
          }
          return arguments;
        };
      }
      tool.execute = [this, o](std::string id, json::object arguments, std::stop_token stop, ToolUpdate update) {
        return execute(this, o, std::move(id), std::move(arguments), std::move(stop), std::move(update));
      };
      out.push_back(std::move(tool));
    }
    return out;
  }

  // ---- triggers and listeners --------------------------------------------------------------------------------------

  struct Trigger {
    json::object on;
    json::array actions;
    int seen = 0;
    bool done = false;
  };

  bool matches(const json::object& on, const AgentEvent& event) const {
    if (json::string_or(on, "type") != type_of(event)) return false;
    const json::object o = to_json(event);
    if (const auto id = json::find_string(on, "toolCallId"); id && json::find_string(o, "toolCallId") != id)
      return false;
    if (const auto role = json::find_string(on, "role")) {
      const json::object* message = json::find_object(o, "message");
      if (message == nullptr || json::find_string(*message, "role") != role) return false;
    }
    if (const auto update = json::find_string(on, "update")) {
      const json::object* stream_event = json::find_object(o, "assistantMessageEvent");
      if (stream_event == nullptr || json::find_string(*stream_event, "type") != update) return false;
    }
    return true;
  }

  Completion fire(const AgentEvent& event) {
    json::array nested;
    for (Trigger& trigger : triggers_) {
      if (trigger.done || !matches(trigger.on, event)) continue;
      if (++trigger.seen != json::find_integer(trigger.on, "n").value_or(1)) continue;
      trigger.done = true;
      for (const json::value& action : trigger.actions) {
        const json::object& o = action.as_object();
        if (o.contains("promptNested") || o.contains("continueNested") || o.contains("reset") || !nested.empty()) {
          nested.push_back(o);
        } else {
          act(o);
        }
      }
    }
    if (nested.empty()) return std::nullopt;
    return act_all(this, std::move(nested));
  }

  static asio::awaitable<void> act_all(Script* self, json::array actions) {
    for (const json::value& action : actions)
      co_await act_waiting(self, action.as_object());
  }

  static asio::awaitable<void> slow_listener(Script* self, json::object told, std::string type, int sleep) {
    asio::steady_timer timer(self->io_, std::chrono::milliseconds(sleep));
    co_await wait_on(timer);
    self->log("listener", {{"name", told.at("name")},
                           {"phase", "end"},
                           {"type", type},
                           {"isStreaming", self->agent_->state().is_streaming}});
    if (json::string_or(told, "throwOn") != type) co_return;
    int& left =
        self->throws_left_.try_emplace(json::string_or(told, "name"), json::find_integer(told, "times").value_or(1))
            .first->second;
    if (left-- > 0) throw std::runtime_error(fmt::format("listener {} failed", json::string_or(told, "name")));
  }

  Completion listen(const json::object& told, const AgentEvent& event) {
    const json::array& events = *json::find_array(told, "events");
    const auto type = type_of(event);
    if (std::none_of(events.begin(), events.end(),
                     [&](const json::value& v) { return json::view(v.as_string()) == type; }))
      return std::nullopt;
    log("listener", {{"name", told.at("name")}, {"phase", "begin"}, {"type", type}});
    return slow_listener(this, told, std::string(type),
                         static_cast<int>(json::find_integer(told, "sleep").value_or(0)));
  }

  // ---- actions -----------------------------------------------------------------------------------------------------

  /// Actions that are over at once.
  void act(const json::object& action) {
    if (action.contains("abort")) agent_->abort();
    if (const json::value* message = json::find(action, "steer")) agent_->steer(message_of(*message));
    if (const json::value* message = json::find(action, "followUp")) agent_->follow_up(message_of(*message));
    if (const auto name = json::find_string(action, "release")) release(std::string(*name));
    if (const json::object* state = json::find_object(action, "setState")) {
      agent_->state().messages = messages_of(json::find(*state, "messages"));
    }
    if (const json::object* mode = json::find_object(action, "setMode")) {
      if (const auto name = json::find_string(*mode, "steering")) agent_->set_steering_mode(mode_of(*name));
      if (const auto name = json::find_string(*mode, "followUp")) agent_->set_follow_up_mode(mode_of(*name));
    }
  }

  static QueueMode mode_of(std::string_view name) { return name == "all" ? QueueMode::kAll : QueueMode::kOneAtATime; }

  asio::awaitable<void> prompt_of(const json::object& action, const char* key) {
    const json::value& prompt = action.at(key);
    if (!json::bool_or(action, "raw")) return agent_->prompt(messages_of(&prompt));
    std::vector<ai::ImageContent> images;
    if (const json::array* list = json::find_array(action, "images")) {
      for (const json::value& image : *list)
        images.push_back(std::get<ai::ImageContent>(ai::user_block_from_json(image)));
    }
    return agent_->prompt(std::string(json::view(prompt.as_string())), std::move(images));
  }

  /// Awaits an operation and logs how it settled.
  static asio::awaitable<void> logged(Script* self, const char* name, asio::awaitable<void> operation) {
    std::exception_ptr thrown;
    try {
      co_await std::move(operation);
    } catch (...) {
      thrown = std::current_exception();
    }
    self->log_action(name, thrown);
  }

  static asio::awaitable<void> unawaited(Script* self, asio::awaitable<void> operation) {
    co_await std::move(operation);
    self->unawaited_done_ = true;
    self->gate("unawaited").expires_at(std::chrono::steady_clock::time_point::min());
  }

  static asio::awaitable<void> act_waiting(Script* self, json::object action) {
    if (action.contains("prompt")) {
      co_await logged(self, "prompt", self->prompt_of(action, "prompt"));
    } else if (action.contains("promptNested")) {
      co_await logged(self, "prompt", self->prompt_of(action, "promptNested"));
    } else if (action.contains("continue") || action.contains("continueNested")) {
      co_await logged(self, "continue", self->agent_->continue_run());
    } else if (action.contains("promptNoAwait")) {
      asio::co_spawn(self->io_, unawaited(self, self->prompt_of(action, "promptNoAwait")), asio::detached);
      co_await asio::post(self->io_, asio::use_awaitable);
    } else if (action.contains("waitForIdle")) {
      co_await self->agent_->wait_for_idle();
      self->log("action", {{"action", "waitForIdle"}, {"isStreaming", self->agent_->state().is_streaming}});
    } else if (action.contains("awaitPrompt")) {
      while (!self->unawaited_done_)
        co_await wait_on(self->gate("unawaited"));
      self->log("action", {{"action", "prompt(unawaited)"}, {"settled", true}});
    } else if (action.contains("reset")) {
      std::exception_ptr thrown;
      try {
        self->agent_->reset();
      } catch (...) {
        thrown = std::current_exception();
      }
      self->log_action("reset", thrown);
    } else if (const auto milliseconds = json::find_integer(action, "sleep")) {
      asio::steady_timer timer(self->io_, std::chrono::milliseconds(*milliseconds));
      co_await wait_on(timer);
    } else {
      self->act(action);
    }
  }

  // ---- drivers -----------------------------------------------------------------------------------------------------

  void read_triggers() {
    const json::array* list = json::find_array(script_, "on");
    if (list == nullptr) return;
    for (const json::value& v : *list)
      triggers_.push_back({*json::find_object(v.as_object(), "on"), *json::find_array(v.as_object(), "do")});
  }

  static asio::awaitable<void> drive_agent(Script* self) {
    const json::object& script = self->script_;
    AgentOptions options;
    options.loop = self->config();
    options.initial_state.system_prompt = json::string_or(script, "systemPrompt");
    options.initial_state.model = faux_model();
    options.initial_state.tools = self->tools();
    options.initial_state.messages = messages_of(json::find(script, "initialMessages"));
    if (const auto level = json::find_string(script, "thinkingLevel")) {
      options.initial_state.thinking_level = *ai::thinking_level_from(*level);
    }
    options.steering_mode = mode_of(json::string_or(script, "steeringMode"));
    options.follow_up_mode = mode_of(json::string_or(script, "followUpMode"));
    self->agent_ = std::make_unique<Agent>(self->io_.get_executor(), std::move(options));
    self->read_triggers();
    self->agent_->subscribe([self](const AgentEvent& event, const std::stop_token& stop) -> Completion {
      self->log_event(event, stop);
      return std::nullopt;
    });
    if (const json::array* listeners = json::find_array(script, "listeners")) {
      for (const json::value& v : *listeners) {
        self->agent_->subscribe([self, told = v.as_object()](const AgentEvent& event, const std::stop_token&) {
          return self->listen(told, event);
        });
      }
    }
    self->agent_->subscribe(
        [self](const AgentEvent& event, const std::stop_token&) -> Completion { return self->fire(event); });
    if (const json::array* actions = json::find_array(script, "actions")) co_await act_all(self, *actions);
    json::array messages;
    for (const AgentMessage& message : self->agent_->state().messages)
      messages.emplace_back(message.to_json());
    self->log("final", {{"state", self->state_of_agent()}, {"messages", std::move(messages)}});
  }

  static asio::awaitable<void> drive_loop(Script* self) {
    const json::object& script = self->script_;
    LoopConfig config = self->config();
    config.get_steering_messages = [self] { return poll(self, "getSteeringMessages", "steering"); };
    config.get_follow_up_messages = [self] { return poll(self, "getFollowUpMessages", "followUps"); };
    self->read_triggers();
    AgentEventSink sink = [self](const AgentEvent& event) -> Completion {
      self->log_event(event, {});
      return self->fire(event);
    };
    AgentContext context{json::string_or(script, "systemPrompt"), messages_of(json::find(script, "initialMessages")),
                         self->tools()};
    const json::array caller_roles = roles_of(context.messages);
    std::exception_ptr thrown;
    std::vector<AgentMessage> result;
    try {
      if (json::string_or(script, "driver") == "loop") {
        result = co_await run_loop(messages_of(json::find(script, "prompts")), std::move(context), std::move(config),
                                   std::move(sink), {});
      } else {
        result = co_await continue_loop(std::move(context), std::move(config), std::move(sink), {});
      }
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) {
      self->log("reject", {{"message", text_of(thrown)}, {"callerContextRoles", caller_roles}});
    } else {
      self->log("result", {{"newRoles", roles_of(result)}, {"callerContextRoles", caller_roles}});
    }
  }

  const json::object& script_;
  asio::io_context io_;
  FauxProvider provider_;
  std::unique_ptr<Agent> agent_;
  std::vector<Trigger> triggers_;
  std::map<std::string, int> counts_;
  std::map<std::string, int> throws_left_;
  std::map<const void*, bool> mutated_;
  std::map<std::string, std::unique_ptr<asio::steady_timer>> gates_;
  bool unawaited_done_ = false;
  std::vector<json::value> log_;
};

std::string marked(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
      {"prompt: a run is active", "{{ERR_BUSY_PROMPT}}"},
      {"continue: a run is active", "{{ERR_BUSY_CONTINUE}}"},
      {"reset: a run is active", "{{ERR_BUSY_RESET}}"},
      {"continue: the transcript is empty", "{{ERR_CONTINUE_EMPTY}}"},
      {"there is nothing to continue: the transcript is empty", "{{ERR_CONTINUE_EMPTY}}"},
      {"continue: the last message is a reply", "{{ERR_CONTINUE_ASSISTANT}}"},
      {"there is nothing to continue: the last message is a reply", "{{ERR_CONTINUE_ASSISTANT}}"}};
  for (const auto& [start, mark] : kMarks) {
    if (text.starts_with(start)) return std::string(mark);
  }
  const std::size_t cut = text.find(" was not run: the answer reached the output limit");
  if (cut != std::string::npos) return "{{TRUNCATED_TOOL_CALL:" + text.substr(0, cut) + "}}";
  if (text.starts_with("Validation failed for tool")) {
    // Between them stand the schema library's own words.
    return text.substr(0, text.find('\n')) + text.substr(text.find("\n\nReceived arguments:"));
  }
  return text;
}

}  // namespace

json::value normalized(json::value line) {
  if (auto* o = line.if_object()) {
    for (auto& member : *o) {
      if (member.key() == "timestamp" && member.value().is_number()) {
        member.value() = 0;
      } else if (member.key() == "usage" && json::find(member.value(), "cacheRead") != nullptr) {
        member.value() = "<usage>";
      } else {
        member.value() = normalized(std::move(member.value()));
      }
    }
  } else if (auto* a = line.if_array()) {
    for (json::value& item : *a)
      item = normalized(std::move(item));
  } else if (line.is_string()) {
    line = marked(std::string(json::view(line.as_string())));
  }
  return line;
}

std::vector<json::value> play_script(const json::object& script) {
  return Script(script).play();
}

}  // namespace tau::test
