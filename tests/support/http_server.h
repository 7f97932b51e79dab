// A scripted HTTP/1.1 server on the loopback interface, for everything that talks to a provider.
//
//   HttpServer server;
//   server.add({.status = 429, .headers = {{"retry-after", "1"}}, .body = "slow down"});
//   server.add(sse_answer(reply_stream("anthropic-messages", {.text = "Hello"})));
//   ... use server.url() ...
//   EXPECT_EQ(server.requests().at(1).path, "/v1/messages");
//
// It runs on a thread of its own and keeps connections alive, so that reuse can be counted. It is also a proxy: CONNECT
// is recorded and answered with 200, and what then comes through the tunnel is answered from the same script, whatever
// host it was meant for.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace tau::test {

struct RecordedRequest {
  std::string method;
  std::string path;                            // as sent, with the query string; host:port of a CONNECT
  std::map<std::string, std::string> headers;  // names in lower case; equal names joined with ", "
  std::string body;
  int connection = 0;  // which accepted connection it came on, from 0
  std::chrono::steady_clock::time_point time;

  /// The body as an object; throws when it is none.
  json::object json() const;
};

struct ScriptedAnswer {
  enum class Framing { kChunked, kContentLength, kUntilClose };
  /// What happens after the body.
  enum class Ending {
    kComplete,  // the answer ends properly, the connection is kept
    kHang,      // nothing more comes; the connection stays open until the client closes it
    kFin,       // the connection is closed in the middle of the answer
    kReset,     // as kFin, with a TCP reset
  };

  int status = 200;
  std::string reason = "";  // empty = the usual phrase
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = "";

  /// Byte lengths of the pieces that the body is written in; what remains is the last piece.
  std::vector<std::size_t> pieces = {};
  std::chrono::milliseconds piece_delay{2};   // before each piece but the first, when there are pieces
  std::chrono::milliseconds header_delay{0};  // before the status line
  bool silent = false;                        // no status line ever: `ending` happens instead
  Framing framing = Framing::kChunked;
  Ending ending = Ending::kComplete;
  bool gzip = false;   // sends the body as gzip (in stored blocks); pieces then cut the compressed bytes
  bool close = false;  // closes the connection after a complete answer, and says so in the headers
};

/// 200 with content-type text/event-stream.
ScriptedAnswer sse_answer(std::string body);
/// application/json
ScriptedAnswer json_answer(int status, std::string body);

class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  std::string url() const;  // "http://127.0.0.1:<port>"

  /// Queues an answer; each request takes the oldest one.
  void add(ScriptedAnswer answer);
  /// Answers requests for which no answer is queued (500 otherwise). Runs on the server's thread.
  void answer_with(std::function<ScriptedAnswer(const RecordedRequest& request)> handler);

  /// Requests so far, in order of arrival, without CONNECTs.
  std::vector<RecordedRequest> requests() const;
  /// CONNECT requests so far.
  std::vector<RecordedRequest> tunnels() const;
  int accepted_connections() const;
  int open_connections() const;

  /// Wait until so many requests came / so few connections are open; false after `limit`.
  bool wait_for_requests(std::size_t count, std::chrono::milliseconds limit = std::chrono::seconds(5)) const;
  bool wait_for_open_connections(int at_most, std::chrono::milliseconds limit = std::chrono::seconds(5)) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tau::test
