// A message role of the application's own: a weather report that a screen shows as a table, that a file keeps with all
// its numbers, and of which the model reads one sentence.
//
// The role is a struct together with its policies. Leave one out and this file does not compile.
#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "agent/agent.h"
#include "agent/role_set.h"
#include "ai/providers/scripted.h"

using namespace tau;
namespace asio = boost::asio;

namespace weather {

struct Report {
  static constexpr std::string_view role = "weatherReport";  // stable: it is in files
  static constexpr int version = 2;                          // version 1 had degrees Fahrenheit
  std::string city;
  double celsius = 0;
};

/// What is stored.
json::object to_json(const Report& report) {
  return {{"role", Report::role}, {"city", report.city}, {"celsius", report.celsius}};
}

/// Reads every version that was ever stored.
std::expected<Report, Error> from_json(std::type_identity<Report>, const json::object& o) {
  const auto city = json::find_string(o, "city");
  if (!city) return std::unexpected(Error{"a weather report without a city"});
  if (agent::stored_version(o) == 1) {
    return Report{std::string(*city), (json::number_or(o, "fahrenheit") - 32) / 1.8};
  }
  return Report{std::string(*city), json::number_or(o, "celsius")};
}

/// What the model sees. Nothing would be an answer too.
std::vector<ai::MessageRef> project(const Report& report) {
  return {
      ai::make_message(ai::UserMessage{fmt::format("(It is {:.0f} °C in {}.)", report.celsius, report.city), 0, {}})};
}

}  // namespace weather

namespace {

/// The second stage of the conversion: every message says itself what the model sees of it.
asio::awaitable<std::vector<ai::MessageRef>> convert(std::vector<agent::AgentMessage> messages) {
  std::vector<ai::MessageRef> converted;
  for (const agent::AgentMessage& message : messages) {
    for (const ai::MessageRef& projected : message.projection())
      converted.push_back(projected);
  }
  std::cout << "the model reads:\n";
  for (const ai::MessageRef& message : converted)
    std::cout << "  " << ai::text_of(std::get<ai::UserMessage>(*message).content) << '\n';
  co_return converted;
}

}  // namespace

int main() {
  const agent::RoleSet roles = agent::RoleSet::of<weather::Report>();

  // From a file: one report of the old version, and a message that this program has never heard of.
  constexpr const char* kStored[] = {R"({"role":"weatherReport","city":"Oslo","fahrenheit":50})",
                                     R"({"role":"moonPhase","phase":"full","illumination":0.998})"};
  std::vector<agent::AgentMessage> transcript;
  for (const char* line : kStored)
    transcript.push_back(roles.read(json::parse(line)->as_object()));
  transcript.push_back(agent::AgentMessage::of(weather::Report{"Lisbon", 24}));

  asio::io_context io;
  agent::AgentOptions options;
  options.loop.stream = ai::make_scripted_provider({{"travel", R"({"turns":[{"text":"Lisbon."}]})"}});
  options.loop.convert_to_llm = convert;
  options.initial_state.model = ai::scripted_model("travel");
  options.initial_state.messages = std::move(transcript);
  agent::Agent agent(io.get_executor(), std::move(options));
  asio::co_spawn(io, agent.prompt("Where shall I go?"), asio::detached);
  io.run();

  std::cout << "the transcript keeps:\n";
  for (const agent::AgentMessage& message : agent.state().messages) {
    if (const auto* report = message.as<weather::Report>()) {
      std::cout << "  " << message.role() << ": " << report->city << ' ' << report->celsius << '\n';
    } else if (message.unknown() != nullptr) {
      std::cout << "  unknown role, as it came: " << json::to_text(message.to_json()) << '\n';
    } else {
      std::cout << "  " << message.role() << '\n';
    }
  }
  return agent.state().error_message ? 1 : 0;
}
