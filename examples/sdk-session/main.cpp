// A whole coding session inside a C++ program: its own tool, its own message role with all its policies, a session
// file, and every event printed. It needs no key: the scripted provider plays the model.
//
// What to look at:
//   - `Measurement` is a role of this program. Where it is shown, stored and sent is decided in three places that know
//     nothing of each other: render, to_json / from_json, project.
//   - `weigh` is a tool whose call is in the transcript before it runs and whose result follows it.
//   - AgentSession decides when each record reaches the file; this program only listens.
#include <filesystem>
#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "ai/providers/scripted.h"
#include "base/clock.h"
#include "coding/agent_session.h"
#include "coding/roles/convert_to_llm.h"

using namespace tau;
namespace asio = boost::asio;

namespace lab {

struct Measurement {
  static constexpr std::string_view role = "measurement";  // stable: it is in files
  static constexpr int version = 1;
  std::string what;
  double grams = 0;
  ai::Milliseconds timestamp = 0;
};

// ---- storage: all of it, as it was measured -----------------------------------------------------------------------

json::object to_json(const Measurement& m) {
  return {{"role", Measurement::role}, {"what", m.what}, {"grams", m.grams}, {"timestamp", m.timestamp}};
}

std::expected<Measurement, Error> from_json(std::type_identity<Measurement>, const json::object& o) {
  const auto what = json::find_string(o, "what");
  if (!what) return std::unexpected(Error{"a measurement of nothing"});
  return Measurement{std::string(*what), json::number_or(o, "grams"),
                     static_cast<ai::Milliseconds>(json::number_or(o, "timestamp"))};
}

// ---- model: one sentence, made at each request ---------------------------------------------------------------------

std::vector<ai::MessageRef> project(const Measurement& m) {
  std::vector<ai::UserBlock> content;
  content.emplace_back(ai::TextContent{fmt::format("(The scales say: {} weighs {} g.)", m.what, m.grams), {}, {}});
  std::vector<ai::MessageRef> messages;
  messages.push_back(ai::make_message(ai::Message(ai::UserMessage{std::move(content), m.timestamp, {}})));
  return messages;
}

// ---- screen --------------------------------------------------------------------------------------------------------

std::string render(const Measurement& m) {
  return fmt::format("[scales] {}: {} g", m.what, m.grams);
}

}  // namespace lab

namespace {

constexpr std::string_view kScript = R"({
  "count": "session",
  "turns": [
    { "text": "I shall put it on the scales.",
      "toolCalls": [ { "label": "weigh", "name": "weigh", "arguments": { "what": "the kettle" } } ] },
    { "text": "The scales answered: {{weigh}}" },
    { "text": "Nothing has changed." } ] })";

asio::awaitable<agent::ToolResult> weigh(json::object arguments) {
  agent::ToolResult result;
  const std::string what = json::string_or(arguments, "what");
  result.content.emplace_back(ai::TextContent{fmt::format("{} weighs 842 g", what), {}, {}});
  co_return result;
}

agent::AgentTool weighing_tool() {
  agent::AgentTool tool;
  tool.declaration.name = "weigh";
  tool.declaration.description = "Weighs a thing; the answer is in grams.";
  tool.declaration.parameters = {
      {"type", "object"}, {"properties", {{"what", {{"type", "string"}}}}}, {"required", json::array{"what"}}};
  tool.execute = [](std::string, json::object arguments, std::stop_token, agent::ToolUpdate) {
    return weigh(std::move(arguments));
  };
  return tool;
}

asio::awaitable<std::expected<ai::RequestAuth, Error>> no_key_needed(ai::Model) {
  co_return ai::RequestAuth{};
}

std::string render(const agent::AgentMessage& message) {
  if (const auto* measured = message.as<lab::Measurement>()) return lab::render(*measured);
  if (const auto* user = message.user()) return "> " + ai::text_of(user->content);
  if (const auto* result = message.tool_result()) return "= " + ai::text_of(result->content);
  if (const auto* reply = message.assistant()) return "  " + ai::text_of(*reply);
  return fmt::format("[{}]", message.role());
}

coding::AgentSessionOptions options_for(std::shared_ptr<coding::Session> session) {
  coding::AgentSessionOptions options;
  options.session = std::move(session);
  options.stream = ai::make_scripted_provider({{"lab", std::string(kScript)}});
  options.credentials = no_key_needed;
  options.model = ai::scripted_model("lab");
  options.system_prompt = "You help in a laboratory.";
  options.tools = {weighing_tool()};
  return options;
}

void print(const coding::SessionEvent& event) {
  const auto* activity = std::get_if<coding::AgentActivity>(&event);
  const auto* end = activity != nullptr ? std::get_if<agent::MessageEnd>(&activity->event) : nullptr;
  if (end != nullptr) {
    std::cout << render(end->message) << '\n';
    return;
  }
  const auto o = coding::to_json(event);
  if (!o) return;
  const std::string type = json::string_or(*o, "type");
  if (type != "message_update" && type != "message_start") std::cout << "    (" << type << ")\n";
}

/// One piece of work from beginning to end; false when something is not as it should be.
asio::awaitable<bool> work(coding::AgentSession& session) {
  session.add_custom_message(agent::AgentMessage::of(lab::Measurement{"the lid", 120, now_milliseconds()}));
  const auto sent = co_await session.prompt("How heavy is the kettle?");
  if (!sent) co_return false;
  // `!!` of the user: stored and shown, never sent.
  const auto listed = co_await session.run_bash("echo only for my eyes", true);
  if (!listed) co_return false;
  const auto again = co_await session.prompt("And now?");
  co_return again.has_value() && session.last_reply_text() == "Nothing has changed.";
}

template <class T>
T run(asio::io_context& io, asio::awaitable<T> task) {
  std::optional<T> result;
  asio::co_spawn(io, std::move(task), [&result](std::exception_ptr failure, T value) {
    if (failure) std::rethrow_exception(failure);
    result = std::move(value);
  });
  io.restart();
  io.run();
  return *std::move(result);
}

}  // namespace

int main() {
  coding::add_coding_role<lab::Measurement>();
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tau-sdk-session";
  std::filesystem::create_directories(folder);

  asio::io_context io;
  std::filesystem::path file;
  {
    coding::AgentSession session(io.get_executor(),
                                 options_for(coding::Session::create(folder, std::filesystem::current_path())));
    session.subscribe(print);
    if (!run(io, work(session))) return 1;
    file = *session.session().file();
  }

  // Another day: the measurement comes back as what it was, and the model is told of it, but not of the `!!` command.
  const auto opened = coding::Session::open(file, std::filesystem::current_path());
  if (!opened) return 1;
  const std::vector<agent::AgentMessage> messages = (*opened)->context().messages;
  std::cout << "\nread back:\n";
  for (const agent::AgentMessage& message : messages)
    std::cout << render(message) << '\n';
  const std::size_t sent = coding::convert_to_llm(messages).size();
  std::cout << fmt::format("{} messages, {} of them are sent\n", messages.size(), sent);
  const auto* measured = messages.front().as<lab::Measurement>();
  std::filesystem::remove_all(folder);
  return measured != nullptr && measured->grams == 120 && sent + 1 == messages.size() ? 0 : 1;
}
