// The stream function of agents that were given none (PX-1).
//
// A host that has providers sets it once, so that code which only builds agents need not know them. It is the one
// process-wide value of this layer.
#pragma once

#include "ai/stream.h"

namespace tau::agent {

/// An empty function clears it. Thread-safe.
void set_default_stream_function(ai::StreamFunction stream);

/// Throws std::logic_error when none is set. Thread-safe.
ai::StreamFunction default_stream_function();

}  // namespace tau::agent
