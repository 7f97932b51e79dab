#include <unistd.h>

#include <algorithm>
#include <string>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "app/modes/print_mode.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tau::app {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kShownLines = 12;    // of a tool's result
constexpr std::size_t kTitleLength = 100;  // characters of a call's title

/// What a call is about, in a line: the argument that a reader looks for first.
std::string title_of(const std::string& tool, const json::value& arguments) {
  std::string about = json::to_text(arguments);
  if (const json::object* o = arguments.if_object()) {
    for (const char* key : {"pattern", "path", "command"}) {
      if (const auto text = json::find_string(*o, key)) about = *text;
    }
  }
  const std::string line = printable_line(about);
  const std::string_view shown = utf8::prefix(line, kTitleLength);
  return fmt::format("{} {}{}", tool, shown, shown.size() < line.size() ? "..." : "");
}

/// Linear text: each part begins on a line of its own with who says it.
class PlainView {
 public:
  explicit PlainView(Output& out) : out_(out) {}

  void show(const coding::SessionEvent& event) {
    if (const auto* activity = std::get_if<coding::AgentActivity>(&event)) {
      show(activity->event);
    } else if (const auto* retry = std::get_if<coding::AutoRetryStart>(&event)) {
      say("Retry", fmt::format("{} of {} in {:.1f} s: {}", retry->attempt, retry->max_attempts,
                               static_cast<double>(retry->delay_ms) / 1000, printable_line(retry->error_message)));
    } else if (const auto* failed = std::get_if<coding::PersistenceFailed>(&event)) {
      say("Warning", printable_line(failed->message));
    } else if (const auto* noticed = std::get_if<coding::SecondWriterNoticed>(&event)) {
      say("Warning", printable_line(noticed->message));
    }
  }

  void say(std::string_view who, std::string_view text) {
    end_line();
    write(fmt::format("{}: {}\n", who, text));
  }

  void end_line() {
    if (!at_line_start_) write("\n");
  }

 private:
  void show(const agent::AgentEvent& event) {
    if (const auto* update = std::get_if<agent::MessageUpdate>(&event)) {
      show_update(*update);
    } else if (const auto* start = std::get_if<agent::MessageStart>(&event)) {
      if (const ai::UserMessage* user = start->message.user()) say("User", printable(ai::text_of(user->content)));
    } else if (const auto* end = std::get_if<agent::MessageEnd>(&event)) {
      if (const ai::AssistantMessage* reply = end->message.assistant()) show_end(*reply);
    } else if (const auto* tool = std::get_if<agent::ToolExecutionStart>(&event)) {
      say("Tool", title_of(tool->tool_name, tool->arguments));
    } else if (const auto* done = std::get_if<agent::ToolExecutionEnd>(&event)) {
      show_result(*done);
    }
  }

  void show_update(const agent::MessageUpdate& update) {
    if (const auto* start = std::get_if<ai::BlockStart>(&update.event.what)) {
      if (start->kind == ai::BlockKind::kToolCall) return;
      end_line();
      write(start->kind == ai::BlockKind::kThinking ? "Thinking: " : "Assistant: ");
    } else if (const auto* delta = std::get_if<ai::BlockDelta>(&update.event.what)) {
      if (delta->kind != ai::BlockKind::kToolCall) write(printable(delta->delta));
    } else if (std::holds_alternative<ai::BlockEnd>(update.event.what)) {
      end_line();
    }
  }

  void show_end(const ai::AssistantMessage& reply) {
    end_line();
    if (reply.stop_reason == ai::StopReason::kError) say("Error", printable(reply.error_message.value_or("failed")));
    if (reply.stop_reason == ai::StopReason::kAborted) say("Error", "Aborted");
    if (reply.stop_reason == ai::StopReason::kLength) say("Error", "The answer was cut at the model's output limit");
  }

  void show_result(const agent::ToolExecutionEnd& done) {
    const std::string text = printable(ai::text_of(done.result.content));
    end_line();
    write(done.is_error ? "Result (failed):\n" : "Result:\n");
    std::string_view rest = utf8::trim_end(text);
    std::size_t lines = 0;
    while (!rest.empty() && lines < kShownLines) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      write("  " + std::string(rest.substr(0, end)) + "\n");
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++lines;
    }
    const auto more = static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '\n')) + (rest.empty() ? 0 : 1);
    if (more > 0) write(fmt::format("  ({} more lines)\n", more));
  }

  void write(std::string_view text) {
    if (text.empty()) return;
    out_.write(text);
    at_line_start_ = text.back() == '\n';
  }

  Output& out_;
  bool at_line_start_ = true;
};

asio::awaitable<bool> prompt_once(Runtime& runtime, PlainView& view, FirstPrompt prompt) {
  const auto sent = co_await runtime.agent->prompt(std::move(prompt.text), std::move(prompt.images));
  if (!sent) view.say("Error", sent.error().message);
  const ai::AssistantMessage* reply = runtime.agent->last_reply();
  co_return sent&& reply != nullptr && reply->stop_reason != ai::StopReason::kError &&
      reply->stop_reason != ai::StopReason::kAborted && reply->stop_reason != ai::StopReason::kLength;
}

/// The next line of stdin; nothing at its end.
asio::awaitable<std::optional<std::string>> next_line(asio::posix::stream_descriptor& input, asio::streambuf& buffer) {
  boost::system::error_code failed;
  const std::size_t size =
      co_await asio::async_read_until(input, buffer, '\n', asio::redirect_error(asio::use_awaitable, failed));
  if (failed && buffer.size() == 0) co_return std::nullopt;
  const std::size_t taken = failed ? buffer.size() : size;
  const auto* bytes = static_cast<const char*>(buffer.data().data());
  std::string line(bytes, taken);
  buffer.consume(taken);
  co_return utf8::replace_invalid(utf8::trim(line));
}

}  // namespace

asio::awaitable<int> run_plain_mode(Runtime& runtime, Prompts prompts, Output& out, bool interactive) {
  PlainView view(out);
  const auto unsubscribe = runtime.agent->subscribe([&view](const coding::SessionEvent& event) { view.show(event); });
  bool ok = true;
  if (!prompts.first.empty()) ok = co_await prompt_once(runtime, view, std::move(prompts.first));
  for (std::string& text : prompts.rest) {
    if (ok) ok = co_await prompt_once(runtime, view, FirstPrompt{std::move(text), {}});
  }
  if (interactive) {
    const auto executor = co_await asio::this_coro::executor;
    asio::posix::stream_descriptor input(executor, ::dup(STDIN_FILENO));
    asio::streambuf buffer;
    while (!out.closed()) {
      view.end_line();
      out.write("> ");
      std::optional<std::string> line = co_await next_line(input, buffer);
      if (!line) break;
      if (line->empty()) continue;
      FirstPrompt prompt{*std::move(line), {}};
      co_await prompt_once(runtime, view, std::move(prompt));
    }
    ok = true;
  }
  unsubscribe();
  co_return ok && !out.closed() ? 0 : 1;
}

}  // namespace tau::app
