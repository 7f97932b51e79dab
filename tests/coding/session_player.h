// A session with a provider that plays given replies, and a record of what it reports in the form of
// tests/fixtures/agent/session.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "coding/agent_session.h"

#include "support/fixture.h"

namespace tau::test {

struct PlayedReply {
  std::string text = "ok";
  std::vector<std::string> calls;  // ids, of the tool "t"
  ai::StopReason stop = ai::StopReason::kStop;
  std::string error;         // makes it an error
  bool until_abort = false;  // streams until it is aborted
  double tokens = 10;        // usage
};

class SessionPlayer {
 public:
  SessionPlayer();

  /// Makes the session from `options`, as they are now.
  void start();
  void prompt(const std::string& text);
  coding::AgentSession& agent() { return *agent_; }

  /// A tool "t" that does this when it runs and answers with `text`.
  void use_tool(std::function<void()> while_running, std::string text = "done");
  /// Compactions get this summary from a hook, without a request.
  void summarise_with(std::string summary);
  /// Runs `act` at the n-th event of this type, before the event is recorded.
  void on(std::string type, std::function<void()> act, int n = 1);

  int count(const std::string& type) const;
  json::array entries() const;
  json::array state() const;

  boost::asio::io_context io;
  TemporaryFolder folder;
  coding::AgentSessionOptions options;
  std::deque<PlayedReply> replies;
  std::vector<ai::Context> requests;
  std::vector<ai::StreamOptions> request_options;
  json::array log;
  std::vector<coding::CompactionEnd> compactions;

 private:
  struct Trigger {
    std::string type;
    int left;
    std::function<void()> act;
  };
  void record(const coding::SessionEvent& event);

  std::vector<Trigger> triggers_;
  std::unique_ptr<coding::AgentSession> agent_;
};

json::value reference_of(const json::object& message);

}  // namespace tau::test
