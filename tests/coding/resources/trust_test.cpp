#include "coding/resources/trust.h"

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;

struct Place {
  test::TemporaryFolder folder;
  fs::path home = folder / "home";
  fs::path agent = folder / "agent";
  fs::path cwd = folder / "work/project";

  Place() { fs::create_directories(cwd); }
  TrustRequest request() const { return {.agent_folder = agent, .cwd = cwd, .home = home}; }
  std::optional<bool> decide() const { return decide_trust(request()).trusted; }
  void decisions(const std::string& text) const { folder.write("agent/trust.json", text); }
  std::string entry(const fs::path& path, const char* value) const { return "\"" + path.string() + "\":" + value; }
};

// The table of Appendix O.
TEST(Trust, AFolderWithoutAnythingToTrustIsTrusted) {  // CA-160
  const Place place;
  EXPECT_EQ(place.decide(), true);
  place.folder.write("work/project/.pi/sessions/x.jsonl", "");
  EXPECT_EQ(place.decide(), true);
}

TEST(Trust, AnythingThatCouldRunCodeNeedsIt) {
  for (const char* name : {"settings.json", "extensions/x.ts", "skills/x/SKILL.md", "prompts/x.md", "themes/x.json",
                           "SYSTEM.md", "APPEND_SYSTEM.md"}) {
    const Place place;
    place.folder.write(std::string("work/project/.pi/") + name, "");
    EXPECT_EQ(place.decide(), std::nullopt) << name;
    EXPECT_NE(untrusted_note(decide_trust(place.request())).find(".pi"), std::string::npos);  // FF-105
  }
}

TEST(Trust, ADanglingLinkNeedsItToo) {
  const Place place;
  fs::create_directories(place.cwd / ".pi");
  fs::create_symlink("/nowhere/at/all", place.cwd / ".pi/settings.json");
  EXPECT_EQ(place.decide(), std::nullopt);
}

TEST(Trust, AgentsSkillsOfAncestorsNeedItThoseOfTheHomeDoNot) {
  const Place place;
  fs::create_directories(place.home / ".agents/skills");
  TrustRequest at_home = place.request();
  at_home.cwd = place.home / "x";
  fs::create_directories(at_home.cwd);
  EXPECT_EQ(decide_trust(at_home).trusted, true);
  fs::create_directories(place.folder / "work/.agents/skills");
  EXPECT_EQ(place.decide(), std::nullopt);
}

TEST(Trust, TheNearestStoredDecisionCounts) {  // CA-161
  const Place place;
  place.folder.write("work/project/.pi/settings.json", "{}");
  place.decisions("{" + place.entry(place.folder / "work", "true") + "}");
  EXPECT_EQ(place.decide(), true);
  place.decisions("{" + place.entry(place.folder / "work", "true") + "," + place.entry(place.cwd, "false") + "}");
  EXPECT_EQ(place.decide(), false);
  place.decisions("{" + place.entry(place.folder / "work", "true") + "," + place.entry(place.cwd, "null") + "}");
  EXPECT_EQ(place.decide(), true);
}

TEST(Trust, ALinkLeadsToTheDecisionOfTheRealFolder) {  // FF-105
  const Place place;
  place.folder.write("work/project/.pi/settings.json", "{}");
  fs::create_directory_symlink(place.cwd, place.folder / "alias");
  place.decisions("{" + place.entry(place.folder / "alias", "true") + "}");
  TrustRequest request = place.request();
  request.cwd = place.folder / "alias";
  EXPECT_EQ(decide_trust(request).trusted, std::nullopt);
  place.decisions("{" + place.entry(place.cwd, "true") + "}");
  EXPECT_EQ(decide_trust(request).trusted, true);
}

TEST(Trust, FlagHookStoredDefaultInThisOrder) {  // CA-161
  const Place place;
  place.folder.write("work/project/.pi/prompts/x.md", "");
  const std::string stored = "{" + place.entry(place.cwd, "false") + "}";
  place.decisions(stored);
  TrustRequest request = place.request();
  request.default_trust = "always";
  EXPECT_EQ(decide_trust(request).trusted, false);
  request.hook = true;
  EXPECT_EQ(decide_trust(request).trusted, true);
  request.flag = false;
  EXPECT_EQ(decide_trust(request).trusted, false);
  request.flag = true;
  EXPECT_EQ(decide_trust(request).trusted, true);
  EXPECT_EQ(test::read_file(place.agent / "trust.json"), stored);
  fs::remove(place.agent / "trust.json");
  TrustRequest fresh = place.request();
  fresh.default_trust = "always";
  EXPECT_EQ(decide_trust(fresh).trusted, true);
  fresh.default_trust = "never";
  EXPECT_EQ(decide_trust(fresh).trusted, false);
}

TEST(Trust, AFileOfAnotherShapeIsReportedAndKept) {  // CA-162, FF-115
  const Place place;
  place.folder.write("work/project/.pi/settings.json", "{}");
  for (const char* text : {"[]", "{\"/x\":\"yes\"}", "{"}) {
    place.decisions(text);
    const TrustDecision decision = decide_trust(place.request());
    EXPECT_EQ(decision.trusted, std::nullopt);
    ASSERT_TRUE(decision.problem);
    EXPECT_NE(decision.problem->find("trust.json"), std::string::npos);
    EXPECT_FALSE(store_trust(place.agent, place.cwd, TrustChoice::kTrust));
    EXPECT_EQ(test::read_file(place.agent / "trust.json"), text);
  }
}

TEST(Trust, ChoicesAreStoredSortedByRealPath) {  // CA-162
  const Place place;
  place.decisions("{\"/zz\": true, \"/aa\": null}");
  EXPECT_EQ(store_trust(place.agent, place.cwd, TrustChoice::kDistrust), false);
  const std::string expected_false =
      "{\n  \"/aa\": null,\n  \"" + place.cwd.string() + "\": false,\n  \"/zz\": true\n}\n";
  EXPECT_EQ(test::read_file(place.agent / "trust.json"), expected_false);
  EXPECT_EQ(store_trust(place.agent, place.cwd, TrustChoice::kTrustForSession), true);
  EXPECT_EQ(store_trust(place.agent, place.cwd, TrustChoice::kDistrustForSession), false);
  EXPECT_EQ(test::read_file(place.agent / "trust.json"), expected_false);
  EXPECT_EQ(store_trust(place.agent, place.cwd, TrustChoice::kTrustParent), true);
  EXPECT_EQ(test::read_file(place.agent / "trust.json"),
            "{\n  \"/aa\": null,\n  \"" + place.cwd.parent_path().string() + "\": true,\n  \"/zz\": true\n}\n");
}

}  // namespace
}  // namespace tau::coding
