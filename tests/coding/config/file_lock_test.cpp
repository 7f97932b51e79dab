#include "coding/config/file_lock.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::coding {
namespace {

using std::chrono::milliseconds;
namespace fs = std::filesystem;

constexpr FileLock::Options kShort{.wait = milliseconds(50)};

class FileLockTest : public testing::Test {
 protected:
  void age(const fs::path& folder, std::chrono::seconds by) {
    fs::last_write_time(folder, fs::file_time_type::clock::now() - by);
  }
  test::TemporaryFolder folder_;
  fs::path file_ = folder_.write("a.json", "{}");
  fs::path lock_ = folder_ / "a.json.lock";
};

TEST_F(FileLockTest, TheFolderIsThereWhileTheLockIsHeld) {  // CA-154: pi looks for it
  {
    const auto lock = FileLock::acquire(file_);
    ASSERT_TRUE(lock) << lock.error().message;
    EXPECT_TRUE(fs::is_directory(lock_));
    EXPECT_TRUE(fs::is_empty(lock_));  // pi removes stale ones with rmdir
    const auto second = FileLock::acquire(file_, kShort);
    EXPECT_FALSE(second);
  }
  EXPECT_FALSE(fs::exists(lock_));
  EXPECT_TRUE(FileLock::acquire(file_, kShort));
}

TEST_F(FileLockTest, ALockOfPiIsRespectedUntilItIsStale) {
  fs::create_directory(lock_);
  const auto held = FileLock::acquire(file_, kShort);
  ASSERT_FALSE(held);
  EXPECT_NE(held.error().message.find(lock_.string()), std::string::npos) << held.error().message;
  age(lock_, std::chrono::seconds(11));
  EXPECT_TRUE(FileLock::acquire(file_, kShort));
}

TEST_F(FileLockTest, ALockOfADeadTauIsTakenOverAtOnce) {  // FF-112
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = FileLock::acquire(file_);
    ::raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(fs::is_directory(lock_));
  EXPECT_TRUE(FileLock::acquire(file_, kShort));
  EXPECT_FALSE(fs::exists(lock_));
}

TEST_F(FileLockTest, TwoNamesOfOneFileHaveOneLock) {  // FF-112
  fs::create_directory(folder_ / "elsewhere");
  fs::create_symlink(file_, folder_ / "elsewhere" / "b.json");
  const auto lock = FileLock::acquire(folder_ / "elsewhere" / "b.json");
  ASSERT_TRUE(lock);
  EXPECT_TRUE(fs::is_directory(lock_));
  EXPECT_FALSE(FileLock::acquire(file_, kShort));
}

TEST_F(FileLockTest, OnlyOneProcessHoldsItAtATime) {  // FF-111
  constexpr int kProcesses = 4;
  constexpr int kSteps = 200;
  folder_.write("a.json", "0");
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < kSteps; ++i) {
        const auto lock = FileLock::acquire(file_, {.wait = milliseconds(60000)});
        if (!lock) _exit(1);
        folder_.write("a.json", std::to_string(std::stoi(test::read_file(file_)) + 1));
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(test::read_file(file_), std::to_string(kProcesses * kSteps));
}

TEST_F(FileLockTest, ALockThatPiTookOverIsNotRemoved) {
  {
    const auto lock = FileLock::acquire(file_);
    ASSERT_TRUE(lock);
    fs::remove(lock_);
    fs::create_directory(lock_);
  }
  EXPECT_TRUE(fs::exists(lock_));
}

TEST_F(FileLockTest, AMissingFolderIsAnErrorAtOnce) {
  const auto lock = FileLock::acquire(folder_ / "none" / "a.json");
  ASSERT_FALSE(lock);
  EXPECT_NE(lock.error().message.find("none"), std::string::npos);
}

}  // namespace
}  // namespace tau::coding
