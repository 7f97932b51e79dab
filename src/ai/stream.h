// The stream event protocol (spec AI-20 to AI-33).
//
// A provider is a function: it takes model, context, options and a stop token, pushes events into a sink as they arrive
// and returns the settled message. It never throws once it runs: a failure is an AssistantMessage whose stop reason is
// kError or kAborted (AI-28).
//
// Cost: an event refers to the live partial message instead of copying it (AI-23), and a sink that has nothing to wait
// for says so without making a coroutine. 500,000 deltas of 20 bytes cost about as much as parsing them.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "ai/context.h"
#include "ai/message.h"

namespace tau::ai {

namespace asio = boost::asio;

enum class BlockKind { kText, kThinking, kToolCall };

// Indexes count blocks of partial.content. Blocks are appended, never reordered or removed (AI-22).
struct StreamStart {};
struct BlockStart {
  BlockKind kind;
  std::size_t index;
};
struct BlockDelta {
  BlockKind kind;
  std::size_t index;
  std::string_view delta;  // WTF-8 text, or raw JSON text of arguments; valid during the call of the sink
};
struct BlockEnd {  // the block in partial.content is final and authoritative (AI-24)
  BlockKind kind;
  std::size_t index;
};
struct StreamDone {};   // the partial is the settled message: kStop, kLength, kToolUse or kDeferred
struct StreamError {};  // the partial is the settled message: kError or kAborted

struct StreamEvent {
  std::variant<StreamStart, BlockStart, BlockDelta, BlockEnd, StreamDone, StreamError> what;
  /// The live message, in the state that this event describes. Valid during the call of the sink only; copy what you
  /// keep.
  const AssistantMessage& partial;
};

/// The JSON form of an event without `partial`, `message` and `error` (AI-20).
json::object to_json(const StreamEvent& event);

/// Takes one event. Nothing = handled; an awaitable = the stream waits for it before the next event (AG-29).
using EventSink = std::function<std::optional<asio::awaitable<void>>(const StreamEvent& event)>;

/// One model call. Emits exactly one StreamDone or StreamError, as the last event (AI-21), and returns that message.
/// Runs on the caller's executor. `stop` ends the call within 100 ms.
using StreamFunction = std::function<asio::awaitable<AssistantMessage>(
    Model model, Context context, StreamOptions options, EventSink sink, std::stop_token stop)>;

}  // namespace tau::ai
