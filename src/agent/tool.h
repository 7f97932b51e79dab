// Tools that run (AG-7, AG-8, AG-38, AG-43, AG-44).
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "ai/context.h"
#include "ai/message.h"

namespace tau::agent {

namespace asio = boost::asio;

enum class ToolExecutionMode { kSequential, kParallel };

/// What a tool gives back. Describing an error in the text makes it a success all the same: a tool fails by throwing.
struct ToolResult {
  std::vector<ai::UserBlock> content;
  std::optional<json::value> details;         // for programs and screens
  std::optional<ai::Usage> usage;             // work done by the tool itself
  std::vector<std::string> added_tool_names;  // tools that become available after this result
  bool terminate = false;                     // when every result of a batch says so, the run ends without another call
};

/// {"content":…,"details":…,…}, as in tool_execution events; absent members are left out.
json::object to_json(const ToolResult& result);

/// One text block and empty details: the form of results that tau makes itself (AG-38).
ToolResult text_result(std::string text);

/// Thrown by a tool: the text is what the model reads.
class ToolFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reports progress. May be called from any thread; calls after the tool has settled are ignored (AG-43).
using ToolUpdate = std::function<void(ToolResult partial)>;

struct AgentTool {
  ai::Tool declaration;  // name, description, parameters: what the model sees
  std::string label;     // for a screen

  /// Repairs raw arguments before they are validated. May be empty. May throw.
  std::function<json::value(json::value arguments)> prepare_arguments;

  /// Runs one call with validated arguments. Must end soon after `stop` is requested. May throw (see ToolFailure).
  std::function<asio::awaitable<ToolResult>(std::string tool_call_id, json::object arguments, std::stop_token stop,
                                            ToolUpdate update)>
      execute;

  std::optional<ToolExecutionMode> execution_mode;  // kSequential makes every batch with this tool sequential (AG-35)

  /// How long after an abort the tool may take to clean up. A tool that takes longer is given up: its call gets an
  /// error result that says so, and what it returns later is dropped.
  std::chrono::milliseconds stop_grace{150};
};

}  // namespace tau::agent
