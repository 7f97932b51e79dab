#include "coding/resources/system_prompt.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/files.h"
#include "coding/config/paths.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

bool has_tool(const SystemPromptParts& parts, std::string_view name) {
  return std::any_of(parts.tools.begin(), parts.tools.end(), [&](const ToolNotes& tool) { return tool.name == name; });
}

std::string own_text(const SystemPromptParts& parts) {
  std::string out =
      "You are tau, a coding agent that works in a terminal, on the user's own machine. You solve programming tasks by "
      "reading files, running commands, and changing code.\n\nAvailable tools:\n";
  bool listed = false;
  for (const ToolNotes& tool : parts.tools) {
    if (!tool.snippet) continue;
    out += fmt::format("- {}: {}\n", tool.name, *tool.snippet);
    listed = true;
  }
  if (!listed) out += "(none)\n";
  out +=
      "\nThe project or the user may have added further tools; use them as they describe themselves.\n\nGuidelines:\n";

  std::vector<std::string> guidelines;
  const auto add = [&](std::string text) {
    if (std::find(guidelines.begin(), guidelines.end(), text) == guidelines.end())
      guidelines.push_back(std::move(text));
  };
  const bool has_shell = has_tool(parts, "bash") || has_tool(parts, "powershell");
  if (has_shell && !has_tool(parts, "grep") && !has_tool(parts, "find") && !has_tool(parts, "ls")) {
    add(fmt::format("List, find and search files with {} (ls, rg, find).",
                    has_tool(parts, "bash") ? "bash" : "powershell"));
  }
  for (const ToolNotes& tool : parts.tools) {
    for (const std::string& guideline : tool.guidelines)
      add(guideline);
  }
  add("Keep answers short and to the point.");
  add("Name files by their paths when you speak of them.");
  for (const std::string& guideline : guidelines)
    out += fmt::format("- {}\n", guideline);

  if (!parts.documentation.empty()) {
    const std::string folder = parts.documentation.string();
    out += fmt::format(
        "\nDocumentation of tau itself (open it only when the user asks about tau, its settings, extensions or "
        "library):\n"
        "- overview: {0}/README.md\n- guides: {0}/docs\n- examples: {0}/examples\n",
        folder);
  }
  out.pop_back();  // the parts that follow bring their own line ends
  return out;
}

std::optional<std::string> first_file(std::string_view name, const fs::path& agent_folder, const fs::path& cwd,
                                      bool project_trusted, std::vector<std::string>& warnings) {
  std::vector<fs::path> folders;
  if (project_trusted) folders.push_back(project_folder(cwd));
  folders.push_back(agent_folder);
  for (const fs::path& folder : folders) {
    std::error_code failed;
    if (!fs::is_regular_file(folder / name, failed)) continue;
    auto bytes = read_file(folder / name);
    if (bytes) return std::string(without_byte_order_mark(*bytes));
    warnings.push_back(bytes.error().message);
  }
  return std::nullopt;
}

}  // namespace

std::string build_system_prompt(const SystemPromptParts& parts) {
  std::string out = parts.custom ? *parts.custom : own_text(parts);
  if (!parts.append.empty()) out += fmt::format("\n\n{}", fmt::join(parts.append, "\n\n"));
  if (!parts.context_files.empty()) {
    out += "\n\n<project_context>\n\nWhat this user and this project expect of you:\n\n";
    for (const ContextFile& file : parts.context_files) {
      out += fmt::format("<project_instructions path=\"{}\">\n{}\n</project_instructions>\n\n", file.path.string(),
                         file.content);
    }
    out += "</project_context>\n";
  }
  if (has_tool(parts, "read") || has_tool(parts, "bash")) out += skills_block(parts.skills, has_tool(parts, "read"));
  out += fmt::format("\nCurrent working directory: {}", parts.cwd.generic_string());
  if (parts.custom) out += '\n';
  return out;
}

PromptFiles find_prompt_files(const fs::path& agent_folder, const fs::path& cwd, bool project_trusted) {
  PromptFiles out;
  out.system = first_file(kSystemPromptFile, agent_folder, cwd, project_trusted, out.warnings);
  out.append = first_file(kAppendSystemPromptFile, agent_folder, cwd, project_trusted, out.warnings);
  return out;
}

std::expected<std::string, Error> prompt_argument(const std::string& argument, const fs::path& cwd) {
  const fs::path path = resolve_path(argument, cwd);
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return argument;  // a long text is no path: that "fails" as well
  auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  return std::string(without_byte_order_mark(*bytes));
}

}  // namespace tau::coding
