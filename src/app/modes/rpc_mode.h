// `--mode rpc`: another program drives the agent with lines of JSON (MO-90 to MO-173).
//
// Commands do not queue behind each other: one that has to wait (a prompt's run, a shell command, an abort) is answered
// when it is done, and meanwhile others are. Only replacing the session holds back the lines after it. A reply is never
// lost: when stdin ends, commands that are still at work get a moment to finish, then they are aborted, and each is
// answered before the program ends (FF-93).
#pragma once

#include <boost/asio/awaitable.hpp>

#include "app/output.h"
#include "app/startup.h"

namespace tau::app {

class RpcServer {
 public:
  /// `runtime` is replaced when the client changes the session.
  RpcServer(const Arguments& arguments, std::unique_ptr<Runtime>& runtime, Output& out);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// Serves until the end of stdin, the end of the reader or `stop`. Returns the exit code: 1 when stdout was closed.
  boost::asio::awaitable<int> serve();

  /// Ends: nothing more is read or written.
  void stop();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace tau::app
