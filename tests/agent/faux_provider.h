// The provider of the golden cases, as tests/fixtures/agent/README.md describes it: it plays replies in chunks of 16
// characters and looks at the stop token before each of them.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "ai/stream.h"

namespace tau::test {

/// One reply of the script: {"content":[…],"stopReason":…,"errorMessage":…} or {"throw":"text"}.
using FauxReply = json::object;

ai::Model faux_model(std::string id = "faux-1");

/// A stream function that takes the next reply at each call. `on_call` is told of the call first; it may throw, as a
/// provider that breaks its contract does.
struct FauxProvider {
  std::deque<FauxReply> replies;
  int calls = 0;
  std::function<void(int call, const ai::Model& model, const ai::Context& context, const ai::StreamOptions& options,
                     const std::stop_token& stop)>
      on_call;

  /// Refers to this provider, which must outlive it.
  ai::StreamFunction stream();
};

}  // namespace tau::test
