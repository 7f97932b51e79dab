// The invariants that a transcript must satisfy, as a check that names each violation (IV-1 to IV-7).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent_message.h"

namespace tau::agent {

struct Violation {
  std::size_t position;   // of the message
  std::string_view rule;  // "IV-2"
  std::string what;
};

/// Every violation, in order:
///   IV-1  required fields: a call has id and name, a result has its call's id, a block has a known type;
///   IV-2  each result names a call of the nearest reply before it, that has no result yet, and nothing but results
///         stands between a reply and the results of its calls;
///   IV-7  no message is `pending`.
/// Calls without a result are no violation: the model layer completes the request (AG-52).
std::vector<Violation> check_transcript(std::span<const AgentMessage> messages);

}  // namespace tau::agent
