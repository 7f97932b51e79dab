// What the golden cases do not say of read, write and bash: field faults and bad input.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "base/process.h"
#include "coding/tools/output_accumulator.h"
#include "coding/tools/tool_support.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

using namespace std::chrono_literals;

class Tools : public testing::Test {
 protected:
  ToolOutcome bash(const std::string& command, json::object more = {}) {
    more["command"] = command;
    return run_tool(make_bash_tool(environment).tool, std::move(more));
  }
  ToolOutcome read(json::object arguments) { return run_tool(make_read_tool(environment).tool, std::move(arguments)); }

  static std::string full_output(const ToolOutcome& outcome) {
    return test::read_file(json::string_or(outcome.result.details->get_object(), "fullOutputPath"));
  }

  test::TemporaryFolder folder;
  ToolEnvironment environment = tool_environment(folder.path());
};

TEST_F(Tools, BashNamesTheSignalThatEndedACommand) {  // FF-59
  EXPECT_EQ(bash("echo part; kill -SEGV $$").error, "part\n\n\nCommand was ended by SIGSEGV (exit code 139)");
}

TEST_F(Tools, BashRefusesTimesThatMakeNoSense) {  // FF-58
  EXPECT_NE(bash("touch ran", {{"timeout", 0}}).error, "");
  EXPECT_NE(bash("touch ran", {{"timeout", -5}}).error, "");
  EXPECT_NE(bash("touch ran", {{"timeout", 1e12}}).error, "");
  EXPECT_NE(bash("touch ran", {{"timeout", "abc"}}).error, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "ran"));
  EXPECT_EQ(bash("sleep 2", {{"timeout", 0.5}}).error, "Command timed out after 0.5 seconds");
}

TEST_F(Tools, BashKeepsAllOfALongOutputInAFile) {  // FF-61
  const ToolOutcome many = bash("seq 1 5000");
  EXPECT_NE(many.text().find("[Showing lines 3001-5000 of 5000. Full output: "), std::string::npos);

  EXPECT_TRUE(full_output(many).starts_with("1\n2\n"));
  EXPECT_TRUE(full_output(many).ends_with("4999\n5000\n"));
  EXPECT_FALSE(bash("seq 1 2000").result.details.has_value());
  const ToolOutcome one_more = bash("seq 1 2001");
  EXPECT_TRUE(full_output(one_more).ends_with("2001\n"));
}

TEST_F(Tools, BashShowsTheEndOfALineThatIsTooLong) {  // FF-60
  const ToolOutcome ascii = bash("head -c 300000 /dev/zero | tr '\\0' x");
  EXPECT_EQ(ascii.text().substr(0, 51200), std::string(51200, 'x'));
  EXPECT_NE(ascii.text().find("[Showing last 50.0KB of line 1 (line is 293.0KB). Full output: "), std::string::npos);
  EXPECT_EQ(full_output(ascii).size(), 300000u);
  const ToolOutcome wide = bash("for i in $(seq 1 3000); do printf 'éééééééééééééééééééé'; done");
  EXPECT_TRUE(wide.text().starts_with("é"));
}

TEST_F(Tools, BashMemoryDoesNotGrowWithTheOutput) {
  OutputAccumulator output(folder.path());
  const std::string chunk(100000, 'a');
  for (int i = 0; i < 200; ++i)
    output.add(chunk + "\n");
  output.finish();
  const Truncation t = output.snapshot();
  EXPECT_EQ(t.total_lines, 200u);
  EXPECT_EQ(t.total_bytes, 200u * 100001);
  EXPECT_LE(t.content.size(), 51200u);
  EXPECT_EQ(std::filesystem::file_size(*output.full_output()), 200u * 100001);
}

TEST_F(Tools, BashOutputIsDecodedAcrossPieces) {
  OutputAccumulator output(folder.path());
  for (const char c : std::string("\xEF\xBB\xBF"
                                  "a\u00e9\u20ac\n"))
    output.add(std::string_view(&c, 1));
  output.finish();
  EXPECT_EQ(output.snapshot().content, "a\u00e9\u20ac\n");  // the mark is dropped
}

TEST_F(Tools, BashReportsProgressWhileItRuns) {
  std::vector<std::string> seen;
  const agent::AgentTool tool = make_bash_tool(environment).tool;
  run_tool(tool, json::object{{"command", "echo one; sleep 0.3; echo two"}}, {},
           [&](const agent::ToolResult& partial) { seen.push_back(ai::text_of(partial.content)); });
  ASSERT_GE(seen.size(), 3u);
  EXPECT_EQ(seen.front(), "");
  EXPECT_EQ(seen[1], "one\n");
  EXPECT_EQ(seen.back(), "one\ntwo\n");
}

TEST_F(Tools, BashSaysWhenItsFolderIsGone) {
  environment.cwd = folder / "gone";
  EXPECT_NE(bash("echo hi").error.find("Working directory does not exist: "), std::string::npos);
  environment.cwd = folder.path();
  environment.shell_path = "/no/shell";
  EXPECT_EQ(bash("echo hi").error, "Custom shell path not found: /no/shell");
}

TEST_F(Tools, BashRunsThePrefixBeforeEachCommand) {
  environment.command_prefix = "x=42";
  environment.environment = [] { return std::map<std::string, std::optional<std::string>>{{"PI_MODEL", "m1"}}; };
  EXPECT_EQ(bash("echo $x $PI_MODEL").text(), "42 m1\n");
}

TEST_F(Tools, ReadRefusesWhatIsNoFileWithoutHanging) {
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_NE(read({{"path", "fifo"}}).error.find("no regular file"), std::string::npos);
  EXPECT_NE(read({{"path", "/dev/zero"}}).error.find("no regular file"), std::string::npos);
}

TEST_F(Tools, ReadTellsTextFromImagesByWhatIsInThem) {  // FF-72
  folder.write("notes.gif", "GIF is a format");
  EXPECT_EQ(read({{"path", "notes.gif"}}).text(), "GIF is a format");
  std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\3\x8\6\0\0\0", 29);
  png += std::string(100, 'x');
  folder.write("x.txt", png);
  const ToolOutcome image = read({{"path", "x.txt"}});
  ASSERT_EQ(image.result.content.size(), 2u);
  EXPECT_EQ(std::get<ai::ImageContent>(image.result.content[1]).mime_type, "image/png");
}

TEST_F(Tools, ReadAtAnOffsetInALargeFileHoldsOnlyWhatItShows) {
  {
    std::ofstream out(folder / "big");
    for (int i = 1; i <= 400000; ++i)
      out << "line number " << i << " of a large file\n";
  }
  const ToolOutcome part = read({{"path", "big"}, {"offset", 399999}, {"limit", 2}});
  EXPECT_EQ(part.text(),
            "line number 399999 of a large file\nline number 400000 of a large file\n\n[1 more lines in file. Use "
            "offset=400001 to continue.]");
}

TEST_F(Tools, WriteKeepsTheModeOfTheFileItReplaces) {
  const auto script = folder.write("run.sh", "old");
  chmod(script.c_str(), 0750);
  EXPECT_EQ(run_tool(make_write_tool(environment).tool, json::object{{"path", "run.sh"}, {"content", "new"}}).error,
            "");
  struct stat info{};
  ASSERT_EQ(stat(script.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0750u);
  EXPECT_EQ(test::read_file(script), "new");
}

/// A schema without the texts for people.
json::value bare(const json::value& v) {
  if (const json::array* list = v.if_array()) {
    json::array out;
    for (const json::value& item : *list)
      out.push_back(bare(item));
    return out;
  }
  const json::object* members = v.if_object();
  if (members == nullptr) return v;
  json::object out;
  for (const auto& [key, value] : *members) {
    if (key != "description" || !value.is_string()) out.emplace(key, bare(value));
  }
  return out;
}

TEST_F(Tools, SchemasHaveTheAgreedKeysInTheAgreedOrder) {  // CA-1, CA-4, appendix A
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"read", R"({"type":"object","required":["path"],"properties":{"path":{"type":"string"},)"
               R"("offset":{"type":"number"},"limit":{"type":"number"}}})"},
      {"bash", R"({"type":"object","required":["command"],"properties":{"command":{"type":"string"},)"
               R"("timeout":{"type":"number"}}})"},
      {"edit", R"({"type":"object","required":["path","edits"],"properties":{"path":{"type":"string"},)"
               R"("edits":{"type":"array","items":{"type":"object","required":["oldText","newText"],)"
               R"("properties":{"oldText":{"type":"string"},"newText":{"type":"string"}}}}}})"},
      {"write", R"({"type":"object","required":["path","content"],"properties":{"path":{"type":"string"},)"
                R"("content":{"type":"string"}}})"},
      {"grep", R"({"type":"object","required":["pattern"],"properties":{"pattern":{"type":"string"},)"
               R"("path":{"type":"string"},"glob":{"type":"string"},"ignoreCase":{"type":"boolean"},)"
               R"("literal":{"type":"boolean"},"context":{"type":"number"},"limit":{"type":"number"}}})"},
      {"find", R"({"type":"object","required":["pattern"],"properties":{"pattern":{"type":"string"},)"
               R"("path":{"type":"string"},"limit":{"type":"number"}}})"},
      {"ls", R"({"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"number"}}})"}};
  std::vector<std::pair<std::string, std::string>> found;
  for (const BuiltinTool& tool : builtin_tools(environment)) {
    const ai::Tool& declaration = tool.tool.declaration;
    found.emplace_back(declaration.name, json::to_text(bare(declaration.parameters)));
    EXPECT_FALSE(tool.snippet.empty());
    EXPECT_EQ(tool.active_by_default,
              declaration.name != "grep" && declaration.name != "find" && declaration.name != "ls");
  }
  EXPECT_EQ(found, wanted);
}

}  // namespace
}  // namespace tau::coding
