#include "ai/providers/scripted.h"

#include <charconv>
#include <cmath>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "ai/stream_decoder.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

/// What a broken script says; becomes the error message of the reply.
struct ScriptError {
  std::string message;
};

struct Script {
  json::object root;
  json::array turns;
  bool count_from_prompt = true;
};

std::string blocks_text(const std::vector<UserBlock>& blocks) {
  return text_of(blocks);
}

/// Result of the latest call with this label; call ids are "<label>_<random>".
std::optional<std::string> result_text(const Context& context, std::string_view label) {
  const std::string prefix = std::string(label) + "_";
  for (auto it = context.messages.rbegin(); it != context.messages.rend(); ++it) {
    const auto* result = std::get_if<ToolResultMessage>(it->get());
    if (result != nullptr && result->tool_call_id.starts_with(prefix)) return blocks_text(result->content);
  }
  return std::nullopt;
}

std::string last_prompt(const Context& context) {
  for (auto it = context.messages.rbegin(); it != context.messages.rend(); ++it) {
    if (const auto* user = std::get_if<UserMessage>(it->get())) return text_of(user->content);
  }
  return {};
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  text = utf8::trim_end(text);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

/// "list", "list:3", "list:2-5", "list:count" or "prompt".
std::string quote(std::string_view what, const Context& context) {
  const std::size_t colon = what.find(':');
  const std::string_view name = what.substr(0, colon);
  const std::optional<std::string> source =
      name == "prompt" ? std::optional<std::string>(last_prompt(context)) : result_text(context, name);
  if (!source) throw ScriptError{"quotes {{" + std::string(what) + "}}, but no call labelled so has a result"};
  if (colon == std::string_view::npos) return std::string(utf8::trim_end(*source));

  const std::string_view part = what.substr(colon + 1);
  const std::vector<std::string_view> lines = lines_of(*source);
  if (part == "count") return std::to_string(lines.size());
  const std::size_t dash = part.find('-');
  const std::optional<std::size_t> first = whole_number(part.substr(0, dash));
  const std::optional<std::size_t> last = dash == std::string_view::npos ? first : whole_number(part.substr(dash + 1));
  if (!first || !last || *first < 1) throw ScriptError{"has the unknown quote {{" + std::string(what) + "}}"};
  std::string out;
  for (std::size_t i = *first; i <= *last && i <= lines.size(); ++i) {
    if (i > *first) out += '\n';
    out += lines[i - 1];
  }
  return out;
}

std::string expand(std::string_view text, const Context& context) {
  std::string out;
  while (true) {
    const std::size_t open = text.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : text.find("}}", open);
    if (close == std::string_view::npos) return out += text;
    out += text.substr(0, open);
    out += quote(text.substr(open + 2, close - open - 2), context);
    text.remove_prefix(close + 2);
  }
}

json::value expand(const json::value& v, const Context& context) {
  if (v.is_string()) return json::value(expand(json::view(v.get_string()), context));
  if (const json::array* items = v.if_array()) {
    json::array out;
    for (const json::value& item : *items)
      out.push_back(expand(item, context));
    return out;
  }
  if (const json::object* members = v.if_object()) {
    json::object out;
    for (const auto& [key, member] : *members)
      out.emplace(key, expand(member, context));
    return out;
  }
  return v;
}

AssistantBlock call_block(const json::object& o, const Context& context) {
  ToolCall call;
  call.name = json::string_or(o, "name");
  if (call.name.empty()) throw ScriptError{"has a tool call without a \"name\""};
  call.id = json::string_or(o, "label", call.name) + "_" + random_hex(8);
  if (const json::value* arguments = json::find(o, "arguments")) call.arguments = expand(*arguments, context);
  return call;
}

/// Blocks of a turn, quotes filled in: thinking, text and toolCalls, or "content" with blocks in any order.
std::vector<AssistantBlock> blocks_of(const json::object& turn, const Context& context) {
  std::vector<AssistantBlock> blocks;
  const auto add = [&](const json::object& o) {
    const std::string type = json::string_or(o, "type");
    if (type == "text") {
      blocks.emplace_back(TextContent{expand(json::string_or(o, "text"), context), {}, {}});
    } else if (type == "thinking") {
      blocks.emplace_back(ThinkingContent{expand(json::string_or(o, "thinking"), context), {}, false, {}});
    } else if (type == "toolCall") {
      blocks.push_back(call_block(o, context));
    } else {
      throw ScriptError{"has a block of the unknown type \"" + type + "\" (text, thinking or toolCall)"};
    }
  };
  if (const json::array* content = json::find_array(turn, "content")) {
    for (const json::value& block : *content) {
      if (const json::object* o = block.if_object()) add(*o);
    }
    return blocks;
  }
  if (const auto thinking = json::find_string(turn, "thinking")) add({{"type", "thinking"}, {"thinking", *thinking}});
  if (const auto text = json::find_string(turn, "text")) add({{"type", "text"}, {"text", *text}});
  if (const json::array* calls = json::find_array(turn, "toolCalls")) {
    for (const json::value& call : *calls) {
      if (const json::object* o = call.if_object()) blocks.push_back(call_block(*o, context));
    }
  }
  return blocks;
}

Script read_script(const std::string& id, const std::map<std::string, std::string>& built_in) {
  std::string text;
  if (const auto it = built_in.find(id); it != built_in.end()) {
    text = it->second;
  } else {
    auto bytes = tau::read_file(expand_home(id));
    if (!bytes) throw ScriptError{"cannot be played: " + bytes.error().message};
    text = *std::move(bytes);
  }
  const auto parsed = json::parse(without_byte_order_mark(text), {.comments = true, .trailing_commas = true});
  if (!parsed) throw ScriptError{"is not valid JSON: " + parsed.error().describe()};
  Script script;
  if (const json::array* turns = parsed->if_array()) {
    script.turns = *turns;
  } else if (const json::object* root = parsed->if_object()) {
    script.root = *root;
    const json::array* list = json::find_array(*root, "turns");
    if (list == nullptr) throw ScriptError{"needs a \"turns\" array"};
    script.turns = *list;
    script.count_from_prompt = json::string_or(*root, "count", "prompt") != "session";
  } else {
    throw ScriptError{"needs to be an object with \"turns\", or an array of turns"};
  }
  return script;
}

/// Which turn comes next. The transcript says it when a session is continued; within one process calls are counted, so
/// that a turn that failed and was retried is not played again.
class Position {
 public:
  std::size_t take(const Context& context, bool count_from_prompt) {
    std::size_t answered = 0;
    std::size_t prompts = 0;
    for (const MessageRef& message : context.messages) {
      if (std::holds_alternative<UserMessage>(*message)) {
        ++prompts;
        if (count_from_prompt) answered = 0;
      } else if (std::holds_alternative<AssistantMessage>(*message)) {
        ++answered;
      }
    }
    const bool same_series = started_ && (!count_from_prompt || prompts == prompts_);
    const std::size_t index = same_series ? std::max(next_, answered) : answered;
    started_ = true;
    prompts_ = prompts;
    next_ = index + 1;
    return index;
  }

 private:
  bool started_ = false;
  std::size_t prompts_ = 0;
  std::size_t next_ = 0;
};

std::size_t characters_of(const AssistantBlock& block) {
  if (const auto* text = std::get_if<TextContent>(&block)) return utf8::utf16_length(text->text);
  if (const auto* thinking = std::get_if<ThinkingContent>(&block)) return utf8::utf16_length(thinking->thinking);
  if (const auto* call = std::get_if<ToolCall>(&block)) return json::to_text(call->arguments).size();
  return 0;
}

/// About four characters a token, as nobody counts here.
Usage estimated_usage(const Context& context, const std::vector<AssistantBlock>& reply) {
  std::size_t in = context.system_prompt ? context.system_prompt->size() : 0;
  for (const MessageRef& message : context.messages)
    in += json::to_text(to_json(*message)).size();
  std::size_t out = 0;
  for (const AssistantBlock& block : reply)
    out += characters_of(block);
  Usage usage;
  usage.input = std::ceil(static_cast<double>(in) / 4);
  usage.output = std::ceil(static_cast<double>(out) / 4);
  usage.total_tokens = usage.input + usage.output;
  return usage;
}

/// Plays one reply: steps go through the assembler, which keeps events and message consistent.
class Player {
 public:
  Player(Model model, EventSink sink, std::stop_token stop)
      : assembler_(empty_reply(model)), sink_(std::move(sink)), stop_(std::move(stop)) {}

  asio::awaitable<AssistantMessage> play(Script script, std::size_t index, Context context) {
    if (stop_.stop_requested()) {
      assembler_.abort_now("Request was aborted");
      co_await drain();
      co_return std::move(assembler_.message());
    }
    if (index >= script.turns.size() || !script.turns[index].is_object()) {
      throw ScriptError{"has no turn " + std::to_string(index + 1) + " (it has " + std::to_string(script.turns.size()) +
                        ")"};
    }
    const json::object& turn = script.turns[index].get_object();
    set_pace(script.root, turn);
    const std::vector<AssistantBlock> blocks = blocks_of(turn, context);

    assembler_.start();
    assembler_.message().usage = estimated_usage(context, blocks);
    bool calls = false;
    for (const AssistantBlock& block : blocks) {
      calls = calls || std::holds_alternative<ToolCall>(block);
      co_await play_block(block);
      if (assembler_.settled()) co_return std::move(assembler_.message());
    }
    if (const auto error = json::find_string(turn, "error")) {
      assembler_.fail(StopReason::kError, std::string(*error));
    } else {
      const std::string stop = json::string_or(turn, "stop");
      assembler_.finish(stop_reason_from(stop).value_or(calls ? StopReason::kToolUse : StopReason::kStop));
    }
    co_await drain();
    co_return std::move(assembler_.message());
  }

 private:
  void set_pace(const json::object& root, const json::object& turn) {
    for (const json::object* o : {&root, &turn}) {
      if (const json::object* pace = json::find_object(*o, "pace")) {
        chunk_ = static_cast<std::size_t>(std::max(1.0, json::number_or(*pace, "chunk", static_cast<double>(chunk_))));
        delay_ = std::chrono::milliseconds(static_cast<int>(json::number_or(*pace, "delayMs", 0)));
      }
    }
  }

  asio::awaitable<void> play_block(AssistantBlock block) {
    std::string text;
    if (auto* t = std::get_if<TextContent>(&block)) {
      text = std::exchange(t->text, {});
    } else if (auto* thinking = std::get_if<ThinkingContent>(&block)) {
      text = std::exchange(thinking->thinking, {});
    } else if (auto* call = std::get_if<ToolCall>(&block)) {
      text = json::to_text(std::exchange(call->arguments, json::object{}));
    }
    const std::size_t index = assembler_.open(std::move(block));
    std::string_view rest = text;
    do {
      const std::string_view piece = utf8::prefix(rest, chunk_);
      rest.remove_prefix(piece.size());
      assembler_.append(index, piece);
      co_await drain();
      co_await pause();
      if (stop_.stop_requested()) {
        assembler_.abort_now("Request was aborted");
        co_await drain();
        co_return;
      }
    } while (!rest.empty());
    assembler_.close(index);
    co_await drain();
  }

  asio::awaitable<void> drain() {
    while (std::optional<StreamEvent> event = assembler_.next()) {
      std::optional<asio::awaitable<void>> wait = sink_(*event);
      if (wait) co_await std::move(*wait);
    }
  }

  asio::awaitable<void> pause() {
    if (delay_.count() <= 0) co_return;
    const auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor, delay_);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  MessageAssembler assembler_;
  EventSink sink_;
  std::stop_token stop_;
  std::size_t chunk_ = 24;
  std::chrono::milliseconds delay_{0};
};

asio::awaitable<AssistantMessage> play_script(std::shared_ptr<const std::map<std::string, std::string>> built_in,
                                              std::shared_ptr<std::map<std::string, Position>> positions, Model model,
                                              Context context, EventSink sink, std::stop_token stop) {
  std::string failure;
  try {
    Script script = read_script(model.id, *built_in);
    const std::size_t index = (*positions)[model.id].take(context, script.count_from_prompt);
    Player player(model, sink, stop);
    AssistantMessage reply = co_await player.play(std::move(script), index, std::move(context));
    co_return reply;
  } catch (const ScriptError& e) {
    failure = "The script \"" + model.id + "\" " + e.message;
  }
  MessageAssembler assembler(empty_reply(model));
  assembler.fail(StopReason::kError, failure);
  while (std::optional<StreamEvent> event = assembler.next()) {
    std::optional<asio::awaitable<void>> wait = sink(*event);
    if (wait) co_await std::move(*wait);
  }
  co_return std::move(assembler.message());
}

}  // namespace

Model scripted_model(std::string id) {
  Model model;
  model.name = id;
  model.id = std::move(id);
  model.api = kScriptedApi;
  model.provider = kScriptedProvider;
  model.image_input = true;
  model.context_window = 1000000;
  model.max_tokens = 100000;
  return model;
}

StreamFunction make_scripted_provider(std::map<std::string, std::string> built_in) {
  auto scripts = std::make_shared<const std::map<std::string, std::string>>(std::move(built_in));
  auto positions = std::make_shared<std::map<std::string, Position>>();
  return [scripts, positions](Model model, Context context, StreamOptions, EventSink sink, std::stop_token stop) {
    return play_script(scripts, positions, std::move(model), std::move(context), std::move(sink), std::move(stop));
  };
}

}  // namespace tau::ai
