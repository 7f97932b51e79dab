// How bytes of a provider become stream events: the part that all wire APIs share.
//
// A decoder is pure: bytes in, events out, no I/O, no clock, so that it can be fuzzed, benchmarked and fed with every
// possible split of the bytes. It is pulled, not pushed: `next` hands out one event at a time and changes the partial
// message only then, so an event and the message it refers to always agree, also when a sink takes its time (AI-23).
//
//   push(bytes) -> frames -> steps queued in a MessageAssembler -> next() applies one step and returns its event
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ai/stream.h"

namespace tau::ai {

/// Builds an assistant message step by step. Decoders queue steps; `next` applies the oldest one.
class MessageAssembler {
 public:
  /// `initial` has api, provider, model and timestamp; its stop reason becomes kPending.
  explicit MessageAssembler(AssistantMessage initial);

  /// The message as of the last event handed out. Metadata (usage, ids, model, raw stop reason) may be written
  /// directly.
  AssistantMessage& message() { return message_; }
  const AssistantMessage& message() const { return message_; }

  void start();
  /// Queues a new block and returns its index. `block` may already hold text, an id or a name.
  std::size_t open(AssistantBlock block);
  /// Queues a delta: appended to text, thinking, or to the raw argument text of a call. Empty deltas are events too.
  /// The view must stay valid until the step has been applied.
  void append(std::size_t index, std::string_view delta);
  /// Same, when no buffer of the caller outlives the step.
  void append_owned(std::size_t index, std::string delta);
  /// Queues the end of a block. For a call the raw argument text is parsed now: strictly, then after literal repair
  /// (AI-42); what stays invalid becomes a preview and marks the call as malformed (FF-19). A call without any argument
  /// text has the arguments it was opened with when `keep_arguments`, else {}. A call without an id gets one (FF-8).
  void close(std::size_t index, bool keep_arguments = false);
  /// Queues the end of a text or thinking block that the provider gives again as a whole: `final_block` replaces what
  /// was streamed (AI-24, AI-178).
  void close_with(std::size_t index, AssistantBlock final_block);
  /// Queues the terminal event. Later steps are ignored. Calls that were not closed get what their text has so far
  /// (AI-27, AI-31).
  void finish(StopReason reason);
  void fail(StopReason reason, std::string error_message);
  /// Drops the queued steps and fails: for an abort, which must not wait for what is queued (AI-29).
  void abort_now(std::string error_message);

  /// The raw argument text of the call at `index` so far, queued deltas included.
  std::string& argument_text(std::size_t index);
  /// Blocks opened and not closed, by index, queued steps included.
  std::vector<std::size_t> open_blocks() const;
  /// Blocks so far, queued ones included.
  std::size_t block_count() const { return blocks_.size(); }
  BlockKind kind_of(std::size_t index) const { return blocks_.at(index).kind; }
  /// The block as it stands (null while its opening is still queued).
  AssistantBlock* applied_block(std::size_t index);

  bool has_step() const { return first_step_ < steps_.size(); }
  bool settled() const { return settled_; }
  /// Applies the oldest step.
  std::optional<StreamEvent> next();

 private:
  // Small, and kept in a vector that is emptied without giving its memory back: a delta costs no allocation.
  struct Step {
    enum class Kind { kStart, kOpen, kAppend, kAppendOwned, kClose, kFinish, kFail } kind;
    StopReason reason = StopReason::kPending;
    bool keep_arguments = false;
    bool replace = false;  // kClose: by the front of closing_
    std::size_t index = 0;
    std::string_view view;
    std::string owned;  // a delta, or the error message
  };
  struct BlockState {
    BlockKind kind;
    bool open = true;       // no close queued
    bool closed = false;    // the close has been applied
    std::string arguments;  // raw text of a call
  };

  void queue(Step step);
  StreamEvent apply(Step& step);
  void apply_delta(std::size_t index, std::string_view delta);
  void settle_arguments(std::size_t index, bool keep_arguments);
  void settle(StopReason reason);

  AssistantMessage message_;
  std::vector<Step> steps_;
  std::size_t first_step_ = 0;          // the steps before it have been applied
  std::deque<AssistantBlock> opening_;  // of the queued kOpen steps
  std::deque<AssistantBlock> closing_;  // of the queued kClose steps that replace
  std::string current_delta_;           // an owned delta, alive while its event is handled
  std::vector<BlockState> blocks_;
  bool ending_ = false;
  bool settled_ = false;
};

/// One reply of one wire API.
class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;

  /// Bytes of the response body, in any split. The bytes are copied or consumed before the next call of push.
  virtual void push(std::string_view bytes) = 0;
  /// The body is over. Queues the terminal event if the API's own has not come (FF-46).
  virtual void end_of_body() = 0;
  /// The connection failed; what was received so far is kept (AI-28).
  void fail(StopReason reason, std::string error_message) { assembler_.fail(reason, std::move(error_message)); }
  void abort_now(std::string error_message) { assembler_.abort_now(std::move(error_message)); }

  /// The next event, or nothing when more bytes are needed.
  virtual std::optional<StreamEvent> next() = 0;

  bool settled() const { return assembler_.settled(); }
  /// The message as of the last event handed out; metadata may be written.
  AssistantMessage& message() { return assembler_.message(); }
  AssistantMessage take() { return std::move(assembler_.message()); }

 protected:
  explicit StreamDecoder(AssistantMessage initial) : assembler_(std::move(initial)) {}
  MessageAssembler assembler_;
};

/// api, provider and model of `model`, zero usage, kPending, the time now.
AssistantMessage empty_reply(const Model& model);

}  // namespace tau::ai
