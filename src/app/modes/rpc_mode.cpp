#include "app/modes/rpc_mode.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "app/modes/print_mode.h"
#include "app/modes/rpc_data.h"
#include "app/modes/rpc_framing.h"
#include "base/files.h"
#include "base/utf8.h"
#include "coding/config/start_model.h"
#include "coding/session/html_export.h"
#include "coding/session/session_fork.h"
#include "coding/session/session_stats.h"

namespace tau::app {

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kReadSize = std::size_t{1} << 16;      // bytes
constexpr std::chrono::milliseconds kPatienceAtEnd{400};     // for commands at work when stdin ends
constexpr std::chrono::milliseconds kPatienceForAbort{400};  // until they have ended after that

constexpr std::string_view kNotSaved =
    "This session has not been saved yet. Wait for the first assistant response before cloning or forking it.";

std::unexpected<Error> refuse(std::string message) {
  return std::unexpected(error(std::move(message)));
}

RpcAnswer nothing() {
  return std::string();
}

RpcAnswer data_of(const json::object& o) {
  return json::to_text(o);
}

RpcAnswer not_cancelled() {
  return data_of({{"cancelled", false}});
}

std::unexpected<Error> missing(std::string_view member) {
  return refuse(fmt::format("{} is missing or is no text", member));
}

std::expected<std::vector<ai::ImageContent>, Error> images_of(const json::object& body) {
  std::vector<ai::ImageContent> images;
  const json::value* list = json::find(body, "images");
  if (list == nullptr || list->is_null()) return images;
  if (!list->is_array()) return refuse("images must be an array");
  for (const json::value& item : list->get_array()) {
    const json::object* o = item.if_object();
    const auto data = o != nullptr ? json::find_string(*o, "data") : std::nullopt;
    const auto type = o != nullptr ? json::find_string(*o, "mimeType") : std::nullopt;
    if (!data || !type) return refuse("each image needs data (base64) and mimeType");
    images.push_back({std::string(*data), std::string(*type), {}});
  }
  return images;
}

json::array texts(const std::vector<std::string>& list) {
  json::array out;
  for (const std::string& text : list)
    out.emplace_back(text);
  return out;
}

std::expected<agent::QueueMode, Error> queue_mode_of(const RpcRequest& request) {
  const auto mode = request.text("mode");
  if (mode == "all") return agent::QueueMode::kAll;
  if (mode == "one-at-a-time") return agent::QueueMode::kOneAtATime;
  return refuse("mode must be all or one-at-a-time");
}

json::object model_data(const ai::Model& model) {
  return ai::to_json(model);
}

}  // namespace

class RpcServer::Server {
 public:
  Server(const Arguments& arguments, std::unique_ptr<Runtime>& runtime, Output& out)
      : arguments_(arguments), runtime_(runtime), out_(out) {}

  asio::awaitable<int> serve();
  void stop();

 private:
  using Now = RpcAnswer (Server::*)(const RpcRequest&);
  using Later = asio::awaitable<RpcAnswer> (Server::*)(RpcRequest);
  struct Command {
    std::string_view name;
    Now now = nullptr;
    Later later = nullptr;
    bool replaces_session = false;
    void (Server::*starts)(RpcRequest) = nullptr;  // replies itself
  };
  static const Command* find_command(std::string_view name);

  coding::AgentSession& agent() { return *runtime_->agent; }
  coding::Session& session() { return *runtime_->session; }
  coding::Settings& settings() { return *runtime_->settings; }

  void handle(const std::string& line);
  asio::awaitable<void> finish_later(Later handler, RpcRequest request, bool replaces_session);
  void listen();
  void write_output(const coding::BashOutput& output);
  void write(std::string_view line);

  // A condition: `changed` wakes all who wait for it.
  void changed() { condition_->cancel(); }
  asio::awaitable<void> until_changed();
  asio::awaitable<bool> until_no_work(std::chrono::milliseconds limit);
  bool idle() const { return runs_ == 0 && waiting_ == 0; }

  void abort_all();
  asio::awaitable<void> settle();
  asio::awaitable<std::expected<void, Error>> replace(std::shared_ptr<coding::Session> session, fs::path cwd);
  std::optional<fs::path> session_folder();
  RpcAnswer change_setting(std::string_view path, const json::value& value);
  RpcAnswer queue(const RpcRequest& request, bool steering);

  struct Prompt {
    std::string text;
    std::vector<ai::ImageContent> images;
  };
  std::expected<Prompt, Error> read_prompt(const RpcRequest& request);
  std::optional<RpcAnswer> refuse_or_queue(const RpcRequest& request, Prompt& prompt);
  void prompt(RpcRequest request);
  asio::awaitable<void> run_prompt(RpcRequest request, Prompt prompt);
  RpcAnswer steer(const RpcRequest& request) { return queue(request, true); }
  RpcAnswer follow_up(const RpcRequest& request) { return queue(request, false); }
  RpcAnswer clear_queue(const RpcRequest& request);
  RpcAnswer get_state(const RpcRequest& request);
  RpcAnswer get_messages(const RpcRequest& request);
  RpcAnswer set_model(const RpcRequest& request);
  RpcAnswer cycle_model(const RpcRequest& request);
  RpcAnswer get_available_models(const RpcRequest& request);
  RpcAnswer set_thinking_level(const RpcRequest& request);
  RpcAnswer cycle_thinking_level(const RpcRequest& request);
  RpcAnswer get_available_thinking_levels(const RpcRequest& request);
  RpcAnswer set_session_name(const RpcRequest& request);
  RpcAnswer get_session_stats(const RpcRequest& request);
  RpcAnswer get_entries(const RpcRequest& request);
  RpcAnswer get_tree(const RpcRequest& request);
  RpcAnswer get_fork_messages(const RpcRequest& request);
  RpcAnswer get_last_assistant_text(const RpcRequest& request);
  RpcAnswer get_commands(const RpcRequest& request);
  RpcAnswer export_html(const RpcRequest& request);
  RpcAnswer abort_bash(const RpcRequest& request);
  void abort_retry(RpcRequest request);
  void answer_retry_aborts();
  RpcAnswer set_steering_mode(const RpcRequest& request);
  RpcAnswer set_follow_up_mode(const RpcRequest& request);
  RpcAnswer set_auto_compaction(const RpcRequest& request);
  RpcAnswer set_auto_retry(const RpcRequest& request);
  asio::awaitable<RpcAnswer> compact(RpcRequest request);
  asio::awaitable<RpcAnswer> abort(RpcRequest request);
  asio::awaitable<RpcAnswer> bash(RpcRequest request);
  asio::awaitable<RpcAnswer> new_session(RpcRequest request);
  asio::awaitable<RpcAnswer> switch_session(RpcRequest request);
  asio::awaitable<RpcAnswer> fork(RpcRequest request);
  asio::awaitable<RpcAnswer> clone(RpcRequest request);

  const Arguments& arguments_;
  std::unique_ptr<Runtime>& runtime_;
  Output& out_;
  std::optional<asio::any_io_executor> executor_;
  std::optional<asio::steady_timer> condition_;
  std::optional<asio::posix::stream_descriptor> input_;
  std::function<void()> unsubscribe_;
  std::vector<RpcRequest> retry_aborts_;  // that wait for the end of the retry
  int compactions_ = 0;                   // compact commands at work
  int runs_ = 0;                          // prompts whose run has not ended
  int waiting_ = 0;                       // commands that will be answered later
  bool replacing_ = false;
  bool quiet_ = false;    // events are not written any more
  bool stopped_ = false;  // nor is anything else
};

// ---- the loop ----------------------------------------------------------------------------------------------------

asio::awaitable<int> RpcServer::Server::serve() {
  executor_ = co_await asio::this_coro::executor;
  condition_.emplace(*executor_, asio::steady_timer::time_point::max());
  input_.emplace(*executor_, ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  listen();
  LineSplitter lines;
  std::string buffer(kReadSize, '\0');
  while (!stopped_ && !out_.closed()) {
    boost::system::error_code failed;
    const std::size_t size =
        co_await input_->async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, failed));
    if (failed) break;
    lines.feed(std::string_view(buffer).substr(0, size));
    while (auto line = lines.next()) {
      handle(*line);
      while (replacing_ && !stopped_)
        co_await until_changed();
    }
  }
  if (!stopped_) handle(lines.rest());

  quiet_ = true;  // the client has said all that it wants; what it asked for is still answered
  agent().abort();
  const bool done = co_await until_no_work(kPatienceAtEnd);
  if (!done) {
    abort_all();
    co_await until_no_work(kPatienceForAbort);
  }
  if (unsubscribe_) unsubscribe_();
  co_return out_.closed() ? 1 : 0;
}

void RpcServer::Server::stop() {
  stopped_ = true;
  quiet_ = true;
  if (runtime_) abort_all();
  if (input_) input_->close();
  if (condition_) changed();
}

void RpcServer::Server::write(std::string_view line) {
  if (!stopped_) out_.write(line);
  if (out_.closed() && input_ && input_->is_open()) {  // nobody listens: end (FF-95)
    abort_all();
    input_->close();
  }
}

void RpcServer::Server::listen() {
  unsubscribe_ =
      agent().subscribe([this, lines = std::make_shared<coding::EventLines>()](const coding::SessionEvent& event) {
        if (const auto* failed = std::get_if<coding::PersistenceFailed>(&event)) tell("Warning", failed->message);
        if (const auto* noticed = std::get_if<coding::SecondWriterNoticed>(&event)) tell("Warning", noticed->message);
        if (const auto* output = std::get_if<coding::BashOutput>(&event)) return write_output(*output);
        const std::string_view line = quiet_ ? std::string_view() : lines->line_of(event);
        if (!line.empty()) write(line);
        if (std::holds_alternative<coding::AutoRetryEnd>(event)) answer_retry_aborts();
      });
}

/// The id is written as the client wrote it.
void RpcServer::Server::write_output(const coding::BashOutput& output) {
  std::string line = R"({"type":"bash_execution_update")";
  if (output.id) line += fmt::format(",\"id\":{}", *output.id);
  line += R"(,"delta":)";
  json::write(line, output.delta);
  write(line + "}\n");
}

void RpcServer::Server::handle(const std::string& line) {
  if (utf8::is_blank(line)) return;  // FF-92
  auto request = read_request(line);
  if (!request) return write(request.error().reply);
  if (request->type == "extension_ui_response") return;  // for a dialog that nobody waits for any more (MO-160)
  const Command* command = find_command(request->type);
  if (command == nullptr) {
    const std::string message = fmt::format("Unknown command: {}", request->type.substr(0, 200));
    return write(reply_line(*request, refuse(message)));
  }
  if (command->starts != nullptr) return (this->*command->starts)(*std::move(request));
  if (command->now != nullptr) {
    RpcAnswer answer = (this->*command->now)(*request);
    return write(reply_line(*request, answer));
  }
  ++waiting_;
  if (command->replaces_session) replacing_ = true;
  asio::co_spawn(*executor_, finish_later(command->later, *std::move(request), command->replaces_session),
                 asio::detached);
}

asio::awaitable<void> RpcServer::Server::finish_later(Later handler, RpcRequest request, bool replaces_session) {
  RpcAnswer answer = nothing();
  try {
    answer = co_await (this->*handler)(request);
  } catch (const std::exception& e) {
    answer = refuse(e.what());
  }
  write(reply_line(request, answer));
  --waiting_;
  if (replaces_session) replacing_ = false;
  changed();
}

asio::awaitable<void> RpcServer::Server::until_changed() {
  boost::system::error_code ignored;
  co_await condition_->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<bool> RpcServer::Server::until_no_work(std::chrono::milliseconds limit) {
  asio::steady_timer deadline(*executor_, limit);
  bool expired = false;
  deadline.async_wait([&expired, this](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    expired = true;
    changed();
  });
  while (!idle() && !expired && !stopped_)
    co_await until_changed();
  const bool done = idle();
  if (!expired) {  // its handler must not run after this frame
    deadline.cancel();
    co_await asio::post(*executor_, asio::use_awaitable);
  }
  co_return done;
}

void RpcServer::Server::abort_all() {
  agent().abort();
  agent().abort_bash();
}

// ---- prompts -----------------------------------------------------------------------------------------------------

std::expected<RpcServer::Server::Prompt, Error> RpcServer::Server::read_prompt(const RpcRequest& request) {
  const auto message = request.text("message");
  if (!message) return missing("message");
  auto images = images_of(request.body);
  if (!images) return std::unexpected(std::move(images.error()));
  auto text = expand_prompt(*runtime_, std::string(*message));
  if (!text) return std::unexpected(std::move(text.error()));
  return Prompt{*std::move(text), *std::move(images)};
}

/// The answer to a prompt that starts no run; nothing when it does (MO-130).
std::optional<RpcAnswer> RpcServer::Server::refuse_or_queue(const RpcRequest& request, Prompt& prompt) {
  if (agent().compacting() && !agent().running()) {
    return refuse("Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry.");
  }
  if (runs_ > 0 || agent().running()) {
    const std::string_view behaviour = request.text("streamingBehavior").value_or("");
    if (behaviour.empty()) {
      return refuse(
          "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.");
    }
    if (behaviour == "followUp") {
      agent().follow_up(std::move(prompt.text), std::move(prompt.images));
    } else {
      agent().steer(std::move(prompt.text), std::move(prompt.images));
    }
    return nothing();
  }
  if (is_placeholder(agent().model())) return refuse(coding::no_models_help(*runtime_->registry));
  if (!runtime_->registry->has_auth(agent().model().provider)) {
    return refuse(fmt::format("No API key found for {}.\n{}", agent().model().provider,
                              coding::no_models_help(*runtime_->registry)));
  }
  return std::nullopt;
}

/// Decides at once, so that the next line sees a run at work. The reply comes when the session has accepted the prompt,
/// before the first event of its run (MO-123).
void RpcServer::Server::prompt(RpcRequest request) {
  auto prompt = read_prompt(request);
  if (!prompt) return write(reply_line(request, std::unexpected(std::move(prompt.error()))));
  if (const auto answer = refuse_or_queue(request, *prompt)) return write(reply_line(request, *answer));
  ++runs_;
  ++waiting_;
  asio::co_spawn(*executor_, run_prompt(std::move(request), *std::move(prompt)), asio::detached);
}

asio::awaitable<void> RpcServer::Server::run_prompt(RpcRequest request, Prompt prompt) {
  bool replied = false;
  const auto reply = [&](const RpcAnswer& answer) {
    if (std::exchange(replied, true)) return;
    write(reply_line(request, answer));
    --waiting_;
    changed();
  };
  try {
    coding::PromptOptions options;
    options.on_accepted = [&] { reply(nothing()); };
    const auto sent = co_await agent().prompt(std::move(prompt.text), std::move(prompt.images), std::move(options));
    reply(sent ? nothing() : RpcAnswer(std::unexpected(sent.error())));
  } catch (const std::exception& e) {
    if (replied) tell("Error", e.what());
    reply(refuse(e.what()));
  }
  --runs_;
  changed();
}

RpcAnswer RpcServer::Server::queue(const RpcRequest& request, bool steering) {
  auto prompt = read_prompt(request);
  if (!prompt) return std::unexpected(std::move(prompt.error()));
  if (steering) {
    agent().steer(std::move(prompt->text), std::move(prompt->images));
  } else {
    agent().follow_up(std::move(prompt->text), std::move(prompt->images));
  }
  return nothing();
}

RpcAnswer RpcServer::Server::clear_queue(const RpcRequest&) {
  const coding::AgentSession::Queues cleared = agent().clear_queues();
  return data_of({{"steering", texts(cleared.steering)}, {"followUp", texts(cleared.follow_up)}});
}

asio::awaitable<RpcAnswer> RpcServer::Server::abort(RpcRequest) {
  agent().abort();
  while ((runs_ > 0 || compactions_ > 0 || agent().running()) && !stopped_)
    co_await until_changed();
  co_return nothing();
}

// ---- state -------------------------------------------------------------------------------------------------------

RpcAnswer RpcServer::Server::get_state(const RpcRequest&) {
  const auto mode = [](agent::QueueMode m) { return m == agent::QueueMode::kAll ? "all" : "one-at-a-time"; };
  json::object state{
      {"model", model_data(agent().model())},          {"thinkingLevel", ai::to_string(agent().thinking_level())},
      {"isStreaming", runs_ > 0 || agent().running()}, {"isCompacting", agent().compacting()},
      {"steeringMode", mode(agent().steering_mode())}, {"followUpMode", mode(agent().follow_up_mode())}};
  if (const auto file = session().file()) state.emplace("sessionFile", file->string());
  state.emplace("sessionId", session().id());
  if (const auto name = session().name()) state.emplace("sessionName", *name);
  state.emplace("autoCompactionEnabled", agent().auto_compaction());
  state.emplace("messageCount", agent().messages().size());
  const coding::AgentSession::Queues& queues = agent().queues();
  state.emplace("pendingMessageCount", queues.steering.size() + queues.follow_up.size());
  return data_of(state);
}

RpcAnswer RpcServer::Server::get_messages(const RpcRequest&) {
  return messages_data(agent().messages());
}

RpcAnswer RpcServer::Server::get_session_stats(const RpcRequest&) {
  const coding::SessionStats stats = coding::stats_of(session().index());
  json::object data;
  if (const auto file = session().file()) data.emplace("sessionFile", file->string());
  data.emplace("sessionId", session().id());
  data.emplace("userMessages", stats.user_messages);
  data.emplace("assistantMessages", stats.assistant_messages);
  data.emplace("toolCalls", stats.tool_calls);
  data.emplace("toolResults", stats.tool_results);
  data.emplace("totalMessages", stats.total_messages);
  data.emplace("tokens", json::object{{"input", json::number(stats.input)},
                                      {"output", json::number(stats.output)},
                                      {"cacheRead", json::number(stats.cache_read)},
                                      {"cacheWrite", json::number(stats.cache_write)},
                                      {"total", json::number(stats.total_tokens())}});
  data.emplace("cost", json::number(stats.cost));
  if (const auto usage = agent().context_usage()) {
    json::object context{
        {"tokens", nullptr}, {"contextWindow", json::number(usage->context_window)}, {"percent", nullptr}};
    if (usage->tokens) context["tokens"] = json::number(*usage->tokens);
    if (usage->percent) context["percent"] = json::number(*usage->percent);
    data.emplace("contextUsage", std::move(context));
  }
  return data_of(data);
}

RpcAnswer RpcServer::Server::get_entries(const RpcRequest& request) {
  return entries_data(session(), request.text("since"));
}

RpcAnswer RpcServer::Server::get_tree(const RpcRequest&) {
  return tree_data(session());
}

RpcAnswer RpcServer::Server::get_fork_messages(const RpcRequest&) {
  return fork_messages_data(session());
}

RpcAnswer RpcServer::Server::get_last_assistant_text(const RpcRequest&) {
  json::object data;
  if (const auto text = agent().last_reply_text()) data.emplace("text", *text);
  return data_of(data);
}

RpcAnswer RpcServer::Server::get_commands(const RpcRequest&) {
  return commands_data(*runtime_);
}

/// MO-61. The path is told as it was given.
RpcAnswer RpcServer::Server::export_html(const RpcRequest& request) {
  const auto file = session().file();
  if (!file) return refuse("Cannot export in-memory session to HTML");
  if (!session().is_on_disk()) return refuse("Nothing to export yet - start a conversation first");
  coding::ExportDetails details;
  details.system_prompt = agent().system_prompt();
  for (const agent::AgentTool& tool : agent().tools()) {
    details.tools.push_back(json::object{{"name", tool.declaration.name},
                                         {"description", tool.declaration.description},
                                         {"parameters", tool.declaration.parameters}});
  }
  const std::string name(request.text("outputPath").value_or(coding::html_file_name(*file)));
  std::error_code failed;
  const auto written = coding::export_html(session(), resolve_path(name, fs::current_path(failed)), details);
  if (!written) return std::unexpected(written.error());
  return data_of({{"path", name}});
}

RpcAnswer RpcServer::Server::set_session_name(const RpcRequest& request) {
  const auto name = request.text("name");
  if (!name) return missing("name");
  std::string clean = coding::clean_session_name(*name);
  if (clean.empty()) return refuse("Session name cannot be empty");
  agent().set_name(std::move(clean));
  return nothing();
}

RpcAnswer RpcServer::Server::change_setting(std::string_view path, const json::value& value) {
  const auto changed_setting = settings().set(path, value);
  if (!changed_setting)
    tell("Warning", changed_setting.error().message);  // it holds for this run all the same (CA-334)
  return nothing();
}

RpcAnswer RpcServer::Server::set_steering_mode(const RpcRequest& request) {
  const auto mode = queue_mode_of(request);
  if (!mode) return std::unexpected(mode.error());
  agent().set_steering_mode(*mode);
  return change_setting("steeringMode", json::value(*request.text("mode")));
}

RpcAnswer RpcServer::Server::set_follow_up_mode(const RpcRequest& request) {
  const auto mode = queue_mode_of(request);
  if (!mode) return std::unexpected(mode.error());
  agent().set_follow_up_mode(*mode);
  return change_setting("followUpMode", json::value(*request.text("mode")));
}

RpcAnswer RpcServer::Server::set_auto_compaction(const RpcRequest& request) {
  const auto enabled = json::find_bool(request.body, "enabled");
  if (!enabled) return refuse("enabled must be true or false");
  agent().set_auto_compaction(*enabled);
  return change_setting("compaction.enabled", *enabled);
}

RpcAnswer RpcServer::Server::set_auto_retry(const RpcRequest& request) {
  const auto enabled = json::find_bool(request.body, "enabled");
  if (!enabled) return refuse("enabled must be true or false");
  agent().set_auto_retry(*enabled);
  return change_setting("retry.enabled", *enabled);
}

/// Answered between the end of the retry and what follows it (MO-123).
void RpcServer::Server::abort_retry(RpcRequest request) {
  if (!agent().retrying()) return write(reply_line(request, nothing()));
  ++waiting_;
  retry_aborts_.push_back(std::move(request));
  agent().abort_retry();
}

void RpcServer::Server::answer_retry_aborts() {
  for (const RpcRequest& request : std::exchange(retry_aborts_, {})) {
    write(reply_line(request, nothing()));
    --waiting_;
    changed();
  }
}

asio::awaitable<RpcAnswer> RpcServer::Server::compact(RpcRequest request) {
  ++compactions_;
  auto result = co_await agent().compact(std::string(request.text("customInstructions").value_or("")));
  --compactions_;
  changed();
  if (!result) co_return std::unexpected(std::move(result.error()));
  co_return data_of(coding::to_json(*result));
}

// ---- models ------------------------------------------------------------------------------------------------------

RpcAnswer RpcServer::Server::set_model(const RpcRequest& request) {
  const std::string provider(request.text("provider").value_or("undefined"));
  const std::string id(request.text("modelId").value_or("undefined"));
  const auto model = runtime_->registry->find(provider, id);
  if (!model) return refuse(fmt::format("Model not found: {}/{}", provider, id));
  if (!runtime_->registry->has_auth(provider)) return refuse(fmt::format("No API key for {}/{}", provider, id));
  const ai::ThinkingLevel level = coding::level_for(*model, std::nullopt, settings(), agent().thinking_level());
  agent().set_model(*model);
  agent().set_thinking_level(level);
  return data_of(model_data(*model));
}

RpcAnswer RpcServer::Server::cycle_model(const RpcRequest&) {
  const auto candidates = coding::cycle_candidates(*runtime_->registry, runtime_->scope);
  const auto next = coding::cycle_model(candidates, &agent().model(), true);
  if (!next) return std::string("null");
  const auto level = coding::level_for(next->model, next->thinking_level, settings(), agent().thinking_level());
  agent().set_model(next->model);
  agent().set_thinking_level(level);
  return data_of({{"model", model_data(agent().model())},
                  {"thinkingLevel", ai::to_string(agent().thinking_level())},
                  {"isScoped", !runtime_->scope.empty()}});
}

RpcAnswer RpcServer::Server::get_available_models(const RpcRequest&) {
  json::array models;
  for (const ai::Model& model : runtime_->registry->available())
    models.push_back(model_data(model));
  return data_of({{"models", std::move(models)}});
}

RpcAnswer RpcServer::Server::set_thinking_level(const RpcRequest& request) {
  const auto level = ai::thinking_level_from(request.text("level").value_or(""));
  agent().set_thinking_level(level.value_or(ai::ThinkingLevel::kOff));
  return nothing();
}

RpcAnswer RpcServer::Server::cycle_thinking_level(const RpcRequest&) {
  const auto next = coding::next_thinking_level(agent().model(), agent().thinking_level());
  if (!next) return std::string("null");
  agent().set_thinking_level(*next);
  return data_of({{"level", ai::to_string(agent().thinking_level())}});
}

RpcAnswer RpcServer::Server::get_available_thinking_levels(const RpcRequest&) {
  json::array levels;
  for (const ai::ThinkingLevel level : ai::supported_thinking_levels(agent().model()))
    levels.emplace_back(ai::to_string(level));
  return data_of({{"levels", std::move(levels)}});
}

// ---- shell commands ----------------------------------------------------------------------------------------------

asio::awaitable<RpcAnswer> RpcServer::Server::bash(RpcRequest request) {
  const auto command = request.text("command");
  if (!command) co_return missing("command");
  const bool excluded = json::bool_or(request.body, "excludeFromContext");
  const auto record = co_await agent().run_bash(std::string(*command), excluded, request.id);
  if (!record) co_return std::unexpected(record.error());
  co_return bash_data(*record);
}

RpcAnswer RpcServer::Server::abort_bash(const RpcRequest&) {
  agent().abort_bash();
  return nothing();
}

// ---- sessions ----------------------------------------------------------------------------------------------------

/// Ends run and shell commands of the present session. Their events and replies are still written.
asio::awaitable<void> RpcServer::Server::settle() {
  const coding::AgentSession::Queues& queues = agent().queues();
  if (!queues.steering.empty() || !queues.follow_up.empty()) agent().clear_queues();
  abort_all();
  while ((runs_ > 0 || compactions_ > 0 || agent().bash_running()) && !stopped_)
    co_await until_changed();
}

asio::awaitable<std::expected<void, Error>> RpcServer::Server::replace(std::shared_ptr<coding::Session> session,
                                                                       fs::path cwd) {
  co_await settle();
  auto next = start_in(arguments_, *executor_, std::move(session), cwd, NoModel::kPlaceholder);
  if (!next) co_return std::unexpected(std::move(next.error()));
  for (const std::string& warning : (*next)->warnings)
    tell("Warning", warning);
  unsubscribe_();
  runtime_ = *std::move(next);
  listen();
  co_return std::expected<void, Error>{};
}

std::optional<fs::path> RpcServer::Server::session_folder() {
  const auto file = session().file();
  return file ? std::optional(file->parent_path()) : std::nullopt;
}

asio::awaitable<RpcAnswer> RpcServer::Server::new_session(RpcRequest request) {
  std::optional<fs::path> parent;
  if (const auto path = request.text("parentSession")) parent = fs::path(*path);
  const auto folder = session_folder();
  auto fresh = folder ? coding::Session::create(*folder, runtime_->cwd, {}, coding::SyncPolicy::kNever, parent)
                      : coding::Session::in_memory(runtime_->cwd);
  const auto replaced = co_await replace(std::move(fresh), runtime_->cwd);
  if (!replaced) co_return std::unexpected(replaced.error());
  co_return not_cancelled();
}

asio::awaitable<RpcAnswer> RpcServer::Server::switch_session(RpcRequest request) {
  const auto path = request.text("sessionPath");
  if (!path) co_return missing("sessionPath");
  const fs::path file = resolve_path(*path, runtime_->cwd);
  std::error_code ignored;
  if (const auto present = session().file(); present && fs::equivalent(*present, file, ignored)) {
    co_await settle();  // two sessions on one file would take each other for a second writer
  }
  auto opened = coding::Session::open(file, runtime_->cwd);
  if (!opened) co_return std::unexpected(std::move(opened.error()));
  fs::path cwd = (*opened)->cwd();
  if (cwd.empty()) cwd = runtime_->cwd;
  if (!fs::is_directory(cwd, ignored)) {
    co_return refuse(fmt::format(
        "Stored session working directory does not exist: {}\nSession file: {}\nCurrent working directory: {}",
        cwd.string(), file.string(), runtime_->cwd.string()));
  }
  const auto replaced = co_await replace(*std::move(opened), cwd);
  if (!replaced) co_return std::unexpected(replaced.error());
  co_return not_cancelled();
}

asio::awaitable<RpcAnswer> RpcServer::Server::fork(RpcRequest request) {
  auto made = coding::fork_before(session(), request.text("entryId").value_or(""), session_folder().value_or(""));
  if (!made) co_return std::unexpected(std::move(made.error()));
  const auto replaced = co_await replace(std::move(made->session), runtime_->cwd);
  if (!replaced) co_return std::unexpected(replaced.error());
  co_return data_of({{"text", made->text}, {"cancelled", false}});
}

asio::awaitable<RpcAnswer> RpcServer::Server::clone(RpcRequest) {
  const auto leaf = session().leaf();
  if (!leaf || (session().file() && !session().is_on_disk())) co_return refuse(std::string(kNotSaved));
  auto made = coding::fork_at(session(), *leaf, session_folder().value_or(""));
  if (!made) co_return std::unexpected(std::move(made.error()));
  const auto replaced = co_await replace(*std::move(made), runtime_->cwd);
  if (!replaced) co_return std::unexpected(replaced.error());
  co_return not_cancelled();
}

// ---- the table ---------------------------------------------------------------------------------------------------

const RpcServer::Server::Command* RpcServer::Server::find_command(std::string_view name) {
  static const Command kCommands[] = {
      {"prompt", nullptr, nullptr, false, &Server::prompt},
      {"steer", &Server::steer},
      {"follow_up", &Server::follow_up},
      {"abort", nullptr, &Server::abort},
      {"clear_queue", &Server::clear_queue},
      {"new_session", nullptr, &Server::new_session, true},
      {"get_state", &Server::get_state},
      {"get_messages", &Server::get_messages},
      {"set_model", &Server::set_model},
      {"cycle_model", &Server::cycle_model},
      {"get_available_models", &Server::get_available_models},
      {"set_thinking_level", &Server::set_thinking_level},
      {"cycle_thinking_level", &Server::cycle_thinking_level},
      {"get_available_thinking_levels", &Server::get_available_thinking_levels},
      {"set_steering_mode", &Server::set_steering_mode},
      {"set_follow_up_mode", &Server::set_follow_up_mode},
      {"compact", nullptr, &Server::compact},
      {"set_auto_compaction", &Server::set_auto_compaction},
      {"set_auto_retry", &Server::set_auto_retry},
      {"abort_retry", nullptr, nullptr, false, &Server::abort_retry},
      {"bash", nullptr, &Server::bash},
      {"abort_bash", &Server::abort_bash},
      {"get_session_stats", &Server::get_session_stats},
      {"switch_session", nullptr, &Server::switch_session, true},
      {"fork", nullptr, &Server::fork, true},
      {"clone", nullptr, &Server::clone, true},
      {"get_fork_messages", &Server::get_fork_messages},
      {"get_entries", &Server::get_entries},
      {"get_tree", &Server::get_tree},
      {"get_last_assistant_text", &Server::get_last_assistant_text},
      {"set_session_name", &Server::set_session_name},
      {"get_commands", &Server::get_commands},
      {"export_html", &Server::export_html},
  };
  const auto* found =
      std::find_if(std::begin(kCommands), std::end(kCommands), [&](const Command& c) { return c.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

RpcServer::RpcServer(const Arguments& arguments, std::unique_ptr<Runtime>& runtime, Output& out)
    : server_(std::make_unique<Server>(arguments, runtime, out)) {}
RpcServer::~RpcServer() = default;

asio::awaitable<int> RpcServer::serve() {
  return server_->serve();
}

void RpcServer::stop() {
  server_->stop();
}

}  // namespace tau::app
