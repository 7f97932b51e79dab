// From a command line to a session that can be prompted: settings, trust, session, models, tools, system prompt
// (MO-11).
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "ai/http/http_client.h"
#include "app/cli/arguments.h"
#include "base/error.h"
#include "coding/agent_session.h"
#include "coding/config/model_registry.h"
#include "coding/config/settings.h"

namespace tau::app {

/// Everything a mode works with. The parts refer to each other: it stays where it is until the end.
struct Runtime {
  std::filesystem::path cwd;  // of the session; not always the folder that tau was started in
  std::unique_ptr<coding::Settings> settings;
  std::unique_ptr<coding::ModelRegistry> registry;
  std::unique_ptr<ai::http::Client> http;
  std::shared_ptr<coding::Session> session;
  std::unique_ptr<coding::AgentSession> agent;
  std::vector<std::string> warnings;  // for stderr, one line each
};

/// Fails with the one line to tell the user. `fall_back_to_tour`: without any usable model the scripted tour is taken,
/// with a warning that says so; else that is an error.
std::expected<std::unique_ptr<Runtime>, Error> start(const Arguments& arguments, boost::asio::any_io_executor executor,
                                                     bool fall_back_to_tour);

/// What a request of a session in `cwd` carries besides its messages, as `start` would make it. Nothing is written.
struct RequestFrame {
  std::string system_prompt;
  std::vector<ai::Tool> tools;
  ai::StreamOptions options;
  bool block_images = false;
};
std::expected<RequestFrame, Error> request_frame(const Arguments& arguments, const std::filesystem::path& cwd);

/// The models of this user whose APIs tau speaks.
std::unique_ptr<coding::ModelRegistry> make_registry();

/// The folder that tau was started in; fails when it no longer exists (FF-117).
std::expected<std::filesystem::path, Error> current_folder();

}  // namespace tau::app
