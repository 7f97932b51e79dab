#include "coding/resources/skills.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "coding/resources/ignore_rules.h"

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;

TEST(Skills, GoldenFolder) {  // CA-121, CA-122, CA-350 to CA-352
  const json::value file = test::read_json(test::fixture_root() / "tools" / "skills.json");
  const test::TemporaryFolder folder;
  for (const auto& [name, content] : file.at("files").as_object())
    folder.write(name, std::string(json::view(content.as_string())));
  const Skills skills = load_skills(find_skills(folder.path(), true, ResourceOrigin::kUser));

  std::map<std::string, const Skill*> by_file;
  for (const Skill& skill : skills.skills)
    by_file[skill.file.lexically_relative(folder.path()).string()] = &skill;
  const json::array& expected = file.at("skills").as_array();
  EXPECT_EQ(by_file.size(), expected.size());
  for (const json::value& one : expected) {
    const std::string path(json::view(one.at("file").as_string()));
    ASSERT_TRUE(by_file.contains(path)) << path;
    EXPECT_EQ(by_file[path]->name, json::view(one.at("name").as_string()));
    EXPECT_EQ(by_file[path]->description, json::view(one.at("description").as_string()));
    EXPECT_EQ(by_file[path]->hidden_from_model, one.at("disableModelInvocation").as_bool());
  }

  std::map<std::string, const SkillDiagnostic*> diagnostics;
  for (const SkillDiagnostic& one : skills.diagnostics)
    diagnostics[one.file.lexically_relative(folder.path()).string()] = &one;
  EXPECT_EQ(diagnostics.size(), file.at("diagnostics").as_array().size());
  for (const json::value& one : file.at("diagnostics").as_array()) {
    const std::string path(json::view(one.at("file").as_string()));
    ASSERT_TRUE(diagnostics.contains(path)) << path;
    const bool collision = json::view(one.at("type").as_string()) == "collision";
    EXPECT_EQ(diagnostics[path]->kind, collision ? SkillDiagnostic::Kind::kCollision : SkillDiagnostic::Kind::kWarning);
    // The words about broken YAML are those of the YAML library.
    if (path != "yaml/SKILL.md") {
      EXPECT_EQ(diagnostics[path]->message, json::view(one.at("message").as_string()));
    }
  }
  EXPECT_EQ(diagnostics["one/SKILL.md"]->winner, folder / "dup/SKILL.md");
}

TEST(Skills, LooseFilesOfAgentsFoldersLieInSubFolders) {  // CA-121
  const test::TemporaryFolder folder;
  folder.write("root.md", "---\ndescription: d\n---\n");
  folder.write("sub/inner.md", "---\nname: inner\ndescription: d\n---\n");
  const auto found = find_skills(folder.path(), false, ResourceOrigin::kProject);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, folder / "sub/inner.md");
}

TEST(Skills, ALinkThatLeadsBackEndsTheSearch) {
  const test::TemporaryFolder folder;
  folder.write("a/SKILL.md", "---\ndescription: d\n---\n");
  fs::create_directory(folder / "b");
  fs::create_directory_symlink(folder.path(), folder / "b" / "loop");
  EXPECT_EQ(find_skills(folder.path(), true, ResourceOrigin::kUser).size(), 1U);
}

TEST(Skills, LimitsAreWarningsOnly) {  // CA-122
  const test::TemporaryFolder folder;
  const auto file = folder.write(
      "x/SKILL.md", "---\nname: -a--" + std::string(64, 'b') + "\ndescription: " + std::string(1025, 'd') + "\n---\n");
  const Skills skills = load_skills({{file, ResourceOrigin::kUser}});
  EXPECT_EQ(skills.skills.size(), 1U);
  EXPECT_EQ(skills.diagnostics.size(), 4U);
}

TEST(Skills, TheBlockNamesVisibleSkillsEscaped) {  // CA-125
  Skill visible;
  visible.name = "a";
  visible.description = "x < y & \"z\" 'w'";
  visible.file = "/s/a/SKILL.md";
  Skill hidden = visible;
  hidden.hidden_from_model = true;
  const std::string block = skills_block({visible, hidden}, true);
  EXPECT_TRUE(block.starts_with("\n\n"));
  EXPECT_TRUE(
      block.ends_with("\n\n<available_skills>\n  <skill>\n    <name>a</name>\n    <description>x &lt; y &amp; "
                      "&quot;z&quot; &apos;w&apos;"
                      "</description>\n    <location>/s/a/SKILL.md</location>\n  </skill>\n</available_skills>"))
      << block;
  EXPECT_NE(block.find("read tool"), std::string::npos);
  EXPECT_NE(skills_block({visible}, false).find("bash"), std::string::npos);
  EXPECT_EQ(skills_block({hidden}, true), "");
}

TEST(Skills, ACommandBecomesTheSkillAsItIsNow) {  // CA-126
  const test::TemporaryFolder folder;
  const auto file = folder.write("one/SKILL.md", "---\nname: one\ndescription: d\n---\nOld");
  const Skills skills = load_skills({{file, ResourceOrigin::kUser}});
  folder.write("one/SKILL.md", "---\nname: one\ndescription: d\n---\n\n  Do it.\n\n");
  const std::string base = "<skill name=\"one\" location=\"" + file.string() + "\">\nReferences are relative to " +
                           file.parent_path().string() + ".\n\nDo it.\n</skill>";
  EXPECT_EQ(expand_skill_command("/skill:one", skills.skills).value(), base);
  EXPECT_EQ(expand_skill_command("/skill:one   with  this ", skills.skills).value(), base + "\n\nwith  this");
  EXPECT_EQ(expand_skill_command("/skill:two x", skills.skills).value(), std::nullopt);
  EXPECT_EQ(expand_skill_command("say /skill:one", skills.skills).value(), std::nullopt);
  fs::remove(file);
  EXPECT_FALSE(expand_skill_command("/skill:one", skills.skills));
}

TEST(IgnoreRules, FollowGit) {
  IgnoreRules rules;
  rules.add("", "# note\n*.log\n!keep.log\nbuild/\n/top\na/**/z\n\\#odd\n");
  rules.add("sub", "/only-here\n");
  EXPECT_TRUE(rules.ignores("x.log", false));
  EXPECT_TRUE(rules.ignores("deep/x.log", false));
  EXPECT_FALSE(rules.ignores("keep.log", false));
  EXPECT_TRUE(rules.ignores("deep/build", true));
  EXPECT_FALSE(rules.ignores("build", false));
  EXPECT_TRUE(rules.ignores("top", false));
  EXPECT_FALSE(rules.ignores("deep/top", false));
  EXPECT_TRUE(rules.ignores("a/b/c/z", false));
  EXPECT_TRUE(rules.ignores("#odd", false));
  EXPECT_TRUE(rules.ignores("sub/only-here", true));
  EXPECT_FALSE(rules.ignores("only-here", true));
}

// ---- sources ------------------------------------------------------------------------------------------------------

struct Place {
  test::TemporaryFolder folder;
  fs::path home = folder / "home";
  fs::path agent = home / ".pi/agent";
  fs::path root = folder / "repo";
  fs::path cwd = root / "src";

  Place() {
    fs::create_directories(cwd);
    fs::create_directories(root / ".git");
  }
  void skill(const std::string& where, const std::string& name) const {
    folder.write(where + "/SKILL.md", "---\nname: " + name + "\ndescription: " + where + "\n---\n");
  }
  Skills load(const Settings& settings, std::vector<std::string> command_line = {}, bool discover = true) const {
    ResourceRequest request;
    request.settings = &settings;
    request.cwd = cwd;
    request.home = home;
    request.command_line = std::move(command_line);
    request.discover = discover;
    return load_skills(skill_files(request).files);
  }
  std::string where(const Skills& skills, std::string_view name) const {
    for (const Skill& skill : skills.skills) {
      if (skill.name == name) return skill.folder().lexically_relative(folder.path()).string();
    }
    return "";
  }
};

TEST(SkillSources, TheNearestWins) {  // CA-120
  const Place place;
  place.skill("listed", "s");
  place.skill("repo/src/.pi/skills/x", "s");
  place.skill("repo/src/.agents/skills/x", "s");
  place.skill("repo/.agents/skills/x", "s");
  place.skill("home/.pi/agent/skills/x", "s");
  place.skill("home/.agents/skills/x", "s");
  place.skill("given", "s");
  place.skill(".agents/skills/x", "above-the-repository");
  place.folder.write("repo/src/.pi/settings.json", "{\"skills\":[\"" + (place.folder / "listed").string() + "\"]}");
  const std::vector<std::string> order = {"listed",
                                          "repo/src/.pi/skills/x",
                                          "repo/src/.agents/skills/x",
                                          "repo/.agents/skills/x",
                                          "home/.pi/agent/skills/x",
                                          "home/.agents/skills/x",
                                          "given"};
  for (const std::string& expected : order) {
    const Settings settings = Settings::load(place.agent, place.cwd, true);
    const Skills skills = place.load(settings, {(place.folder / "given").string()});
    EXPECT_EQ(place.where(skills, "s"), expected);
    EXPECT_EQ(place.where(skills, "above-the-repository"), "");
    fs::remove_all(place.folder / expected);
  }
}

TEST(SkillSources, AnUntrustedProjectHasNone) {  // CA-163, FF-105
  const Place place;
  place.skill("repo/src/.pi/skills/x", "a");
  place.skill("repo/.agents/skills/x", "b");
  place.skill("home/.agents/skills/x", "c");
  const Skills skills = place.load(Settings::load(place.agent, place.cwd, false));
  ASSERT_EQ(skills.skills.size(), 1U);
  EXPECT_EQ(skills.skills[0].name, "c");
}

TEST(SkillSources, OneFileUnderTwoNamesCountsOnce) {  // CA-120
  const Place place;
  place.skill("home/.pi/agent/skills/x", "a");
  fs::create_directories(place.home / ".agents");
  fs::create_directory_symlink(place.agent / "skills", place.home / ".agents/skills");
  const Skills skills = place.load(Settings::load(place.agent, place.cwd, true));
  EXPECT_EQ(skills.skills.size(), 1U);
  EXPECT_TRUE(skills.diagnostics.empty());
}

TEST(SkillSources, OnlyTheCommandLineCountsWithoutDiscovery) {
  const Place place;
  place.skill("home/.agents/skills/x", "a");
  place.skill("given", "b");
  const Settings settings = Settings::load(place.agent, place.cwd, true);
  EXPECT_EQ(place.load(settings, {(place.folder / "given/SKILL.md").string()}, false).skills.size(), 1U);
}

TEST(SkillSources, SettingsExcludeAndForce) {  // CA-141
  const Place place;
  for (const char* name : {"one", "two", "three"})
    place.skill(std::string("home/.pi/agent/skills/") + name, name);
  place.folder.write("home/.pi/agent/settings.json", R"({"skills":["!t*","+skills/two","-skills/one"]})");
  const Skills skills = place.load(Settings::load(place.agent, place.cwd, true));
  ASSERT_EQ(skills.skills.size(), 1U);
  EXPECT_EQ(skills.skills[0].name, "two");
}

TEST(TemplateSources, AreFlatFolders) {  // CA-130
  const Place place;
  place.folder.write("home/.pi/agent/prompts/a.md", "A");
  place.folder.write("home/.pi/agent/prompts/sub/b.md", "B");
  place.folder.write("repo/src/.pi/prompts/a.md", "project's");
  const Settings settings = Settings::load(place.agent, place.cwd, true);
  ResourceRequest request;
  request.settings = &settings;
  request.cwd = place.cwd;
  request.home = place.home;
  request.command_line = {"missing.md"};
  const ResourceFiles files = prompt_template_files(request);
  ASSERT_EQ(files.files.size(), 2U);
  EXPECT_EQ(files.files[0].path, place.cwd / ".pi/prompts/a.md");
  ASSERT_EQ(files.warnings.size(), 1U);
  EXPECT_NE(files.warnings[0].find("missing.md"), std::string::npos);
}

}  // namespace
}  // namespace tau::coding
