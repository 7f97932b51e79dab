// Hand-over: making the history of one model fit for a request to another (or the same) one (AI-62 to AI-76).
//
// Sessions hold what was said, in the form in which it was said: signatures of the model that made them, ids as the
// provider chose them, calls that a crash left without a result, replies that failed half way. Providers accept none of
// that from one another. This is the one place where it is put right, for one request, before the encoder of an API
// sees the messages; nothing is written back (FF-1, FF-6, FF-12).
//
// What an encoder may rely on afterwards:
//   - failed and aborted replies are gone, together with the results of their calls (AI-72, FF-5);
//   - the messages right after a reply are the results of its calls, exactly one for each, and there are no others
//     (FF-5 to FF-7);
//   - signatures are only those of the target model itself (FF-1);
//   - ids are unique, and fit for the API as far as the normaliser makes them so (FF-7, AI-76);
//   - blank text blocks are gone, except where all of a user message is blank or where a signature hangs on them; a
//   tool
//     result of blanks only has no content left, and the encoder puts the words of its API there (FF-9, FF-10).
//
// Cost: pointers. Only messages that change are copied.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ai/message.h"
#include "ai/model.h"

namespace tau::ai {

struct TransformOptions {
  /// Makes the id of a call fit for the target API. Asked only for replies of other models (AI-76), in the order of the
  /// calls.
  std::function<std::string(const std::string& id, const AssistantMessage& source)> normalize_id;
  /// Whether the API refuses an id that occurs twice in a request. Ids count as equal when they are up to the first
  /// '|'.
  bool unique_ids = true;
  /// A new id for the call that used `id` again; `attempt` counts from 1 until the answer is not in use. Must be
  /// deterministic, so that the next request has the same bytes. Default: "call_" and a hash.
  std::function<std::string(const std::string& id, int attempt)> rename_id;
  /// Results in the order of the calls, for APIs that pair by position (FF-13). Otherwise in the order in which they
  /// are stored, made-up ones last (AI-71).
  bool results_in_call_order = false;
  /// The time that made-up results carry; the time now when empty.
  std::function<Milliseconds()> now;
};

/// `messages` and what they refer to stay as they are; messages that need no change keep their handle.
std::vector<MessageRef> transform_messages(const std::vector<MessageRef>& messages, const Model& target,
                                           const TransformOptions& options = {});

/// Whether `message` came from this very model: provider, api and configured id (FF-1, FF-3).
bool is_same_model(const AssistantMessage& message, const Model& target);

/// Characters outside [A-Za-z0-9_-] become '_'; at most 64 remain. The normaliser of Anthropic, Bedrock and Google
/// (AI-76).
std::string plain_tool_call_id(const std::string& id);

}  // namespace tau::ai
