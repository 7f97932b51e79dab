#include "base/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau {
namespace {

mode_t mode_of(const std::filesystem::path& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(Files, ReadsWhatWasWrittenAndNamesWhatIsMissing) {
  const test::TemporaryFolder folder;
  const auto path = folder / "a";
  ASSERT_TRUE(write_file_atomically(path, std::string("a\0b\n", 4)));
  EXPECT_EQ(read_file(path), std::string("a\0b\n", 4));
  const auto missing = read_file(folder / "no");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/no: No such file"), std::string::npos);
  EXPECT_FALSE(read_file(folder.path()));
}

TEST(Files, AReplacedFileKeepsItsModeAndALinkStaysALink) {
  const test::TemporaryFolder folder;
  const auto target = folder.write("target", "old");
  chmod(target.c_str(), 0640);
  const auto link = folder / "link";
  std::filesystem::create_symlink(target, link);
  ASSERT_TRUE(write_file_atomically(link, "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_file(target), "new");
  EXPECT_EQ(mode_of(target), 0640u);
}

TEST(Files, ANewFileGetsTheModeAskedForAndNothingElseIsLeftBehind) {
  const test::TemporaryFolder folder;
  const mode_t before = umask(0);
  ASSERT_TRUE(write_file_atomically(folder / "secret", "k", 0600));
  umask(before);
  EXPECT_EQ(mode_of(folder / "secret"), 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, AFailedWriteLeavesTheOldBytesAndNoTemporaryFile) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "d");
  EXPECT_FALSE(write_file_atomically(folder / "d", "x"));
  EXPECT_FALSE(write_file_atomically(folder / "no" / "x", "x"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, PathsResolveAgainstABaseWithoutTouchingLinks) {
  EXPECT_EQ(resolve_path("a/../b/", "/x"), "/x/b");
  EXPECT_EQ(resolve_path("/", "/x"), "/");
  EXPECT_EQ(resolve_path(".", "/x"), "/x");
  setenv("HOME", "/home/tess", 1);
  EXPECT_EQ(expand_home("~/code"), "/home/tess/code");
  EXPECT_EQ(expand_home("~"), "/home/tess");
  EXPECT_EQ(expand_home("~/"), "/home/tess");
  EXPECT_EQ(expand_home("~//etc"), "/home/tess/etc");
  EXPECT_EQ(expand_home("~other"), "~other");
}

TEST(Files, AByteOrderMarkIsDroppedAtTheStartOnly) {
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB\xBF{}"), "{}");
  EXPECT_EQ(without_byte_order_mark("{}\xEF\xBB\xBF"), "{}\xEF\xBB\xBF");
  EXPECT_EQ(without_byte_order_mark(""), "");
}

}  // namespace
}  // namespace tau
