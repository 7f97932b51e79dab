// Running one tool as the agent does.
#pragma once

#include <string>

#include <boost/asio/io_context.hpp>

#include "ai/tool_arguments.h"
#include "coding/tools/bash.h"
#include "coding/tools/edit.h"
#include "coding/tools/read.h"
#include "coding/tools/tool_environment.h"
#include "coding/tools/write.h"

#include "support/run.h"

namespace tau::coding {

struct ToolOutcome {
  agent::ToolResult result;
  std::string error;  // empty for a success

  std::string text() const { return ai::text_of(result.content); }
};

inline ToolOutcome run_tool(
    const agent::AgentTool& tool, json::value arguments, std::stop_token stop = {},
    agent::ToolUpdate update = [](const agent::ToolResult&) {}) {
  ToolOutcome outcome;
  boost::asio::io_context io;
  try {
    if (tool.prepare_arguments) arguments = tool.prepare_arguments(std::move(arguments));
    auto valid = ai::validate_tool_arguments(tool.declaration, arguments);
    if (!valid) {
      outcome.error = valid.error();
      return outcome;
    }
    outcome.result = test::run(io, tool.execute("call_1", *std::move(valid), std::move(stop), std::move(update)));
  } catch (const std::exception& e) {
    outcome.error = e.what();
  }
  return outcome;
}

inline ToolEnvironment tool_environment(const std::filesystem::path& cwd) {
  ToolEnvironment environment;
  environment.cwd = cwd;
  environment.mutations = std::make_shared<MutationQueue>();
  environment.model_takes_images = [] { return true; };
  return environment;
}

}  // namespace tau::coding
