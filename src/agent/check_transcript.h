// The invariants that a transcript must satisfy, as checks that name each violation (IV-1 to IV-7).
//
// Of the seven, IV-3 holds by type (a conversion returns ai::MessageRef), IV-5 and IV-6 are matters of the
// application's policies. The other four can be looked for in values: they are here, for tests and for tools that
// repair files.
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

/// Takes the violations of one transcript; `when` says where they were seen ("before a model call").
using ViolationReporter = void (*)(std::string_view when, std::span<const Violation> violations);

/// Debug builds check the transcript of every run before each model call and at its end, and give what they find to
/// this function; without one it goes to stderr. Returns the previous one. Release builds do not check.
ViolationReporter set_violation_reporter(ViolationReporter reporter);

/// What debug builds call. `known`: how many messages from the start are not this run's own; what they violate was
/// there before and is not reported. Does nothing in release builds.
void check_run(std::string_view when, std::span<const AgentMessage> messages, std::size_t known);

/// IV-4: `converted` keeps the order of `messages`. What a conversion made anew cannot be placed and is passed over;
/// the position counts in `converted`.
std::vector<Violation> check_conversion(std::span<const AgentMessage> messages,
                                        std::span<const ai::MessageRef> converted);

}  // namespace tau::agent
