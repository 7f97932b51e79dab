// Which files a conversation has read and changed: the summary must not lose them (SES-140, SES-141).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent/agent_message.h"
#include "base/json.h"

namespace tau::coding {

struct FileLists {
  std::vector<std::string> read;      // and not modified
  std::vector<std::string> modified;  // both in UTF-16 order
};

class FileTracker {
 public:
  /// The lists of an earlier summary.
  void add_details(const json::object& details);
  /// The calls of read, write and edit in a reply.
  void add_calls(const agent::AgentMessage& message);
  FileLists lists() const;

 private:
  std::set<std::string> read_;
  std::set<std::string> modified_;
};

/// {"readFiles":[…],"modifiedFiles":[…]}
json::object details_of(const FileLists& files);
/// What is put behind a summary's text; empty when there are no files.
std::string text_of(const FileLists& files);

}  // namespace tau::coding
