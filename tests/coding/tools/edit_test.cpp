// The edit tool on real files: the golden cases (fixtures/edit, made by pi 0.85.0), field faults, refusals.
#include "coding/tools/edit.h"

#include <sys/stat.h>

#include <chrono>
#include <stop_token>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "coding/tools/tool_support.h"
#include "coding/tools/write.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

/// Golden cases in which tau differs on purpose, and what it does instead.
struct Deviation {
  std::string_view name;
  std::string_view file;  // afterwards
  std::string_view diff;  // empty: as in the golden case
  std::string_view reason;
};
constexpr Deviation kDeviations[] = {
    {"mixed-first-crlf", "a\r\nb\nC\n", "", "line ends outside the edit stay (FF-65)"},
    {"mixed-first-lf", "a\nb\r\nC\r\n", "", "line ends outside the edit stay (FF-65)"},
    {"lone-cr", "a\rB\rc", "", "line ends outside the edit stay (FF-65)"},
    {"touched-line-normalised", "\u201ckeep\u201d hit  \nuntouched \u201cq\u201d  \n",
     "-1 \u201ckeep\u201d target \u2014 tail  \n+1 \u201ckeep\u201d hit  \n 2 untouched \u201cq\u201d  ",
     "the rest of a matched line stays (FF-65, FF-67)"},
    {"mixed-exact-and-fuzzy", "x = \u2018a\u2019  \ny = 'c'  \nz - 2\n",
     " 1 x = \u2018a\u2019  \n-2 y = 'b'  \n-3 z \u2014 1\n+2 y = 'c'  \n+3 z - 2",
     "blanks behind the matched text stay (FF-65, FF-67)"},
    {"multi-line", "if (z) {\n}  \nend\n", "-1 if (a) {  \n-2   b\u00a0= 1;\n+1 if (z) {\n 3 }  \n 4 end",
     "blanks behind the matched text stay (FF-65, FF-67)"},
};

const Deviation* deviation_of(const std::string& file, std::string_view name) {
  if (name == "multi-line" && file != "fuzzy.json") return nullptr;
  for (const Deviation& deviation : kDeviations) {
    if (deviation.name == name) return &deviation;
  }
  return nullptr;
}

class GoldenEdit : public testing::TestWithParam<const char*> {};

TEST_P(GoldenEdit, CasesAreReproduced) {
  const json::value cases = test::read_json(test::fixture_root() / "edit" / GetParam());
  ASSERT_FALSE(cases.get_array().empty());
  for (const json::value& v : cases.get_array()) {
    const json::object& c = v.get_object();
    const std::string name = json::string_or(c, "name");
    SCOPED_TRACE(name);
    const test::TemporaryFolder folder;
    const auto file = folder.write("target.txt", json::string_or(c, "file"));
    const agent::AgentTool edit = make_edit_tool(tool_environment(folder.path())).tool;
    const json::value& args = *json::find(c, "args");
    if (const json::value* prepared = json::find(c, "preparedArgs")) {
      EXPECT_EQ(json::to_text(edit.prepare_arguments(args)), json::to_text(*prepared));
    }

    ToolOutcome outcome;
    if (name == "json-string-bad") {
      // A string does not fit the schema. The golden case gives it to the tool itself.
      EXPECT_NE(run_tool(edit, args).error, "");
      boost::asio::io_context io;
      try {
        test::run(io, edit.execute("call_1", args.get_object(), {}, {}));
      } catch (const agent::ToolFailure& failure) {
        outcome.error = failure.what();
      }
    } else {
      outcome = run_tool(edit, args);
    }
    if (const json::object* error = json::find_object(c, "error")) {
      EXPECT_EQ(outcome.error, json::string_or(*error, "message"));
      EXPECT_EQ(test::read_file(file), json::string_or(c, "file"));
      continue;
    }
    const json::object& result = *json::find_object(c, "result");
    const json::object& wanted = *json::find_object(result, "details");
    ASSERT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.text(), json::string_or(result, "text"));
    const json::object& details = outcome.result.details->get_object();
    const Deviation* deviation = deviation_of(GetParam(), name);
    EXPECT_EQ(test::read_file(file), deviation != nullptr ? deviation->file : json::string_or(result, "file"));
    EXPECT_EQ(json::number_or(details, "firstChangedLine"), json::number_or(wanted, "firstChangedLine"));
    if (deviation != nullptr && !deviation->diff.empty()) {
      EXPECT_EQ(json::string_or(details, "diff"), deviation->diff) << deviation->reason;
    } else {
      EXPECT_EQ(json::string_or(details, "diff"), json::string_or(wanted, "diff"));
      EXPECT_EQ(json::string_or(details, "patch"), json::string_or(wanted, "patch"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenEdit,
                         testing::Values("arguments.json", "errors.json", "exact.json", "fuzzy.json",
                                         "line-endings.json", "multi.json"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name.substr(0, name.find('.'));
                         });

json::object piece(std::string_view from, std::string_view to) {
  return {{"oldText", from}, {"newText", to}};
}

class EditTool : public testing::Test {
 protected:
  ToolOutcome run(std::string_view path, json::array edits, std::stop_token stop = {}) {
    return run_tool(edit, json::object{{"path", path}, {"edits", std::move(edits)}}, std::move(stop));
  }

  test::TemporaryFolder folder;
  ToolEnvironment environment = tool_environment(folder.path());
  agent::AgentTool edit = make_edit_tool(environment).tool;
};

TEST_F(EditTool, TheSchemaHasTheDeclaredKeysInTheirOrder) {  // CA-4, CA-40
  const json::object& schema = edit.declaration.parameters;
  const json::object& items =
      *json::find_object(*json::find_object(*json::find_object(schema, "properties"), "edits"), "items");
  EXPECT_EQ(json::to_text(*json::find(schema, "required")), R"(["path","edits"])");
  EXPECT_EQ(json::to_text(*json::find(items, "required")), R"(["oldText","newText"])");
  std::string keys;
  for (const auto& member : schema)
    keys += std::string(member.key()) + " ";
  EXPECT_EQ(keys, "type required properties ");
}

TEST_F(EditTool, ShapesThatModelsSendGiveTheSameResult) {  // CA-41, FF-69
  const json::value shapes[] = {
      json::object{{"path", "a"}, {"edits", R"([{"oldText":"x","newText":"y"}])"}},
      json::object{{"path", "a"}, {"edits", R"({"oldText":"x","newText":"y"})"}},
      json::object{{"path", "a"}, {"edits", piece("x", "y")}},
      json::object{{"path", "a"}, {"oldText", "x"}, {"newText", "y"}},
      json::object{{"path", "a"},
                   {"reason", "because"},
                   {"edits", json::array{json::object{{"oldText", "x"}, {"newText", "y"}, {"reason", "because"}}}}}};
  for (const json::value& shape : shapes) {
    folder.write("a", "x\n");
    const ToolOutcome outcome = run_tool(edit, shape);
    EXPECT_EQ(outcome.error, "") << json::to_text(shape);
    EXPECT_EQ(test::read_file(folder / "a"), "y\n");
    EXPECT_EQ(json::to_text(*outcome.result.details),
              R"({"diff":"-1 x\n+1 y","patch":"--- a\n+++ a\n@@ -1,1 +1,1 @@\n-x\n+y\n","firstChangedLine":1})");
  }
}

TEST_F(EditTool, WhatCannotBeEditedIsRefusedWithTheReason) {  // CA-43
  std::filesystem::create_directory(folder / "d");
  ::mkfifo((folder / "pipe").c_str(), 0600);
  const json::array edits{piece("x", "y")};
  EXPECT_EQ(run("no", edits).error, "Could not edit file: no. Error code: ENOENT.");
  EXPECT_EQ(run("d", edits).error, "Could not edit file: d. Error code: EISDIR.");
  EXPECT_EQ(run("d/../no/f", edits).error, "Could not edit file: d/../no/f. Error code: ENOENT.");
  EXPECT_EQ(run("pipe", edits).error, "Could not edit file: pipe. Error code: EINVAL.");
}

TEST_F(EditTool, AnAbortedCallChangesNothing) {  // CA-7
  folder.write("f", "x\n");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(run("f", {piece("x", "y")}, stop.get_token()).error, "Operation aborted");
  EXPECT_EQ(test::read_file(folder / "f"), "x\n");
}

TEST_F(EditTool, AFileThatIsEditedKeepsItsMode) {
  folder.write("f", "x\n");
  ::chmod((folder / "f").c_str(), 0751);
  EXPECT_EQ(run("@f", {piece("x", "y")}).error, "");
  struct stat info{};
  ::stat((folder / "f").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777U, 0751U);
}

TEST_F(EditTool, CallsOfOneBatchBuildOnEachOther) {  // FF-70
  std::filesystem::create_symlink("f", folder / "link");
  const agent::AgentTool write = make_write_tool(environment).tool;
  boost::asio::io_context io;
  int succeeded = 0;
  const auto start = [&](const agent::AgentTool& tool, json::object arguments) {
    boost::asio::co_spawn(
        io, tool.execute("call", std::move(arguments), {}, {}),
        [&](const std::exception_ptr& error, const agent::ToolResult&) { succeeded += error ? 0 : 1; });
  };
  folder.write("f", "");
  start(write, {{"path", "f"}, {"content", "a"}});
  start(edit, {{"path", "f"}, {"edits", json::array{piece("a", "b")}}});
  start(edit, {{"path", "./f"}, {"edits", json::array{piece("b", "c")}}});
  start(edit, {{"path", "link"}, {"edits", json::array{piece("c", "d")}}});
  io.run();
  EXPECT_EQ(succeeded, 4);
  EXPECT_EQ(test::read_file(folder / "f"), "d");
}

TEST_F(EditTool, HugeFilesAreEditedInTimeWithSmallDetails) {  // FF-71
  folder.write("line", std::string(5'000'000, 'a') + "needle" + std::string(100, 'b'));
  std::string many;
  for (int i = 0; i < 200'000; ++i)
    many += "line " + std::to_string(i) + "\n";
  folder.write("many", many);
  const auto start = std::chrono::steady_clock::now();
  const ToolOutcome line = run("line", {piece("needle", "pin")});
  const ToolOutcome both = run("many", {piece("line 0\n", "first\n"), piece("line 199999\n", "last\n")});
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(line.error, "");
  EXPECT_EQ(both.error, "");
  EXPECT_LT(json::to_text(*line.result.details).size(), 20'000U);
  EXPECT_LT(json::to_text(*both.result.details).size(), 2'000U);
  EXPECT_NE(json::to_text(*line.result.details).find("pin"), std::string::npos);
  EXPECT_LT(took, std::chrono::seconds(5));  // an optimised build needs less than 0.2 s
}

TEST_F(EditTool, APreviewIsWhatTheToolDoes) {  // CA-312
  const auto preview = preview_edit("a\nb\n", {{"b", "c"}}, "f");
  ASSERT_TRUE(preview);
  EXPECT_EQ(preview->bytes, "a\nc\n");
  EXPECT_EQ(preview->diff.diff, " 1 a\n-2 b\n+2 c");
  EXPECT_EQ(preview_edit("a\n", {{"b", "c"}}, "f").error().find("Could not find the exact text in f."), 0U);
}

}  // namespace
}  // namespace tau::coding
