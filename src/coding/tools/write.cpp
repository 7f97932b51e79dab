#include "coding/tools/write.h"

#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "coding/tools/tool_path.h"

namespace tau::coding {

namespace {

using agent::ToolFailure;
using agent::ToolResult;

asio::awaitable<ToolResult> run(std::shared_ptr<const ToolEnvironment> environment, json::object arguments,
                                std::stop_token stop) {
  const std::string given = json::string_or(arguments, "path");
  const std::filesystem::path path = tool_path(given, environment->cwd);
  const MutationQueue::Turn turn = co_await environment->mutations->enter(path);
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");

  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    throw ToolFailure(system_error_text(EISDIR, "open", path));
  }
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  if (failed) throw ToolFailure(system_error_text(failed.value(), "mkdir", path.parent_path()));
  const std::string content = utf8::remove_lone_surrogates(json::string_or(arguments, "content"));
  const auto written = write_file_atomically(path, content);
  if (!written) throw ToolFailure(written.error().message);
  if (stop.stop_requested()) throw ToolFailure("Operation aborted");  // said even though the file is written (CA-54)

  ToolResult result;
  result.content.emplace_back(ai::TextContent{fmt::format("Successfully wrote to {}", given), {}, {}});
  co_return result;
}

}  // namespace

BuiltinTool make_write_tool(ToolEnvironment environment) {
  BuiltinTool write;
  write.tool.label = "write";
  write.tool.declaration.name = "write";
  write.tool.declaration.description =
      "Write a file as a whole: creates it, with the folders above it, or replaces what is there.";
  write.tool.declaration.parameters = {
      {"type", "object"},
      {"required", json::array{"path", "content"}},
      {"properties",
       json::object{{"path", json::object{{"type", "string"}, {"description", "File to write, relative or absolute"}}},
                    {"content", json::object{{"type", "string"}, {"description", "The complete new contents"}}}}}};
  const auto shared = std::make_shared<const ToolEnvironment>(std::move(environment));
  write.tool.execute = [shared](std::string, json::object arguments, std::stop_token stop, agent::ToolUpdate) {
    return run(shared, std::move(arguments), std::move(stop));
  };
  write.snippet = "Create a file or replace one as a whole";
  write.guidelines = {"Use write only for new files and complete rewrites."};
  return write;
}

}  // namespace tau::coding
