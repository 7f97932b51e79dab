// `tau session …`, `--export` and `--fork` through the real executable.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"

#include "e2e/workplace.h"

namespace tau::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class SessionCommands : public testing::Test {
 protected:
  fs::path fixture(const std::string& name) const {
    return place.file(name + ".jsonl", read_file(fixture_root() / "session" / name / "session.jsonl"));
  }
  ProgramResult session(std::vector<std::string> words) const {
    words.insert(words.begin(), "session");
    return place.run(std::move(words));
  }
  Workplace place;
};

// ---- the golden cases, as a person gets them -----------------------------------------------------------------------

/// Keys in which `show` says something else than pi, and why; "*": the whole case.
struct Difference {
  std::string_view test_case;
  std::string_view key;
  std::string_view reason;
};
constexpr Difference kDifferences[] = {
    {"bom", "*", "a mark before the header is accepted (FF-114)"},
    {"duplicate-ids", "*", "pi does not end"},
    {"self-parent", "*", "pi does not end"},
    {"cycle-two", "*", "pi does not end"},
    {"cr-only", "*", "records in a row on one line are split (FF-24)"},
    {"empty-file", "*", "what is only looked at does not become a session"},
    {"entry-without-id", "leafId", "a record without id is never the leaf (SES-72)"},
    {"entry-without-id", "branchIds", "the same"},
    {"entry-without-id", "contextEntryIds", "the same"},
};

bool differs(std::string_view test_case, std::string_view key) {
  return std::any_of(std::begin(kDifferences), std::end(kDifferences),
                     [&](const Difference& d) { return d.test_case == test_case && (d.key == key || d.key == "*"); });
}

/// Typed messages have what a message must have, with its neutral value: see the golden tests of the coding layer.
bool is_covered(const json::value& got, const json::value& expected) {
  if (const json::array* a = got.if_array(); a != nullptr && expected.is_array()) {
    const json::array& e = expected.get_array();
    return a->size() == e.size() &&
           std::equal(a->begin(), a->end(), e.begin(), [](const auto& x, const auto& y) { return is_covered(x, y); });
  }
  if (got.is_string() && expected.is_object()) {  // the fixtures hold long texts by their length
    return json::find_number(expected.get_object(), "$utf16Length") ==
           static_cast<double>(utf8::utf16_length(json::view(got.get_string())));
  }
  const json::object* o = got.if_object();
  if (o == nullptr || !expected.is_object()) return json::equal(got, expected);
  const json::object& e = expected.get_object();
  const std::string kRequired[] = {"usage", "api", "timestamp", "content"};
  for (const auto& [key, member] : e) {
    const json::value* other = o->if_contains(key);
    if (other == nullptr || !is_covered(*other, member)) return false;
  }
  return std::all_of(o->begin(), o->end(), [&](const auto& member) {
    return e.contains(member.key()) ||
           std::find(std::begin(kRequired), std::end(kRequired),
                     std::string_view(member.key().data(), member.key().size())) != std::end(kRequired);
  });
}

TEST_F(SessionCommands, ShowSaysOfEveryGoldenFileWhatPiSays) {
  std::size_t compared = 0;
  for (const fs::path& folder : folders_in(fixture_root() / "session")) {
    const std::string name = folder.filename();
    const json::object expected = read_json(folder / "expected.json").as_object();
    const fs::path file = fixture(name);
    const std::string before = read_file(file);
    const ProgramResult shown = session({"show", file.string(), "--json"});
    EXPECT_EQ(read_file(file), before) << name << ": showing changes nothing";
    if (differs(name, "*")) continue;
    if (!json::bool_or(expected.at("open").as_object(), "ok")) {
      EXPECT_EQ(shown.exit_code, 1) << name;
      EXPECT_EQ(shown.out, "");
      EXPECT_THAT(shown.err, HasSubstr("Session file is not a valid pi session: " + file.string()));
      continue;
    }
    ASSERT_EQ(shown.exit_code, 0) << name << shown.err;
    std::string text = shown.out;
    json::value got = *json::parse(text);
    if (name.starts_with("v1")) {  // ids that the migration makes up
      const json::array ids = got.as_object().at("entryIds").as_array();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::string id(json::view(ids[i].as_string()));
        for (std::size_t at = text.find(id); at != std::string::npos; at = text.find(id))
          text.replace(at, id.size(), fmt::format("<id{}>", i + 1));
      }
      got = *json::parse(text);
    }
    for (const char* key : {"header", "sessionId", "entryCount", "entryIds", "leafId", "roots", "branchIds",
                            "contextEntryIds", "context", "sessionName", "labels", "stats"}) {
      const json::value* wanted = expected.if_contains(key);
      if (wanted == nullptr || differs(name, key) || json::find(*wanted, "throws") != nullptr) continue;
      json::value mine = got.as_object().at(key);
      if (std::string_view(key) == "stats") mine.as_object().erase("costs");
      EXPECT_TRUE(is_covered(mine, *wanted))
          << name << " " << key << "\n got      " << json::to_text(mine) << "\n expected " << json::to_text(*wanted);
      ++compared;
    }
  }
  EXPECT_GT(compared, 900u);
}

// ---- looking -------------------------------------------------------------------------------------------------------

TEST_F(SessionCommands, ASessionIsFoundByTheBeginningOfItsId) {  // SES-99
  place.use_provider("anthropic-messages");
  place.reply({.text = "hello"});
  ASSERT_EQ(place.run({"-p", "greet me"}).exit_code, 0);
  const std::string id = json::string_or(place.session_lines().front().as_object(), "id");
  EXPECT_THAT(session({"list"}).out, HasSubstr("greet me"));
  EXPECT_THAT(session({"list"}).out, HasSubstr(id));
  EXPECT_THAT(session({"show", id.substr(0, 10)}).out, HasSubstr(id));
  EXPECT_THAT(session({"tree", id.substr(0, 10)}).out, HasSubstr("assistant: hello  <- leaf"));
  const ProgramResult none = session({"show", "nosuch"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("No session found matching 'nosuch'"));
}

TEST_F(SessionCommands, TheTreeShowsBranchesLabelsAndTheLeaf) {
  const std::string tree = session({"tree", fixture("branches-two").string()}).out;
  EXPECT_THAT(tree, HasSubstr("  * a0000007"));
  EXPECT_THAT(tree, HasSubstr("a0000008  assistant: Nine spoons.  <- leaf"));
  EXPECT_THAT(session({"tree", fixture("labels").string()}).out, HasSubstr("[renamed] user: Count the jars"));
  const json::value rows = *json::parse(session({"tree", fixture("branches-two").string(), "--json"}).out);
  EXPECT_EQ(rows.as_array().size(), 8u);
}

TEST_F(SessionCommands, TheContextSaysWhoSeesWhatAndWhy) {  // IV-5
  const auto views = [&](const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"context", fixture(name).string(), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    std::map<std::string, json::object> by_text;
    const json::value shown = *json::parse(session(words).out);
    for (const json::value& entry : shown.as_object().at("entries").as_array())
      by_text[json::string_or(entry.as_object(), "text")] = entry.as_object();
    return by_text;
  };
  const auto seen = [](const json::object& view) {
    return std::make_pair(json::bool_or(view, "screen"), json::bool_or(view, "model"));
  };
  const auto compacted = views("compaction-first-kept");
  EXPECT_EQ(seen(compacted.at("user: Step one please.")), std::make_pair(false, false));
  EXPECT_EQ(seen(compacted.at("user: Step three please.")), std::make_pair(true, true));
  EXPECT_GT(json::number_or(compacted.at("compaction: Steps one and two are finished."), "tokens"), 0);
  bool failed_left_out = false;
  for (const auto& [text, view] : views("assistant-failures"))
    failed_left_out |= json::string_or(view, "modelRule").find("AI-72") != std::string::npos;
  EXPECT_TRUE(failed_left_out);
  bool hidden = false;
  for (const auto& [text, view] : views("custom-messages"))
    hidden |= seen(view) == std::make_pair(false, true);
  EXPECT_TRUE(hidden) << "display false: the model sees it, the screen does not";
  bool kept_back = false;
  for (const auto& [text, view] : views("bash-execution"))
    kept_back |= seen(view) == std::make_pair(true, false);
  EXPECT_TRUE(kept_back) << "!! is on the screen only";
  EXPECT_EQ(views("branches-two", {"--leaf", "a0000004"}).size(), 4u);
  EXPECT_EQ(session({"context", fixture("branches-two").string(), "--leaf", "nosuch"}).exit_code, 1);
}

TEST_F(SessionCommands, TheContextOfAWireApiIsTheRequestItself) {
  for (const std::string api : {"anthropic-messages", "openai-completions"}) {
    const ProgramResult shown = session({"context", fixture("tool-exchange").string(), "--wire", api});
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    const auto body = json::parse(shown.out);
    ASSERT_TRUE(body) << shown.out;
    EXPECT_THAT(shown.out, HasSubstr("Lamp is on."));
    EXPECT_TRUE(body->as_object().contains("tools"));
  }
  // The very bytes that the next prompt begins with.
  place.use_provider("anthropic-messages");
  place.reply({.text = "first answer"});
  place.reply({.text = "second answer"});
  ASSERT_EQ(place.run({"-p", "first"}).exit_code, 0);
  const std::string file = place.session_files().front();
  const json::value shown_body = *json::parse(session({"context", file, "--wire", "anthropic-messages"}).out);
  const json::object& shown = shown_body.as_object();
  ASSERT_EQ(place.run({"-c", "-p", "second"}).exit_code, 0);
  const json::value sent_body = *json::parse(place.server.requests().at(1).body);
  const json::object& sent = sent_body.as_object();
  EXPECT_TRUE(json::equal(shown.at("system"), sent.at("system")));
  EXPECT_TRUE(json::equal(shown.at("tools"), sent.at("tools")));
  EXPECT_TRUE(json::equal(shown.at("model"), sent.at("model")));
  EXPECT_EQ(sent.at("messages").as_array().size(), shown.at("messages").as_array().size() + 1);
  EXPECT_EQ(session({"context", file, "--wire", "carrier-pigeon"}).exit_code, 1);
}

// ---- checking and mending
// --------------------------------------------------------------------------------------------

TEST_F(SessionCommands, CheckFailsWithLineNumbersAndRepairMakesACopy) {
  const fs::path broken = fixture("malformed-middle");
  const std::string before = read_file(broken);
  const ProgramResult found = session({"check", broken.string()});
  EXPECT_EQ(found.exit_code, 1);
  EXPECT_THAT(found.out, HasSubstr("line 5: cannot be read"));
  const ProgramResult mended = session({"repair", broken.string()});
  EXPECT_EQ(mended.exit_code, 0);
  EXPECT_THAT(mended.out, HasSubstr("malformed-middle.repaired.jsonl"));
  EXPECT_EQ(read_file(broken), before);
  EXPECT_EQ(session({"check", place.project() / "malformed-middle.repaired.jsonl"}).exit_code, 0);
  EXPECT_EQ(session({"check", fixture("v3-minimal").string()}).exit_code, 0);
}

TEST_F(SessionCommands, WhatIsNoSessionIsRefusedAndStays) {  // FF-28
  const fs::path notes = place.file("notes.md", "# Notes\n");
  for (const char* command : {"show", "tree", "context", "stats", "check", "repair", "export", "import"}) {
    const ProgramResult refused = session({command, notes.string()});
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_EQ(refused.out, "") << command;
    EXPECT_THAT(refused.err, HasSubstr(notes.string())) << command;
  }
  EXPECT_EQ(read_file(notes), "# Notes\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(place.project()), {}), 1) << "nothing was left behind";
}

TEST_F(SessionCommands, CommandLinesThatCannotBeUsedSayWhy) {
  EXPECT_EQ(session({}).exit_code, 2);
  EXPECT_EQ(session({"--help"}).exit_code, 0);
  EXPECT_THAT(session({"burn"}).err, HasSubstr("Unknown session command: burn"));
  EXPECT_THAT(session({"show"}).err, HasSubstr("Usage: tau session show SESSION"));
  EXPECT_THAT(session({"show", "x", "--colour"}).err, HasSubstr("Unknown option: --colour"));
}

// ---- taking it elsewhere
// ---------------------------------------------------------------------------------------------

TEST_F(SessionCommands, AnImportNeverReplaces) {  // FF-29
  const fs::path file = fixture("v3-minimal");
  EXPECT_EQ(session({"import", file.string()}).exit_code, 0);
  const ProgramResult second = session({"import", file.string()});
  EXPECT_THAT(second.out, HasSubstr("v3-minimal-1.jsonl"));
  ASSERT_EQ(place.session_files().size(), 2u);
  for (const fs::path& copy : place.session_files())
    EXPECT_EQ(read_file(copy), read_file(file));
}

TEST_F(SessionCommands, AnExportAsASessionHoldsTheCurrentPath) {  // SES-105
  const fs::path file = fixture("branches-two");
  EXPECT_EQ(session({"export", file.string(), "out.jsonl"}).out, "Exported to: out.jsonl\n");
  EXPECT_EQ(read_json_lines(place.project() / "out.jsonl").size(), 7u);
  EXPECT_EQ(session({"export", file.string(), file.string()}).exit_code, 1) << "not onto itself";
}

TEST_F(SessionCommands, ExportIsAlsoAnOption) {  // MO-60
  const fs::path file = fixture("branches-two");
  EXPECT_EQ(place.run({"--export", file.string()}).out, "Exported to: pi-session-branches-two.html\n");
  EXPECT_TRUE(fs::exists(place.project() / "pi-session-branches-two.html"));
  EXPECT_EQ(place.run({"--export", file.string(), "page.html"}).out, "Exported to: page.html\n");
  const ProgramResult missing = place.run({"--export", "nosuch.jsonl"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.err, "Error: File not found: " + (place.project() / "nosuch.jsonl").string() + "\n");
  EXPECT_EQ(place.run({"--export", file.string(), "no/such/folder.html"}).exit_code, 1);
}

TEST_F(SessionCommands, AForkIsANewFileWithAllBranches) {  // SES-94, Appendix I
  place.use_provider("anthropic-messages");
  place.reply({.text = "forked"});
  const fs::path file = fixture("branches-two");
  const std::string before = read_file(file);
  ASSERT_EQ(place.run({"--fork", file.string(), "-p", "go on"}).out, "forked\n");
  EXPECT_EQ(read_file(file), before);
  const std::vector<json::value> lines = place.session_lines();
  EXPECT_EQ(json::string_or(lines[0].as_object(), "parentSession"), file.string());
  EXPECT_EQ(json::string_or(lines[0].as_object(), "cwd"), place.project().string());
  EXPECT_EQ(lines.size(), 1u + 8u + 2u);
  EXPECT_EQ(place.run({"--fork", file.string(), "-c", "-p", "x"}).exit_code, 1);
  EXPECT_EQ(place.run({"--fork", "nosuch", "-p", "x"}).err, "Error: No session found matching 'nosuch'\n");
}

// ---- the page, in a real browser
// -------------------------------------------------------------------------------------

class ExportedPage : public SessionCommands {
 protected:
  static std::string browser() {
    for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
      if (fs::exists(path)) return path;
    }
    return {};
  }
  /// The page as the browser has built it.
  std::string dom(const fs::path& page, const std::string& query = {}, int width = 1200) {
    ProgramOptions options;
    options.argv = {browser(),
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-dev-shm-usage",
                    fmt::format("--window-size={},800", width),
                    "--user-data-dir=" + (place.project() / "browser").string(),
                    "--virtual-time-budget=10000",
                    "--dump-dom",
                    "file://" + page.string() + query};
    options.working_directory = place.project();
    options.environment = {{"PATH", "/usr/bin:/bin"}, {"HOME", place.project().string()}};
    return run_program(options).out;
  }
};

TEST_F(ExportedPage, ShowsTheConversationInABrowser) {
  if (browser().empty()) FAIL() << "no chromium: scripts/setup --for-tests installs it";
  session({"export", fixture("tool-exchange").string(), "page.html"});
  const std::string page = dom(place.project() / "page.html");
  EXPECT_THAT(page, HasSubstr("data-ready=\"yes\"")) << "the script ran to its end";
  EXPECT_THAT(page, HasSubstr("<p>Fix the lamp.</p>"));
  EXPECT_THAT(page, HasSubstr("<p>Lamp is on.</p>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"add\">+ on</span>"));
  EXPECT_THAT(page, HasSubstr("1 prompts, 3 replies, 3 tool calls"));
}

TEST_F(ExportedPage, ShowsAnotherBranchAndMarksAnEntry) {  // MO-63
  if (browser().empty()) FAIL() << "no chromium: scripts/setup --for-tests installs it";
  session({"export", fixture("branches-two").string(), "page.html"});
  EXPECT_THAT(dom(place.project() / "page.html"), Not(HasSubstr("<p>Six lids.</p>")));
  const std::string other = dom(place.project() / "page.html", "?leafId=a0000006&targetId=a0000003");
  EXPECT_THAT(other, HasSubstr("<p>Six lids.</p>"));
  EXPECT_THAT(other, HasSubstr("class=\"user target\" id=\"entry-a0000003\""));
}

TEST_F(ExportedPage, NothingInASessionBecomesMarkup) {  // MO-65
  const std::string attack =
      R"(</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> )"
      R"([link](javascript:alert(1)) [good](https://example.org/) ```)";
  const std::string header =
      R"({"type":"session","version":3,"id":"s1","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/srv"})";
  std::string text = header + "\n";
  std::string parent = "null";
  int n = 0;
  const auto add = [&](const std::string& type_and_members) {
    const std::string id = fmt::format("e{}", ++n);
    text += fmt::format(R"({{"type":{},"id":"{}","parentId":{},"timestamp":"2026-02-03T09:00:01.000Z"}})",
                        type_and_members, id, parent) +
            "\n";
    parent = "\"" + id + "\"";
  };
  for (const std::string role : {"user", "assistant", "toolResult", "bashExecution", "strange"}) {
    add(fmt::format(R"("message","message":{{"role":"{}","content":[{{"type":"text","text":"{}"}}],"command":"{}",)"
                    R"("output":"{}","provider":"{}","model":"{}","toolName":"{}","errorMessage":"{}"}})",
                    role, attack, attack, attack, attack, attack, attack, attack));
  }
  add(fmt::format(R"("session_info","name":"{}")", attack));
  add(fmt::format(R"("label","targetId":"e1","label":"{}")", attack));
  add(fmt::format(R"("compaction","summary":"{}","firstKeptEntryId":"e1","tokensBefore":1)", attack));
  add(R"("message","message":{"role":"user","content":[{"type":"image","mimeType":"text/html\" onload=\"x","data":"x"}]})");
  const fs::path file = place.file("attack.jsonl", text);
  ASSERT_EQ(session({"export", file.string(), "page.html"}).exit_code, 0);
  const std::string page = read_file(place.project() / "page.html");
  EXPECT_EQ(page.find("owned"), page.find("owned'&lt;")) << "outside of the data only as escaped text";
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  if (browser().empty()) FAIL() << "no chromium: scripts/setup --for-tests installs it";
  const std::string shown = dom(place.project() / "page.html");
  EXPECT_THAT(shown, HasSubstr("data-ready=\"yes\""));
  EXPECT_THAT(shown, Not(HasSubstr("<title>owned")));
  EXPECT_THAT(shown, Not(HasSubstr("<img")));
  EXPECT_THAT(shown, Not(HasSubstr("href=\"javascript:")));
  EXPECT_THAT(shown, HasSubstr("href=\"https://example.org/\""));
}

}  // namespace
}  // namespace tau::test
