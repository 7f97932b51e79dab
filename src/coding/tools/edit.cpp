#include "coding/tools/edit.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "coding/tools/tool_path.h"

namespace tau::coding {

namespace {

using agent::ToolFailure;
using agent::ToolResult;

bool is_edit(const json::value& value) {
  const json::object* edit = value.if_object();
  return edit != nullptr && json::find_string(*edit, "oldText") && json::find_string(*edit, "newText");
}

/// 0, or why the file cannot be edited. Pipes and devices are no text and may never end.
int edit_obstacle(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || ::access(path.c_str(), R_OK | W_OK) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  return S_ISREG(info.st_mode) ? 0 : EINVAL;
}

void end_if_aborted(const std::stop_token& stop) {
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");
}

asio::awaitable<ToolResult> run(std::shared_ptr<const ToolEnvironment> environment, json::object arguments,
                                std::stop_token stop) {
  end_if_aborted(stop);  // CA-7
  const std::string given = json::string_or(arguments, "path");
  const std::vector<Replacement> edits = edits_of(arguments);
  if (edits.empty()) throw ToolFailure("Edit tool input is invalid. edits must contain at least one replacement.");
  const std::filesystem::path path = tool_path(given, environment->cwd);
  const MutationQueue::Turn turn = co_await environment->mutations->enter(path);
  end_if_aborted(stop);

  if (const int code = edit_obstacle(path); code != 0) {
    const char* name = strerrorname_np(code);  // CA-43
    throw ToolFailure(
        fmt::format("Could not edit file: {}. Error code: {}.", given, name != nullptr ? name : std::to_string(code)));
  }
  const auto bytes = read_file(path);
  if (!bytes) throw ToolFailure(bytes.error().message);
  auto edited = preview_edit(*bytes, edits, given);
  if (!edited) throw ToolFailure(edited.error());
  end_if_aborted(stop);
  const auto written = write_file_atomically(path, edited->bytes);
  if (!written) throw ToolFailure(written.error().message);
  end_if_aborted(stop);  // said even though the file has changed (CA-54)

  ToolResult result;
  result.content.emplace_back(
      ai::TextContent{fmt::format("Successfully replaced {} block(s) in {}.", edits.size(), given), {}, {}});
  json::object details{{"diff", edited->diff.diff}, {"patch", edited->diff.patch}};
  if (edited->diff.first_changed_line) details["firstChangedLine"] = *edited->diff.first_changed_line;
  result.details = std::move(details);
  co_return result;
}

}  // namespace

json::value repair_edit_arguments(json::value arguments) {
  json::object* members = arguments.if_object();
  if (members == nullptr) return arguments;
  if (json::value* edits = members->if_contains("edits")) {
    if (const json::string* text = edits->if_string()) {
      const auto parsed = json::parse(json::view(*text), {.wtf8 = true});
      if (parsed && (parsed->is_array() || is_edit(*parsed))) *edits = *parsed;
    }
    if (is_edit(*edits)) {
      json::array list;
      list.push_back(*edits);
      *edits = std::move(list);
    }
  }
  if (is_edit(arguments)) {
    json::array list;
    if (const json::array* edits = json::find_array(*members, "edits")) list = *edits;
    list.push_back(json::object{{"oldText", members->at("oldText")}, {"newText", members->at("newText")}});
    json::object repaired;
    for (const auto& member : *members) {
      if (member.key() != "oldText" && member.key() != "newText") repaired.emplace(member.key(), member.value());
    }
    repaired["edits"] = std::move(list);
    return repaired;
  }
  return arguments;
}

std::vector<Replacement> edits_of(const json::object& arguments) {
  std::vector<Replacement> edits;
  const json::array* list = json::find_array(arguments, "edits");
  if (list == nullptr) return edits;
  for (const json::value& value : *list) {
    if (!is_edit(value)) return {};
    const json::object& edit = value.get_object();
    edits.push_back({json::string_or(edit, "oldText"), json::string_or(edit, "newText")});
  }
  return edits;
}

std::expected<EditPreview, std::string> preview_edit(std::string_view bytes, const std::vector<Replacement>& edits,
                                                     std::string_view path) {
  const LfText before(bytes);
  auto edited = apply_edits(before, edits, path);
  if (!edited) return std::unexpected(std::move(edited.error()));
  EditPreview preview;
  preview.bytes = std::move(edited->bytes);
  const LfText after(preview.bytes);
  preview.diff = describe_diff(before.view(), after.view(), path, edited->changes);
  return preview;
}

BuiltinTool make_edit_tool(ToolEnvironment environment) {
  BuiltinTool edit;
  edit.tool.label = "edit";
  edit.tool.declaration.name = "edit";
  edit.tool.declaration.description =
      "Change parts of one file by exact replacement. Every oldText has to occur exactly once in the file as it is now "
      "and must not overlap another one: all of them are looked for before anything changes. Put changes that lie "
      "close "
      "together into one edit, and leave unchanged text between distant ones out.";
  const json::object text{{"type", "string"}};
  json::object old_text = text;
  old_text["description"] = "Text to replace, exactly as in the file and long enough to occur only once";
  json::object new_text = text;
  new_text["description"] = "Text to put in its place";
  edit.tool.declaration.parameters = {
      {"type", "object"},
      {"required", json::array{"path", "edits"}},
      {"properties",
       json::object{
           {"path", json::object{{"type", "string"}, {"description", "File to change, relative or absolute"}}},
           {"edits",
            json::object{{"type", "array"},
                         {"description", "Replacements, all matched against the file as it is before the call"},
                         {"items", json::object{{"type", "object"},
                                                {"required", json::array{"oldText", "newText"}},
                                                {"properties",
                                                 json::object{{"oldText", old_text}, {"newText", new_text}}}}}}}}}};
  const auto shared = std::make_shared<const ToolEnvironment>(std::move(environment));
  edit.tool.prepare_arguments = repair_edit_arguments;
  edit.tool.execute = [shared](std::string, json::object arguments, std::stop_token stop, agent::ToolUpdate) {
    return run(shared, std::move(arguments), std::move(stop));
  };
  edit.snippet = "Change parts of a file by exact replacement, several at once";
  edit.guidelines = {"Use edit for changes to existing files; each oldText must match the file exactly and occur once.",
                     "Make several changes to one file with one edit call that has several entries in edits.",
                     "Keep oldText as short as it can be while it is still unique; do not bridge distant changes with "
                     "unchanged lines."};
  return edit;
}

}  // namespace tau::coding
