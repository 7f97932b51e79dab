// grep, find and ls: the recorded cases, field faults, bad input. Real ripgrep and fd.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "coding/tools/find.h"
#include "coding/tools/grep.h"
#include "coding/tools/ls.h"
#include "coding/tools/ripgrep_events.h"
#include "coding/tools/tool_support.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

using namespace std::chrono_literals;

class Search : public testing::Test {
 protected:
  ToolOutcome grep(json::object arguments) { return run_tool(make_grep_tool(environment).tool, std::move(arguments)); }
  ToolOutcome find(json::object arguments) { return run_tool(make_find_tool(environment).tool, std::move(arguments)); }
  ToolOutcome ls(json::object arguments) { return run_tool(make_ls_tool(environment).tool, std::move(arguments)); }

  std::string anonymous(std::string text) const {
    const std::string name = folder.path().string();
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
      text.replace(at, name.size(), "<dir>");
    }
    return text;
  }

  test::TemporaryFolder folder;
  ToolEnvironment environment = tool_environment(folder.path());
};

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_F(Search, LsMatchesTheGoldenCases) {
  for (const char* name :
       {"a.txt", "B.txt", "_u", "Zed", "bad.png", "bin.dat", "bom.txt", "bytes.txt", "crlf.txt", "empty.txt",
        "fake.png", "it\u2019s.txt", "long.txt", "nofinal.txt", "sp ace.txt", "wide.txt"}) {
    folder.write(name, "");
  }
  std::filesystem::create_directories(folder / "dir/.hid");
  std::filesystem::create_symlink("missing", folder / "broken");
  std::filesystem::create_symlink("dir", folder / "linkdir");
  const json::value cases = test::read_json(test::fixture_root() / "tools/ls.json");
  for (const json::value& v : cases.get_array()) {
    const json::object& c = v.get_object();
    SCOPED_TRACE(json::to_text(*json::find(c, "args")));
    const ToolOutcome outcome = ls(*json::find_object(c, "args"));
    EXPECT_EQ(anonymous(outcome.error), json::string_or(c, "error"));
    const json::object* result = json::find_object(c, "result");
    if (result == nullptr) continue;
    EXPECT_EQ(outcome.text(), json::string_or(json::find_array(*result, "content")->front().get_object(), "text"));
    const json::value* details = json::find(*result, "details");
    ASSERT_EQ(outcome.result.details.has_value(), details != nullptr);
    if (details != nullptr) {
      EXPECT_TRUE(json::equal(*outcome.result.details, *details));
    }
  }
}

TEST_F(Search, GrepMatchesTheGoldenCasesButForTheOrderOfFiles) {
  folder.write("src.js", "alpha\nbeta gamma\nalpha two\n" + std::string(600, 'q') + "alpha\n");
  folder.write("node_modules/m/i.js", "alpha\n");
  folder.write(".gitignore", "ignored.txt\n");
  folder.write("ignored.txt", "alpha\n");
  folder.write("a.txt", "l1\n");
  const json::value cases = test::read_json(test::fixture_root() / "tools/grep.json");
  for (const json::value& v : cases.get_array()) {
    const json::object& c = v.get_object();
    const json::object& args = *json::find_object(c, "args");
    SCOPED_TRACE(json::to_text(args));
    const ToolOutcome outcome = grep(args);
    EXPECT_EQ(anonymous(outcome.error), json::string_or(c, "error"));
    const json::object* result = json::find_object(c, "result");
    if (result == nullptr) continue;
    const json::value& wanted = *json::find(json::find_array(*result, "content")->front().get_object(), "text");
    if (const json::object* parts = wanted.if_object()) {
      EXPECT_TRUE(outcome.text().starts_with(json::string_or(*parts, "start")));
      EXPECT_TRUE(outcome.text().ends_with(json::string_or(*parts, "end")));
      EXPECT_EQ(outcome.text().size(), static_cast<std::size_t>(json::number_or(*parts, "utf16Length")));
    } else if (json::number_or(args, "limit") == 2) {  // ripgrep's threads decide which two are found first
      EXPECT_EQ(sorted_lines(outcome.text()).size(), 4U);
      EXPECT_NE(outcome.text().find("[2 matches limit reached. Use limit=4 for more, or refine pattern]"),
                std::string::npos);
    } else {
      EXPECT_EQ(sorted_lines(outcome.text()), sorted_lines(std::string(json::view(wanted.get_string()))));
    }
    const json::value* details = json::find(*result, "details");
    ASSERT_EQ(outcome.result.details.has_value(), details != nullptr);
    if (details != nullptr) {
      EXPECT_TRUE(json::equal(*outcome.result.details, *details));
    }
  }
}

TEST_F(Search, FilesComeInTheOrderOfTheirNames) {
  for (int i = 0; i < 30; ++i)
    folder.write("f" + std::to_string(100 - i), "hit\n");
  std::string wanted;
  for (int i = 71; i <= 100; ++i)
    wanted += "\nf" + std::to_string(i);
  std::vector<std::string> names = sorted_lines(wanted.substr(1));
  const std::string found = find({{"pattern", "f*"}}).text();
  std::string joined;
  for (const std::string& name : names)
    joined += (joined.empty() ? "" : "\n") + name;
  EXPECT_EQ(found, joined);
  const std::string lines = grep({{"pattern", "hit"}}).text();
  EXPECT_TRUE(lines.starts_with("f100: ") || lines.starts_with("f100:1: hit\nf71:1: hit")) << lines;
}

TEST_F(Search, PathPatternsOfFindBeginAtTheSearchedFolder) {  // FF-73
  // A folder above the root that the pattern would match, and characters that globs know.
  for (const char* name : {"src/app", "src/[a]{b}*? x,!"}) {
    const std::string root = (folder / name).string();
    folder.write(std::string(name) + "/lib/a.ts", "");
    folder.write(std::string(name) + "/src/b.ts", "");
    folder.write(std::string(name) + "/pkg/src/c.ts", "");
    EXPECT_EQ(find({{"pattern", "src/**/*.ts"}, {"path", root}}).text(), "pkg/src/c.ts\nsrc/b.ts");
    EXPECT_EQ(find({{"pattern", "./src/*.ts"}, {"path", root}}).text(), "pkg/src/c.ts\nsrc/b.ts");
    EXPECT_EQ(find({{"pattern", "/src/*.ts"}, {"path", root}}).text(), "src/b.ts");
    EXPECT_EQ(find({{"pattern", root + "/lib/*"}, {"path", root}}).text(), "lib/a.ts");
    EXPECT_EQ(find({{"pattern", "*.ts"}, {"path", root}}).text(), "lib/a.ts\npkg/src/c.ts\nsrc/b.ts");
    EXPECT_EQ(find({{"pattern", "**/SRC/*"}, {"path", root}}).text(), "No files found matching pattern");
    EXPECT_EQ(find({{"pattern", "SRC"}, {"path", root}}).text(), "No files found matching pattern");
  }
}

TEST_F(Search, FindShowsFoldersAndHiddenFilesButNotWhatIsIgnored) {  // CA-78
  folder.write(".gitignore", "*.log\n");
  folder.write("x.log", "");
  folder.write(".hidden/y.txt", "");
  EXPECT_EQ(find({{"pattern", "*"}}).text(), ".gitignore\n.hidden/\n.hidden/y.txt");
}

TEST_F(Search, NothingThatAModelSaysIsAnOption) {  // FF-104
  const std::string mark = (folder / "mark").string();
  folder.write("a.txt", "--pre=touch " + mark + "\n-x\n");
  EXPECT_EQ(grep({{"pattern", "--pre=touch " + mark}, {"literal", true}}).text(), "a.txt:1: --pre=touch " + mark);
  EXPECT_EQ(grep({{"pattern", "-x"}, {"glob", "-x"}}).text(), "No matches found");
  EXPECT_EQ(grep({{"pattern", "-x"}, {"glob", "--pre=" + mark}}).error, "");
  EXPECT_EQ(find({{"pattern", "--exec=id"}}).text(), "No files found matching pattern");
  EXPECT_EQ(find({{"pattern", "-rf"}, {"path", "-rf"}}).error, "Path not found: " + (folder / "-rf").string());
  EXPECT_EQ(grep({{"pattern", "x"}, {"path", "-rf"}}).error, "Path not found: " + (folder / "-rf").string());
  folder.write("-rf/--help", "-x\n");
  EXPECT_EQ(grep({{"pattern", "-x"}, {"path", "-rf"}}).text(), "--help:1: -x");
  EXPECT_EQ(find({{"pattern", "--help"}, {"path", "-rf"}}).text(), "--help");
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(Search, ALimitIsNamedOnlyWhenThereIsMore) {  // FF-75
  std::filesystem::create_directory(folder / "d");
  for (int i = 1; i <= 5; ++i)
    folder.write("d/f" + std::to_string(i), "hit\n");
  const auto call = [&](const char* tool, int limit) {
    const json::object where{{"path", "d"}, {"limit", limit}};
    json::object arguments = where;
    if (std::string_view(tool) == "ls") return ls(std::move(arguments)).text();
    arguments["pattern"] = std::string_view(tool) == "grep" ? "hit" : "f*";
    return (std::string_view(tool) == "grep" ? grep(std::move(arguments)) : find(std::move(arguments))).text();
  };
  for (const auto& [tool, what] :
       {std::pair("ls", "entries"), std::pair("find", "results"), std::pair("grep", "matches")}) {
    const std::string all = call(tool, 5);
    EXPECT_EQ(all.find("limit reached"), std::string::npos) << all;
    EXPECT_EQ(sorted_lines(all).size(), 5U);
    const std::string some = call(tool, 4);
    EXPECT_NE(some.find(std::string("[4 ") + what + " limit reached. Use limit=8"), std::string::npos) << some;
    EXPECT_EQ(sorted_lines(some).size(), 6U);
    const std::string one = call(tool, 0);
    EXPECT_NE(one.find(std::string("[1 ") + what + " limit reached. Use limit=2"), std::string::npos) << one;
    EXPECT_EQ(sorted_lines(one).size(), 3U);
  }
}

TEST_F(Search, ALimitWithinAFileKeepsTheContextOfTheLastMatch) {
  folder.write("f", "1\nhit a\n3\nhit b\n5\nhit c\n7\n");
  EXPECT_EQ(
      grep({{"pattern", "hit"}, {"context", 1}, {"limit", 2}}).text(),
      "f-1- 1\nf:2: hit a\nf-3- 3\nf-3- 3\nf:4: hit b\nf-5- 5\n\n[2 matches limit reached. Use limit=4 for more, or "
      "refine pattern]");
  EXPECT_EQ(
      grep({{"pattern", "hit"}, {"context", 2}, {"limit", 1}}).text(),
      "f-1- 1\nf:2: hit a\nf-3- 3\nf-4- hit b\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]");
}

TEST_F(Search, ALoneCrEndsNoLine) {  // FF-74
  folder.write("f", "a\rb\nHIT\nc\r\n");
  EXPECT_EQ(grep({{"pattern", "HIT"}, {"context", 1}}).text(), "f-1- a\rb\nf:2: HIT\nf-3- c");
}

TEST_F(Search, TextThatIsNoUtf8IsFound) {  // FF-74
  folder.write("latin", "caf\xe9 hit\n");
  folder.write("utf16", std::string("\xFF\xFEh\0i\0t\0 \0"
                                    "1\0\n\0",
                                    14));
  EXPECT_EQ(grep({{"pattern", "hit"}}).text(), "latin:1: caf\ufffd hit\nutf16:1: hit 1");
}

long resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  }
  return 0;
}

TEST_F(Search, HugeLinesAndHugeFilesCostNoMemory) {  // FF-74
  {
    std::ofstream out(folder / "line");
    out << std::string(30'000'000, 'a') << " needle " << std::string(30'000'000, 'b') << "\nbehind\n";
    std::ofstream(folder / "dense") << std::string(1'000'000, 'z') << "\n";
    std::ofstream many(folder / "many");
    for (int i = 0; i < 1'000'000; ++i)
      many << "hit number " << i << "\n";
  }
  std::ofstream("/proc/self/clear_refs") << "5";  // the high-water mark starts again
  const long before = resident_kilobytes();
  EXPECT_TRUE(grep({{"pattern", "needle"}, {"context", 2}}).text().starts_with("line:1: aaa"));
  // A million matches in one line.
  EXPECT_TRUE(grep({{"pattern", "z"}, {"path", "dense"}}).text().starts_with("dense:1: zzz"));
  const ToolOutcome many = grep({{"pattern", "hit"}});
  EXPECT_NE(many.text().find("[100 matches limit reached."), std::string::npos);
  if (!test::kAddressSanitizer) {
    EXPECT_LT(resident_kilobytes() - before, 30'000);
  }
}

TEST_F(Search, ResultsAreCutAfterFiftyKilobytes) {  // CA-77
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += "hit " + std::string(60, 'x') + "\n";
  folder.write("f", text);
  const ToolOutcome outcome = grep({{"pattern", "hit"}, {"limit", 5000}});
  EXPECT_TRUE(outcome.text().ends_with("\n\n[50.0KB limit reached]"));
  EXPECT_NE(json::find_object(outcome.result.details->get_object(), "truncation"), nullptr);
}

TEST_F(Search, GlobsOfGrepWorkFromTheSessionsAndFromTheSearchedFolder) {
  folder.write("pkg/src/a.ts", "hit\n");
  folder.write("pkg/src/a.js", "hit\n");
  EXPECT_EQ(grep({{"pattern", "hit"}, {"glob", "*.ts"}}).text(), "pkg/src/a.ts:1: hit");
  EXPECT_EQ(grep({{"pattern", "hit"}, {"path", "pkg"}, {"glob", "src/*.ts"}}).text(), "src/a.ts:1: hit");
  EXPECT_EQ(grep({{"pattern", "hit"}, {"path", "pkg"}, {"glob", "./pkg/src/*.ts"}}).text(), "src/a.ts:1: hit");
  EXPECT_EQ(grep({{"pattern", "hit"}, {"path", "pkg"}, {"glob", "!src/*.ts"}}).text(), "src/a.js:1: hit");
}

TEST_F(Search, AMissingProgramIsNamed) {  // CA-80
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  EXPECT_NE(grep({{"pattern", "x"}}).error.find("ripgrep (rg) is not available"), std::string::npos);
  EXPECT_NE(find({{"pattern", "x"}}).error.find("fd is not available"), std::string::npos);
  setenv("PATH", path.c_str(), 1);
}

TEST_F(Search, ProgramsOfTheAgentFolderComeFirst) {  // CA-80
  const auto rg = folder.write("bin/rg", "#!/bin/sh\necho 'from the folder' >&2\nexit 2\n");
  chmod(rg.c_str(), 0755);
  environment.programs = folder / "bin";
  EXPECT_EQ(grep({{"pattern", "x"}}).error, "from the folder");
}

TEST_F(Search, AnAbortEndsTheSearch) {
  const auto rg = folder.write("bin/rg", "#!/bin/sh\nexec sleep 60\n");
  chmod(rg.c_str(), 0755);
  environment.programs = folder / "bin";
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(100ms);
    stop.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_tool(make_grep_tool(environment).tool, json::object{{"pattern", "x"}}, stop.get_token()).error,
            "Operation aborted");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(RipgrepEvents, LongStringsAreCutAndMatchesAreSkippedInAnySplit) {
  std::string quotes;
  for (int i = 0; i < 50'000; ++i)
    quotes += "\\\"\\u0001";
  const std::string stream =
      R"({"type":"begin","data":{"path":{"text":"f"}}})"
      "\n"
      R"({"type":"match","data":{"path":{"text":"a\"b"},"lines":{"text":"[)" +
      quotes +
      R"("},"line_number":7,"submatches":[{"match":{"text":"]\""},"start":[1,[2]]}]}})"
      "\n"
      R"({"type":"context","data":{"path":{"bytes":"Zv8="},"lines":{"bytes":"4fAK"},"line_number":8,"submatches":[]}})"
      "\n"
      R"({"data":{},"type":"summary"})"
      "\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, stream.size()}) {
    std::vector<GrepLine> lines;
    RipgrepEvents events([&](GrepLine line) { lines.push_back(std::move(line)); });
    for (std::size_t at = 0; at < stream.size(); at += step)
      events.add(std::string_view(stream).substr(at, step));
    EXPECT_TRUE(events.complete());
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].path, "a\"b");
    EXPECT_EQ(lines[0].number, 7U);
    EXPECT_TRUE(lines[0].match);
    EXPECT_TRUE(lines[0].text.starts_with("[\"\x01\"\x01"));
    EXPECT_LT(lines[0].text.size(), 40'000U);
    EXPECT_EQ(lines[1].path, "f\xff");
    EXPECT_FALSE(lines[1].match);
    EXPECT_TRUE(lines[1].text.starts_with("\ufffd"));
  }
}

}  // namespace
}  // namespace tau::coding
