#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "coding/tools/edit_match.h"
#include "coding/tools/line_diff.h"
#include "coding/tools/tool_environment.h"

namespace tau::coding {

/// edit: replaces exact pieces of a file, and nothing else (CA-40 to CA-54, FF-65 to FF-71).
BuiltinTool make_edit_tool(ToolEnvironment environment);

/// Brings the shapes in which models send edits into the declared one (CA-41, FF-69). Anything else is left as it is.
json::value repair_edit_arguments(json::value arguments);

/// The edits of repaired arguments; members that edits do not have are ignored. Empty when there are none.
std::vector<Replacement> edits_of(const json::object& arguments);

struct EditPreview {
  std::string bytes;  // the file afterwards
  DiffText diff;
};
/// What an edit of a file with these bytes would do (CA-312); the error is the one that the tool would give.
std::expected<EditPreview, std::string> preview_edit(std::string_view bytes, const std::vector<Replacement>& edits,
                                                     std::string_view path);

}  // namespace tau::coding
