#include "coding/config/settings.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "coding/config/settings_keys.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

struct Place {
  test::TemporaryFolder folder;
  fs::path agent = folder / "agent";
  fs::path cwd = folder / "project";
  fs::path global = agent / "settings.json";
  fs::path project = cwd / ".pi" / "settings.json";

  Place() { fs::create_directories(cwd); }
  void write_global(const std::string& text) const { folder.write("agent/settings.json", text); }
  void write_project(const std::string& text) const { folder.write("project/.pi/settings.json", text); }
  Settings load(bool trusted = true) const { return Settings::load(agent, cwd, trusted); }
};

// Where tau differs on purpose.
const std::set<std::string> kDifferent = {
    "array-top",  // CA-333: refused like broken JSON instead of turned into an object with index keys
};

TEST(Settings, GoldenCases) {  // CA-150 to CA-155, CA-330 to CA-332
  const json::value file = test::read_json(test::fixture_root() / "tools" / "settings.json");
  for (const json::value& one : file.as_array()) {
    const std::string name(json::view(one.at("name").as_string()));
    if (kDifferent.contains(name)) continue;
    SCOPED_TRACE(name);
    const Place place;
    place.write_global(std::string(json::view(one.at("global").as_string())));
    if (one.at("project").is_string()) place.write_project(std::string(json::view(one.at("project").as_string())));
    Settings settings = place.load();
    EXPECT_TRUE(json::equal(settings.effective(), one.at("effective")))
        << json::to_text(json::value(settings.effective()));
    const bool is_broken = !one.at("errorScopes").as_array().empty();
    EXPECT_EQ(!settings.take_warnings().empty(), is_broken);
    EXPECT_EQ(settings.set("defaultModel", "m1").has_value(), !is_broken);
    EXPECT_EQ(settings.set("compaction.enabled", false).has_value(), !is_broken);
    EXPECT_EQ(test::read_file(place.global), json::view(one.at("afterWrite").at("globalFile").as_string()));
  }
}

TEST(Settings, AListAtTheTopIsRefusedAndKept) {  // CA-333
  const Place place;
  place.write_global("[1]");
  Settings settings = place.load();
  EXPECT_EQ(settings.take_warnings().size(), 1U);
  EXPECT_FALSE(settings.set("theme", "dark"));
  EXPECT_EQ(test::read_file(place.global), "[1]");
}

TEST(Settings, ABrokenFileIsNamedWithLineAndColumnAndNeverWritten) {  // CA-152, CA-331, FF-115
  const Place place;
  const std::string text = "{\n  \"theme\":\"dark\",\n}";
  place.write_global(text);
  Settings settings = place.load();
  const auto warnings = settings.take_warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(place.global.string()), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("line 3, column 1"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("defaults are used instead"), std::string::npos) << warnings[0];
  EXPECT_TRUE(settings.take_warnings().empty());

  const auto set = settings.set("theme", "light");
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message.find("this run only"), std::string::npos) << set.error().message;
  EXPECT_EQ(settings.theme(), "light");  // CA-334
  EXPECT_EQ(test::read_file(place.global), text);
}

TEST(Settings, AFileThatBreaksWhileWeRunIsNotWritten) {  // FF-111
  const Place place;
  place.write_global("{}");
  Settings settings = place.load();
  place.write_global("{\"a\":");
  EXPECT_FALSE(settings.set("theme", "light"));
  EXPECT_EQ(test::read_file(place.global), "{\"a\":");
}

TEST(Settings, AnUnreadableFileIsReported) {
  const Place place;
  fs::create_directories(place.global);  // root could read any file, but nobody reads a folder
  Settings settings = place.load();
  const auto warnings = settings.take_warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(place.global.string()), std::string::npos) << warnings[0];
  EXPECT_FALSE(settings.set("theme", "light"));
}

TEST(Settings, OnlyTheOwnKeyIsWritten) {  // CA-153
  const Place place;
  place.write_global("{\"theme\":\"dark\",\"unknown\":{\"a\":[1,2]}}");
  Settings settings = place.load();
  place.write_global("{\"theme\":\"light\",\"other\":1,\"compaction\":{\"reserveTokens\":5}}");  // another program
  ASSERT_TRUE(settings.set("compaction.enabled", false));
  EXPECT_EQ(test::read_file(place.global),
            "{\n  \"theme\": \"light\",\n  \"other\": 1,\n  \"compaction\": {\n    \"reserveTokens\": 5,\n"
            "    \"enabled\": false\n  }\n}");
  ASSERT_TRUE(settings.remove("other"));
  EXPECT_EQ(test::read_file(place.global).find("other"), std::string::npos);
}

TEST(Settings, AnUntrustedProjectIsNeitherReadNorWritten) {  // CA-163
  const Place place;
  place.write_project("{\"theme\":\"evil\",\"shellPath\":\"/tmp/x\"}");
  Settings settings = place.load(false);
  EXPECT_FALSE(settings.theme());
  EXPECT_FALSE(settings.shell_path());
  EXPECT_FALSE(settings.set("theme", "x", SettingsScope::kProject));
  EXPECT_EQ(test::read_file(place.project), "{\"theme\":\"evil\",\"shellPath\":\"/tmp/x\"}");
}

TEST(Settings, AProjectCannotTrustItselfOrSetTheProxy) {  // CA-156
  const Place place;
  place.write_project("{\"defaultProjectTrust\":\"always\",\"httpProxy\":\"http://evil\"}");
  const Settings settings = place.load();
  EXPECT_EQ(settings.default_project_trust(), "ask");
  EXPECT_FALSE(settings.http_proxy());
}

TEST(Settings, ProjectVariantsWriteTheProjectsFile) {
  const Place place;
  Settings settings = place.load();
  ASSERT_TRUE(settings.set("skills", json::array{"a"}, SettingsScope::kProject));
  EXPECT_EQ(settings.resource_entries("skills", SettingsScope::kProject), std::vector<std::string>{"a"});
  EXPECT_TRUE(settings.resource_entries("skills", SettingsScope::kGlobal).empty());
  EXPECT_FALSE(fs::exists(place.global));
  EXPECT_EQ(test::read_file(place.project), "{\n  \"skills\": [\n    \"a\"\n  ]\n}");
}

TEST(Settings, DefaultsHoldWithoutAnyFile) {  // CA-156
  const Place place;
  Settings settings = place.load();
  EXPECT_TRUE(settings.take_warnings().empty());
  EXPECT_FALSE(fs::exists(place.agent));  // reading makes nothing
  EXPECT_EQ(settings.transport(), "auto");
  EXPECT_EQ(settings.steering_mode(), agent::QueueMode::kOneAtATime);
  EXPECT_TRUE(settings.compaction().enabled);
  EXPECT_EQ(settings.compaction().reserve_tokens, 16384);
  EXPECT_EQ(settings.compaction().keep_recent_tokens, 20000);
  EXPECT_EQ(settings.branch_summary().reserve_tokens, 16384);
  EXPECT_EQ(settings.retry().max_retries, 3);
  EXPECT_EQ(settings.retry().base_delay, milliseconds(2000));
  EXPECT_EQ(settings.request_retry().max_delay, milliseconds(60000));
  EXPECT_FALSE(settings.request_retry().timeout);
  EXPECT_EQ(settings.http_idle_timeout(), milliseconds(300000));
  EXPECT_EQ(settings.request_timeout(), milliseconds(300000));
  EXPECT_FALSE(settings.default_tools());
  EXPECT_EQ(settings.output_padding(), 1);
  EXPECT_EQ(settings.autocomplete_max_visible(), 5);
  EXPECT_EQ(settings.terminal().image_width_cells, 60);
  EXPECT_EQ(settings.code_block_indent(), "  ");
  EXPECT_EQ(settings.tree_filter_mode(), "default");
}

TEST(Settings, ValuesAreReadAndClamped) {
  const Settings settings = Settings::in_memory({{"steeringMode", "all"},
                                                 {"httpIdleTimeoutMs", "disabled"},
                                                 {"websocketConnectTimeoutMs", "1500"},
                                                 {"defaultThinkingLevel", "high"},
                                                 {"modelThinkingLevels", {{"brook/pebble/1", "low"}}},
                                                 {"thinkingBudgets", {{"low", 99}}},
                                                 {"editorPaddingX", 9},
                                                 {"autocompleteMaxVisible", 1},
                                                 {"terminal", {{"hyperlinks", false}}},
                                                 {"defaultTools", {"read"}}});
  EXPECT_EQ(settings.steering_mode(), agent::QueueMode::kAll);
  EXPECT_EQ(settings.http_idle_timeout(), milliseconds(0));
  EXPECT_EQ(settings.request_timeout(), milliseconds(2147483647));  // CA-223
  EXPECT_EQ(settings.websocket_connect_timeout(), milliseconds(1500));
  EXPECT_EQ(settings.default_thinking_level(), ai::ThinkingLevel::kHigh);
  EXPECT_EQ(settings.thinking_level_of("brook", "pebble/1"), ai::ThinkingLevel::kLow);
  EXPECT_FALSE(settings.thinking_level_of("brook", "x"));
  EXPECT_EQ(settings.thinking_budgets().at(ai::ThinkingLevel::kLow), 99);
  EXPECT_EQ(settings.editor_padding(), 3);
  EXPECT_EQ(settings.autocomplete_max_visible(), 3);
  EXPECT_EQ(settings.terminal().hyperlinks, "false");
  EXPECT_EQ(settings.default_tools(), std::vector<std::string>{"read"});
}

TEST(Settings, AValueThatCannotBeUsedIsReportedAndReplaced) {  // FF-115
  const Place place;
  place.write_global("{\"transport\":\"pigeon\",\"retry\":{\"maxRetries\":\"many\"},\"theme\":null,\"unknown\":1}");
  Settings settings = place.load();
  EXPECT_EQ(settings.transport(), "auto");
  EXPECT_EQ(settings.retry().max_retries, 3);
  const auto warnings = settings.take_warnings();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(
      warnings[0].find("\"transport\" must be one of sse, websocket, websocket-cached, auto; \"auto\" is used instead"),
      std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[1].find("retry.maxRetries"), std::string::npos) << warnings[1];
}

TEST(Settings, OverridesHoldForThisRunOnly) {
  const Place place;
  place.write_global("{\"compaction\":{\"enabled\":true}}");
  Settings settings = place.load();
  settings.override_with({{"compaction", {{"enabled", false}}}});
  EXPECT_FALSE(settings.compaction().enabled);
  ASSERT_TRUE(settings.set("theme", "dark"));
  EXPECT_FALSE(settings.compaction().enabled);
  EXPECT_NE(test::read_file(place.global).find("\"enabled\": true"), std::string::npos);
}

TEST(Settings, ALinkedFileStaysALink) {
  const Place place;
  const fs::path target = place.folder.write("dotfiles/settings.json", "{\"theme\":\"dark\"}");
  fs::create_directories(place.agent);
  fs::create_symlink(target, place.global);
  Settings settings = place.load();
  ASSERT_TRUE(settings.set("theme", "light"));
  EXPECT_TRUE(fs::is_symlink(place.global));
  EXPECT_EQ(test::read_file(target), "{\n  \"theme\": \"light\"\n}");
}

TEST(Settings, EightProcessesWriteAtOnceAndLoseNothing) {  // FF-111
  const Place place;
  constexpr int kProcesses = 8;
  constexpr int kKeys = 50;
  place.write_global("{}");
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      Settings settings = place.load();
      for (int k = 0; k < kKeys; ++k) {
        if (!settings.set(fmt::format("key-{}-{}", p, k), k)) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  // A reader meets whole files only.
  std::size_t running = children.size();
  while (running > 0) {
    ASSERT_TRUE(json::parse(test::read_file(place.global)));
    int status = 0;
    while (running > 0 && waitpid(-1, &status, WNOHANG) > 0) {
      EXPECT_EQ(status, 0);
      --running;
    }
  }
  const json::value end = test::read_json(place.global);
  EXPECT_EQ(end.as_object().size(), static_cast<std::size_t>(kProcesses * kKeys));
  EXPECT_FALSE(fs::exists(place.agent / "settings.json.lock"));
}

TEST(Settings, AKilledWriterLeavesNothingBroken) {  // FF-111
  const Place place;
  place.write_global("{}");
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      Settings settings = place.load();
      for (int k = 0;; ++k)
        (void)settings.set(fmt::format("spin-{}", round), k);
    }
    // The child is busy writing when it is killed.
    while (!test::read_json(place.global).as_object().contains(fmt::format("spin-{}", round))) {
    }
    Settings settings = place.load();
    for (int k = 0; k < 3; ++k)
      EXPECT_TRUE(settings.set(fmt::format("round-{}-{}", round, k), k));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto set = settings.set(fmt::format("after-{}", round), true);
    EXPECT_TRUE(set) << set.error().message;
  }
  EXPECT_EQ(test::read_json(place.global).as_object().size(), 10U * 5);
}

TEST(Settings, EveryKeyIsInTheDocumentation) {
  const std::string text = test::read_file(fs::path(TAU_SOURCE_DIR) / "docs" / "configuration.md");
  for (const SettingKey& key : setting_keys()) {
    EXPECT_NE(text.find(fmt::format("`{}`", key.path)), std::string::npos) << key.path;
  }
}

}  // namespace
}  // namespace tau::coding
