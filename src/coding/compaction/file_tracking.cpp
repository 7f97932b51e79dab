#include "coding/compaction/file_tracking.h"

#include <algorithm>
#include <iterator>

namespace tau::coding {

namespace {

void add_all(std::set<std::string>& into, const json::object& details, std::string_view key) {
  const json::value* list = json::find(details, key);
  if (list == nullptr || !list->is_array()) return;
  for (const json::value& item : list->get_array()) {
    if (item.is_string()) into.emplace(item.get_string());
  }
}

/// UTF-8 sorts as UTF-16 does, but for characters beyond U+FFFF: their surrogates come before U+E000 to U+FFFF.
bool precedes_in_utf16(const std::string& a, const std::string& b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (in_a == a.end() || in_b == b.end()) return in_a == a.end() && in_b != b.end();
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xF0 ? byte - 0x100 + 0xEE : byte >= 0xEE ? byte + 0x10 : static_cast<int>(byte);
  };
  return rank(*in_a) < rank(*in_b);
}

void add_block(std::string& text, std::string_view tag, const std::vector<std::string>& files) {
  if (files.empty()) return;
  text += "\n\n<";
  text += tag;
  text += ">\n";
  for (const std::string& file : files) {
    text += file;
    text += '\n';
  }
  text += "</";
  text += tag;
  text += '>';
}

}  // namespace

void FileTracker::add_details(const json::object& details) {
  add_all(read_, details, "readFiles");
  add_all(modified_, details, "modifiedFiles");
}

void FileTracker::add_calls(const agent::AgentMessage& message) {
  const ai::AssistantMessage* reply = message.assistant();
  if (reply == nullptr) return;
  for (const ai::ToolCall* call : ai::tool_calls_of(*reply)) {
    if (!call->arguments.is_object()) continue;
    const auto path = json::find_string(call->arguments.get_object(), "path");
    if (!path || path->empty()) continue;
    if (call->name == "read") read_.emplace(*path);
    if (call->name == "write" || call->name == "edit") modified_.emplace(*path);
  }
}

FileLists FileTracker::lists() const {
  FileLists lists;
  lists.modified.assign(modified_.begin(), modified_.end());
  std::set_difference(read_.begin(), read_.end(), modified_.begin(), modified_.end(), std::back_inserter(lists.read));
  std::sort(lists.read.begin(), lists.read.end(), precedes_in_utf16);
  std::sort(lists.modified.begin(), lists.modified.end(), precedes_in_utf16);
  return lists;
}

json::object details_of(const FileLists& files) {
  return {{"readFiles", json::array(files.read.begin(), files.read.end())},
          {"modifiedFiles", json::array(files.modified.begin(), files.modified.end())}};
}

std::string text_of(const FileLists& files) {
  std::string text;
  add_block(text, "read-files", files.read);
  add_block(text, "modified-files", files.modified);
  return text;
}

}  // namespace tau::coding
