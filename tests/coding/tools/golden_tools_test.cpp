// The recorded cases of read, write and bash (tests/fixtures/tools).
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/process.h"
#include "base/utf8.h"
#include "coding/tools/tool_support.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// The folder that the cases were recorded in (see the README there).
class GoldenTools : public testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 1; i <= 2500; ++i)
      lines += "n" + std::to_string(i) + "\n";
    std::string bytes;
    for (int i = 0; i < 900; ++i)
      bytes += std::string(i == 0 ? "" : "\n") + std::string(79, 'b');
    folder.write("a.txt", "l1\nl2\nl3\n");
    folder.write("empty.txt", "");
    folder.write("nofinal.txt", "x\ny");
    folder.write("long.txt", lines);
    folder.write("wide.txt", std::string(60000, 'w') + "\nsecond\n");
    folder.write("bytes.txt", bytes);
    folder.write("bom.txt", "\xEF\xBB\xBFhi\n");
    folder.write("crlf.txt", "a\r\nb\r\n");
    folder.write("bin.dat", std::string("\xFF\xFE\0A", 4));
    folder.write("it\u2019s.txt", "curly\n");
    folder.write("sp ace.txt", "spaced\n");
    folder.write("fake.png", "not png");
    folder.write("bad.png", std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1", 20));
    folder.write("dir/.hid/x", "");
    setenv("HOME", (folder / "home").c_str(), 1);
  }

  /// Names that differ from run to run, as the recording has them.
  std::string anonymous(std::string text) {
    text = replace_all(std::move(text), folder.path().string(), "<dir>");
    const std::size_t log = text.find("/pi-bash-");
    if (log == std::string::npos) return text;
    const std::size_t begin = text.rfind(' ', log) + 1;
    const std::size_t end = text.find(".log", log) + 4;
    EXPECT_EQ(end - log, std::string("/pi-bash-0123456789abcdef.log").size());
    return text.replace(begin, end - begin, "<tmp>/pi-bash-<16 hex>.log");
  }

  /// Long texts are recorded as {start, end, utf16Length}.
  void expect_text(const json::value& wanted, const std::string& text) {
    if (wanted.is_string()) {
      EXPECT_EQ(text, json::view(wanted.get_string()));
      return;
    }
    const json::object& parts = wanted.get_object();
    EXPECT_TRUE(text.starts_with(json::string_or(parts, "start"))) << text.substr(0, 300);
    EXPECT_TRUE(text.ends_with(json::string_or(parts, "end")))
        << text.substr(text.size() - std::min<std::size_t>(text.size(), 300));
  }

  void check(const char* file, const agent::AgentTool& tool, const std::map<std::string, std::string>& differences) {
    const json::value cases = test::read_json(test::fixture_root() / "tools" / file);
    for (const json::value& v : cases.get_array()) {
      const json::object& c = v.get_object();
      const json::object& args = *json::find_object(c, "args");
      SCOPED_TRACE(json::to_text(args));
      const auto start = std::chrono::steady_clock::now();
      const ToolOutcome outcome = run_tool(tool, args);
      if (const auto limit = json::find_number(c, "elapsedUnderMs")) {
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(static_cast<int>(*limit) + 500));
      }
      const auto difference = differences.find(json::to_text(args));
      if (difference != differences.end()) {
        EXPECT_EQ(anonymous(outcome.error.empty() ? outcome.text() : outcome.error), difference->second);
      } else if (const auto error = json::find_string(c, "error")) {
        EXPECT_EQ(anonymous(outcome.error), *error);
      } else {
        ASSERT_EQ(outcome.error, "");
        const json::object& result = *json::find_object(c, "result");
        const json::object& block = json::find_array(result, "content")->front().get_object();
        expect_text(*json::find(block, "text"), anonymous(outcome.text()));
        expect_counts(json::find_object(result, "details"), outcome);
      }
    }
  }

  void expect_counts(const json::object* details, const ToolOutcome& outcome) {
    const json::object* wanted = details != nullptr ? json::find_object(*details, "truncation") : nullptr;
    if (wanted == nullptr) return;
    ASSERT_TRUE(outcome.result.details);
    const json::object& found = *json::find_object(outcome.result.details->get_object(), "truncation");
    for (const char* key : {"truncatedBy", "totalLines", "totalBytes", "outputLines", "outputBytes", "lastLinePartial",
                            "firstLineExceedsLimit"}) {
      EXPECT_TRUE(json::equal(*json::find(*wanted, key), *json::find(found, key)))
          << key << ": " << json::to_text(*json::find(found, key));
    }
  }

  test::TemporaryFolder folder;
};

TEST_F(GoldenTools, Read) {
  check("read.json", make_read_tool(tool_environment(folder.path())).tool,
        {{R"({"path":"bad.png"})",  // our words for what is wrong with it
          "Read image file [image/png]\n[Image omitted: the file is damaged.]"}});
}

TEST_F(GoldenTools, Write) {
  check("write.json", make_write_tool(tool_environment(folder.path())).tool, {});
  EXPECT_EQ(test::read_file(folder / "new/deep/x.txt"), "hi");
  EXPECT_EQ(test::read_file(folder / "home/w.txt"), "\u00e9");
}

TEST_F(GoldenTools, Bash) {
  check("bash.json", make_bash_tool(tool_environment(folder.path())).tool,
        {{R"({"command":"kill -9 $$"})",  // FF-59: a death by signal is a failure
          "(no output)\n\nCommand was ended by SIGKILL (exit code 137)"}});
  end_all_processes();
}

}  // namespace
}  // namespace tau::coding
