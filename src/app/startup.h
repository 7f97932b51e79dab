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
#include "coding/config/start_model.h"
#include "coding/resources/prompt_templates.h"
#include "coding/resources/skills.h"

namespace tau::app {

/// Everything a mode works with. The parts refer to each other: it stays where it is until the end.
struct Runtime {
  std::filesystem::path cwd;  // of the session; not always the folder that tau was started in
  std::unique_ptr<coding::Settings> settings;
  std::unique_ptr<coding::ModelRegistry> registry;
  std::unique_ptr<ai::http::Client> http;
  std::shared_ptr<coding::Session> session;
  std::unique_ptr<coding::AgentSession> agent;
  std::vector<coding::Skill> skills;
  std::vector<coding::PromptTemplate> prompt_templates;
  std::vector<coding::ScopedModel> scope;  // what cycling goes through; empty = all that can be used
  std::vector<std::string> warnings;       // for stderr, one line each
};

/// What to do when there is no usable model at all.
enum class NoModel {
  kFail,
  kTour,         // the scripted tour, with a warning that says so
  kPlaceholder,  // a model that answers nothing; prompts are refused (MO-25)
};

/// Fails with the one line to tell the user.
std::expected<std::unique_ptr<Runtime>, Error> start(const Arguments& arguments, boost::asio::any_io_executor executor,
                                                     NoModel no_model);

/// The same for a session that is there already: after new, switch, fork and clone. What the command line says of
/// model, thinking level, tools and key holds again (MO-13).
std::expected<std::unique_ptr<Runtime>, Error> start_in(const Arguments& arguments,
                                                        boost::asio::any_io_executor executor,
                                                        std::shared_ptr<coding::Session> session,
                                                        const std::filesystem::path& cwd, NoModel no_model);

/// Whether it only stands for "no model".
bool is_placeholder(const ai::Model& model);

/// A prompt as it is sent: `/skill:name` and `/template` with their texts filled in; anything else as it is. The error
/// names the file that cannot be read.
std::expected<std::string, Error> expand_prompt(const Runtime& runtime, std::string text);

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
