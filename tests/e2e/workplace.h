// The real executable in a home folder, an agent folder and a project of its own, with a provider on the loopback
// interface.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

#include "support/fixture.h"
#include "support/http_server.h"
#include "support/program.h"
#include "support/reply_stream.h"

namespace tau::test {

class Workplace {
 public:
  Workplace();

  std::filesystem::path agent() const { return folder_ / "home/.pi/agent"; }
  std::filesystem::path project() const { return folder_ / "project"; }
  std::filesystem::path file(const std::string& name, const std::string& bytes) const {
    return folder_.write("project/" + name, bytes);
  }

  /// models.json with this API on the server, and settings that make it the default.
  void use_provider(const std::string& api);

  /// Queues a reply of the provider.
  void reply(const Reply& reply);
  /// Queues a reply whose body stops after `bytes` and then hangs.
  void hanging_reply(const Reply& reply, std::size_t bytes);

  ProgramOptions options(std::vector<std::string> arguments, std::string input = {}) const;
  ProgramResult run(std::vector<std::string> arguments, std::string input = {}) const {
    return run_program(options(std::move(arguments), std::move(input)));
  }

  /// What the n-th request told the model, see conversation_of.
  std::vector<std::string> conversation(std::size_t request) const;

  /// Session files, oldest first, and the parsed lines of the only one.
  std::vector<std::filesystem::path> session_files() const;
  std::vector<json::value> session_lines() const;
  /// Messages of the only session file, header and other entries left out.
  std::vector<json::object> session_messages() const;

  std::map<std::string, std::string> environment;
  HttpServer server;

 private:
  TemporaryFolder folder_;
  std::string api_ = "anthropic-messages";
  int replies_ = 0;
};

}  // namespace tau::test
