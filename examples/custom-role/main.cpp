// A message role of the application's own: a notification ("Reconnecting to the provider") that the user sees and the
// file keeps, and that never reaches the model.
//
// The role is a struct together with its policies: its stored form with a version and a migration, what the model sees
// of it, and, because this program has a screen, how it is shown. Leave one out and this file does not compile.
#include <filesystem>
#include <fstream>
#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "agent/agent.h"
#include "agent/role_set.h"
#include "ai/providers/scripted.h"
#include "base/clock.h"

using namespace tau;
namespace asio = boost::asio;

namespace app {

enum class Level { kInfo, kWarning };

struct Notification {
  static constexpr std::string_view role = "notification";  // stable: it is in files
  static constexpr int version = 2;                         // version 1 had "urgent": true instead of a level
  std::string text;
  Level level = Level::kInfo;
  ai::Milliseconds timestamp = 0;
};

// ---- storage ---------------------------------------------------------------------------------------------------

json::object to_json(const Notification& n) {
  return {{"role", Notification::role},
          {"text", n.text},
          {"level", n.level == Level::kWarning ? "warning" : "info"},
          {"timestamp", n.timestamp}};
}

/// Reads every version that was ever stored. What cannot be read is an error here, and a message of an unknown role,
/// kept byte for byte, in the transcript.
std::expected<Notification, Error> from_json(std::type_identity<Notification>, const json::object& o) {
  const auto text = json::find_string(o, "text");
  if (!text) return std::unexpected(Error{"a notification without a text"});
  Notification n{std::string(*text), Level::kInfo, static_cast<ai::Milliseconds>(json::number_or(o, "timestamp"))};
  if (agent::stored_version(o) == 1) {
    const json::value* urgent = o.if_contains("urgent");
    if (urgent != nullptr && urgent->is_bool() && urgent->get_bool()) n.level = Level::kWarning;
    return n;
  }
  const std::string level = json::string_or(o, "level");
  if (level != "info" && level != "warning") return std::unexpected(Error{"a notification of no known level"});
  if (level == "warning") n.level = Level::kWarning;
  return n;
}

// ---- model -----------------------------------------------------------------------------------------------------

/// Nothing: a notification is for the user's eyes.
std::vector<ai::MessageRef> project(const Notification&) {
  return {};
}

// ---- screen ----------------------------------------------------------------------------------------------------

std::string render(const Notification& n) {
  return fmt::format("{} {}", n.level == Level::kWarning ? "!" : "i", n.text);
}

}  // namespace app

namespace {

std::string render(const agent::AgentMessage& message) {
  if (const auto* notification = message.as<app::Notification>()) return app::render(*notification);
  if (const auto* user = message.user()) return "> " + ai::text_of(user->content);
  if (const auto* reply = message.assistant()) return "  " + ai::text_of(*reply);
  return fmt::format("[{}: this program does not know it]", message.role());
}

/// The second stage of the conversion: every message says itself what the model sees of it.
asio::awaitable<std::vector<ai::MessageRef>> convert(std::vector<agent::AgentMessage> messages) {
  std::vector<ai::MessageRef> converted;
  for (const agent::AgentMessage& message : messages)
    converted.insert(converted.end(), message.projection().begin(), message.projection().end());
  std::cout << fmt::format("the model reads {} of {} messages\n", converted.size(), messages.size());
  co_return converted;
}

std::vector<agent::AgentMessage> load(const std::filesystem::path& file, const agent::RoleSet& roles) {
  std::vector<agent::AgentMessage> messages;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto value = json::parse(line);
    if (value && value->is_object()) messages.push_back(roles.read(value->get_object()));
  }
  return messages;
}

void save(const std::filesystem::path& file, const std::vector<agent::AgentMessage>& messages) {
  std::ofstream out(file);
  for (const agent::AgentMessage& message : messages)
    out << json::to_text(message.to_json()) << '\n';
}

}  // namespace

int main() {
  const agent::RoleSet roles = agent::RoleSet::of<app::Notification>();
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "tau-custom-role.jsonl";

  // What an older version of this program and some other program have left behind.
  std::ofstream(file) << R"({"role":"notification","text":"The disk is nearly full","urgent":true,"timestamp":1})"
                      << '\n'
                      << R"({"role":"moonPhase","phase":"full","illumination":0.998})" << '\n';

  asio::io_context io;
  agent::AgentOptions options;
  options.loop.stream = ai::make_scripted_provider({{"hello", R"({"turns":[{"text":"Hello!"}]})"}});
  options.loop.convert_to_llm = convert;
  options.initial_state.model = ai::scripted_model("hello");
  options.initial_state.messages = load(file, roles);
  options.initial_state.messages.push_back(agent::AgentMessage::of(
      app::Notification{"Reconnecting to the provider", app::Level::kWarning, now_milliseconds()}));
  agent::Agent agent(io.get_executor(), std::move(options));
  asio::co_spawn(io, agent.prompt("Hi"), asio::detached);
  io.run();

  save(file, agent.state().messages);
  std::cout << "the user sees, after a restart:\n";
  for (const agent::AgentMessage& message : load(file, roles))
    std::cout << "  " << render(message) << '\n';
  std::cout << "the file holds:\n";
  for (const agent::AgentMessage& message : load(file, roles))
    std::cout << "  " << json::to_text(message.to_json()) << '\n';
  std::filesystem::remove(file);
  return agent.state().error_message ? 1 : 0;
}
