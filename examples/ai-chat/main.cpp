// A conversation with a model, in a page: text streams as it comes, the history grows, failures are messages.
//
//   $ ANTHROPIC_API_KEY=… ai-chat anthropic claude-sonnet-4-5      any provider and model of the catalogue
//   $ ai-chat                                                      a script plays the model; no key, no network
#include <algorithm>
#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "ai/auth/environment.h"
#include "ai/catalog/catalog.h"
#include "ai/http/http_client.h"
#include "ai/providers/api_registry.h"
#include "ai/providers/scripted.h"

using namespace tau;
namespace asio = boost::asio;

constexpr const char* kScript = R"({"count": "session", "turns": [
    {"text": "Hello! Ask me anything."}, {"thinking": "Easy.", "text": "Forty-two."}]})";

/// Prints what arrives. It waits for nothing, so it returns nothing to wait for.
std::optional<asio::awaitable<void>> print(const ai::StreamEvent& event) {
  const auto* delta = std::get_if<ai::BlockDelta>(&event.what);
  if (delta != nullptr && delta->kind == ai::BlockKind::kText) std::cout << delta->delta << std::flush;
  return std::nullopt;
}

asio::awaitable<void> chat(ai::StreamFunction stream, ai::Model model, ai::StreamOptions options) {
  ai::Context context;
  context.system_prompt = "Answer in one sentence.";
  std::string line;
  while (std::cout << "> " << std::flush, std::getline(std::cin, line)) {
    context.messages.push_back(ai::make_message(ai::UserMessage{line, 0, {}}));
    ai::AssistantMessage reply = co_await stream(model, context, options, print, std::stop_token());
    std::cout << '\n';
    // A failure is a reply with a stop reason; nothing is thrown once a stream runs.
    if (reply.error_message) std::cerr << "error: " << *reply.error_message << '\n';
    context.messages.push_back(ai::make_message(std::move(reply)));
  }
  std::cout << '\n';
}

int main(int argc, char** argv) {
  asio::io_context io;
  const auto client = ai::http::make_client(io.get_executor());
  ai::StreamFunction stream = ai::make_scripted_provider({{"chat", kScript}});
  ai::Model model = ai::scripted_model("chat");
  ai::StreamOptions options;
  if (argc == 3) {
    const auto& models = ai::catalog_models(argv[1]);
    const auto known = std::ranges::find(models, argv[2], &ai::Model::id);
    const auto auth = ai::environment_auth(argv[1], ai::process_environment());
    if (known == models.end() || !auth) {
      std::cerr << (auth ? "no such model of " : "no key for ") << argv[1] << '\n';
      return 1;
    }
    model = *known;
    options.api_key = auth->api_key;
    options.headers = auth->headers;
    stream = ai::make_stream_function(*client);
  }
  asio::co_spawn(io, chat(std::move(stream), std::move(model), std::move(options)), asio::detached);
  io.run();
}
