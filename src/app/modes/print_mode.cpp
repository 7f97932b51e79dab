#include "app/modes/print_mode.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/utf8.h"

namespace tau::app {

namespace asio = boost::asio;

namespace {

/// Sends all prompts; false when one was refused.
asio::awaitable<bool> send(coding::AgentSession& agent, Prompts prompts) {
  std::vector<FirstPrompt> all;
  if (!prompts.first.empty()) all.push_back(std::move(prompts.first));
  for (std::string& text : prompts.rest)
    all.push_back({std::move(text), {}});
  for (FirstPrompt& prompt : all) {
    const auto sent = co_await agent.prompt(std::move(prompt.text), std::move(prompt.images));
    if (!sent) {
      tell("Error", sent.error().message);
      co_return false;
    }
    const ai::AssistantMessage* reply = agent.last_reply();
    if (reply != nullptr && reply->stop_reason == ai::StopReason::kAborted) break;  // the user wants it to end
  }
  co_return true;
}

/// Failures that are not part of any reply go to stderr as they happen.
void watch_persistence(coding::AgentSession& agent) {
  agent.subscribe([](const coding::SessionEvent& event) {
    if (const auto* failed = std::get_if<coding::PersistenceFailed>(&event)) tell("Warning", failed->message);
    if (const auto* noticed = std::get_if<coding::SecondWriterNoticed>(&event)) tell("Warning", noticed->message);
  });
}

/// Tells how the last reply ended when it was no answer.
int exit_code_of(const ai::AssistantMessage* reply) {
  if (reply == nullptr) return 0;
  switch (reply->stop_reason) {
    case ai::StopReason::kError:
      tell("Error", reply->error_message.value_or("The request failed"));
      return 1;
    case ai::StopReason::kAborted:
      tell("Error", "Aborted");
      return 1;
    case ai::StopReason::kLength:
      tell("Error", "The answer was cut at the model's output limit");
      return 1;
    default:
      return 0;
  }
}

}  // namespace

void tell(std::string_view kind, std::string_view message) {
  std::string text = printable(message);
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  const std::string line = fmt::format("{}: {}\n", kind, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

asio::awaitable<int> run_text_mode(Runtime& runtime, Prompts prompts, Output& out) {
  watch_persistence(*runtime.agent);
  if (prompts.first.empty() && prompts.rest.empty()) co_return 0;
  const bool sent = co_await send(*runtime.agent, std::move(prompts));
  if (!sent) co_return 1;
  const ai::AssistantMessage* reply = runtime.agent->last_reply();
  const bool failed = reply != nullptr &&
                      (reply->stop_reason == ai::StopReason::kError || reply->stop_reason == ai::StopReason::kAborted);
  if (reply != nullptr && !failed) {
    const bool terminal = ::isatty(STDOUT_FILENO) != 0;
    for (const ai::AssistantBlock& block : reply->content) {
      const auto* text = std::get_if<ai::TextContent>(&block);
      if (text == nullptr) continue;
      if (terminal) {
        out.write(printable(text->text));
      } else if (utf8::has_lone_surrogates(text->text)) {
        out.write(utf8::remove_lone_surrogates(text->text));
      } else {
        out.write(text->text);
      }
      out.write("\n");
    }
  }
  if (out.closed()) co_return 1;
  co_return exit_code_of(reply);
}

asio::awaitable<int> run_json_mode(Runtime& runtime, Prompts prompts, Output& out) {
  watch_persistence(*runtime.agent);
  std::string line;
  json::write(line, runtime.session->header());
  out.write(line + "\n");
  coding::EventLines lines;
  const auto unsubscribe = runtime.agent->subscribe([&](const coding::SessionEvent& event) {
    const std::string_view event_line = lines.line_of(event);
    if (!event_line.empty()) out.write(event_line);
    if (out.closed()) runtime.agent->abort();  // nobody reads it any more (FF-95)
  });
  const bool sent = co_await send(*runtime.agent, std::move(prompts));
  unsubscribe();
  co_return sent && !out.closed() ? 0 : 1;
}

}  // namespace tau::app
