// Tools that become available in the middle of a conversation (AI-77, AI-78).
//
// A tool result can name tools that are usable from there on (`addedToolNames`). APIs with a way to say so get those
// tools where they appear; the list at the head of the request stays as it was, and with it the provider's cache.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ai/context.h"

namespace tau::ai {

struct ToolSplit {
  std::vector<Tool> immediate;
  std::vector<Tool> deferred;
  /// By index of the message: the deferred tools that its tool result makes visible. A tool appears once, at the first
  /// result that names it.
  std::map<std::size_t, std::vector<Tool>> added_at;
};

/// `messages` is the list that the encoder walks. Of tools of the same name the last definition counts, in the place of
/// the first. A tool that an earlier reply already called is immediate. Names that no tool has are ignored. Names are
/// compared as `normalize_name` returns them (AI-108); an API without deferred tools gets all of them at once.
ToolSplit split_tools(const std::vector<Tool>& tools, const std::vector<MessageRef>& messages, bool supports_deferred,
                      const std::function<std::string(const std::string&)>& normalize_name = {});

}  // namespace tau::ai
