#include "coding/resources/context_files.h"

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;

/// The tree of tools/context-files.json.
void build_tree(const test::TemporaryFolder& folder) {
  folder.write("agent/AGENTS.md", "A");
  folder.write("r/CLAUDE.md", "rC");
  folder.write("r/p/AGENTS.md", "pA");
  folder.write("r/p/CLAUDE.md", "pC");
  folder.write("r/p/q/AGENTS.override.md", "qO");
  folder.write("r/p/q/AGENTS.md", "qA");
  fs::create_directories(folder / "r/p/q/s/AGENTS.md");
  folder.write("r/p/q/s/CLAUDE.MD", "\xEF\xBB\xBFsC");
}

std::vector<std::string> names(const test::TemporaryFolder& folder, const ContextFiles& files) {
  std::vector<std::string> out;
  for (const ContextFile& file : files.files)
    out.push_back(file.path.lexically_relative(folder.path()).string());
  return out;
}

TEST(ContextFiles, GoldenTree) {  // CA-110, CA-111, FF-114
  const test::TemporaryFolder folder;
  build_tree(folder);
  const json::value file = test::read_json(test::fixture_root() / "tools" / "context-files.json");
  for (const json::value& one : file.at("cases").as_array()) {
    const std::string cwd(json::view(one.at("cwd").as_string()));
    SCOPED_TRACE(cwd);
    const ContextFiles files = load_context_files(folder / "agent", folder / cwd);
    const json::array& expected = one.at("files").as_array();
    ASSERT_EQ(files.files.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(files.files[i].path, folder / std::string(json::view(expected[i].at("path").as_string())));
      EXPECT_EQ(files.files[i].content, json::view(expected[i].at("content").as_string()));
    }
    EXPECT_TRUE(files.warnings.empty());
  }
}

TEST(ContextFiles, AWorktreeInsideItsRepositoryIsToldOnce) {  // CA-112
  const test::TemporaryFolder folder;
  folder.write("repo/AGENTS.md", "main");
  folder.write("repo/.git/worktrees/w/HEAD", "");
  folder.write("repo/trees/w/.git", "gitdir: " + (folder / "repo/.git/worktrees/w").string() + "\n");
  folder.write("repo/trees/w/AGENTS.md", "own");
  folder.write("repo/trees/AGENTS.md", "between");
  fs::create_directories(folder / "repo/trees/w/src");
  const std::vector<std::string> expected{"repo/trees/AGENTS.md", "repo/trees/w/AGENTS.md"};
  EXPECT_EQ(names(folder, load_context_files(folder / "agent", folder / "repo/trees/w/src")), expected);
  fs::rename(folder / "repo/trees/w/AGENTS.md", folder / "repo/trees/w/CLAUDE.md");  // another name: both count
  EXPECT_EQ(load_context_files(folder / "agent", folder / "repo/trees/w/src").files.size(), 3U);
  fs::remove(folder / "repo/trees/w/CLAUDE.md");
  EXPECT_EQ(load_context_files(folder / "agent", folder / "repo/trees/w/src").files.size(), 2U);
}

}  // namespace
}  // namespace tau::coding
