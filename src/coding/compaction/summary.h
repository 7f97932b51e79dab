// Asking a model for a summary: of the history that a compaction removes, or of a branch that is left (SES-145 to
// SES-149, SES-164).
//
// The conversation is sent as one text inside one user message, so that the model reads it instead of going on with it;
// no tools are offered. A summary counts only when the model finished it: one that was cut, is blank, or is a tool call
// would replace the history by less than it was worth (FF-38).
#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "agent/agent_message.h"
#include "ai/model.h"
#include "ai/usage.h"
#include "base/error.h"
#include "coding/compaction/preparation.h"

namespace tau::coding {

namespace asio = boost::asio;

struct SummaryRequest {
  std::string system_prompt;
  std::string text;       // of the one user message
  double max_tokens = 0;  // 0: as the model allows
};

/// Sends a request and gives the settled reply; retries for passing reasons are its own affair.
using SummarizeFunction = std::function<asio::awaitable<ai::AssistantMessage>(SummaryRequest request)>;

struct Summary {
  std::string text;  // with the lists of files
  ai::Usage usage;
};

struct SummaryError {
  std::string message;
  bool aborted = false;
};

/// The conversation as text: a paragraph for each thing said, called or returned; results cut after 2000 UTF-16 units.
std::string transcript_of(const std::vector<agent::AgentMessage>& messages);

/// The summary that takes the place of `preparation.history`: one request, or two when a turn is split.
/// `reserve_tokens` bounds its length.
asio::awaitable<std::expected<Summary, SummaryError>> summarize(CompactionPreparation preparation,
                                                                std::string custom_instructions, double reserve_tokens,
                                                                double model_max_tokens, SummarizeFunction send);

/// The summary of a branch. Of no messages it is a fixed text, without a request.
asio::awaitable<std::expected<Summary, SummaryError>> summarize_branch(std::vector<agent::AgentMessage> messages,
                                                                       FileLists files, std::string custom_instructions,
                                                                       bool replace_instructions,
                                                                       double model_max_tokens, SummarizeFunction send);

}  // namespace tau::coding
