#include "coding/config/auth_storage.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/fixture.h"

namespace tau::coding {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(AuthStorage, BothKindsOfCredentialsAreRead) {  // AI-241, CA-185
  const test::TemporaryFolder folder;
  const AuthStorage storage(
      folder.write("auth.json",
                   "\xEF\xBB\xBF{\"anthropic\":{\"type\":\"oauth\",\"access\":\"a\",\"refresh\":\"r\","
                   "\"expires\":99,\"accountId\":\"x\"},\"openai\":{\"type\":\"api_key\",\"key\":"
                   "\"$K\",\"env\":{\"A\":\"b\"}},\"odd\":{\"type\":\"smoke\"}}"));
  EXPECT_FALSE(storage.problem());
  const auto login = storage.find("anthropic");
  ASSERT_TRUE(login && std::holds_alternative<OAuthCredential>(*login));
  EXPECT_EQ(std::get<OAuthCredential>(*login).expires, 99);
  EXPECT_EQ(json::string_or(std::get<OAuthCredential>(*login).all, "accountId"), "x");
  const auto key = storage.find("openai");
  ASSERT_TRUE(key && std::holds_alternative<ApiKeyCredential>(*key));
  EXPECT_EQ(std::get<ApiKeyCredential>(*key).key, "$K");
  EXPECT_EQ(std::get<ApiKeyCredential>(*key).env.at("A"), "b");
  ASSERT_TRUE(storage.find("odd"));
  EXPECT_FALSE(std::get<ApiKeyCredential>(*storage.find("odd")).key);
  EXPECT_FALSE(storage.find("none"));
}

TEST(AuthStorage, ANewFileIsPrivateWhateverTheUmask) {  // FF-109
  const test::TemporaryFolder folder;
  const mode_t before = umask(0);
  AuthStorage storage(folder / "agent/auth.json");
  const auto stored = storage.store_key("openai", "sk-1");
  umask(before);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(mode_of(folder / "agent/auth.json"), 0600U);
  EXPECT_EQ(mode_of(folder / "agent"), 0700U);
  EXPECT_EQ(test::read_file(folder / "agent/auth.json"),
            "{\n  \"openai\": {\n    \"type\": \"api_key\",\n    \"key\": \"sk-1\"\n  }\n}");
}

TEST(AuthStorage, ModeAndLinkOfAnExistingFileAreKept) {  // FF-109
  const test::TemporaryFolder folder;
  const fs::path real = folder.write("vault/auth.json", "{}");
  chmod(real.c_str(), 0640);
  const fs::path link = folder / "auth.json";
  fs::create_symlink(real, link);
  AuthStorage storage(link);
  ASSERT_TRUE(storage.store_key("openai", "sk-1"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(mode_of(real), 0640U);
  EXPECT_NE(test::read_file(real).find("sk-1"), std::string::npos);
}

TEST(AuthStorage, AChangeTouchesOneProviderInTheFileAsItIsNow) {  // CA-186
  const test::TemporaryFolder folder;
  const fs::path file = folder.write("auth.json", "{}");
  AuthStorage first(file);
  AuthStorage second(file);
  ASSERT_TRUE(first.store_key("a", "1"));
  ASSERT_TRUE(second.store_key("b", "2"));
  EXPECT_TRUE(second.find("a"));
  ASSERT_TRUE(second.remove("a"));
  EXPECT_EQ(second.providers(), std::vector<std::string>{"b"});
  EXPECT_TRUE(first.find("a"));
  first.reload();
  EXPECT_FALSE(first.find("a"));
}

TEST(AuthStorage, ABrokenFileKeepsWhatWasReadAndIsNeverWritten) {  // CA-186, FF-115
  const test::TemporaryFolder folder;
  const fs::path file = folder.write("auth.json", "{\"a\":{\"type\":\"api_key\",\"key\":\"1\"}}");
  AuthStorage storage(file);
  folder.write("auth.json", "{\"a\":");
  storage.reload();
  EXPECT_TRUE(storage.find("a"));
  ASSERT_TRUE(storage.problem());
  EXPECT_NE(storage.problem()->find(file.string()), std::string::npos);
  EXPECT_FALSE(storage.store_key("b", "2"));
  EXPECT_EQ(test::read_file(file), "{\"a\":");
}

TEST(AuthStorage, VariablesOfAKeySurviveANewKey) {
  const test::TemporaryFolder folder;
  AuthStorage storage(folder.write("auth.json", "{\"c\":{\"type\":\"api_key\",\"key\":\"1\",\"env\":{\"A\":\"b\"}}}"));
  ASSERT_TRUE(storage.store_key("c", "2"));
  EXPECT_EQ(std::get<ApiKeyCredential>(*storage.find("c")).env.at("A"), "b");
}

TEST(AuthStorage, ProcessesThatStoreAtOnceLoseNothing) {  // FF-111, FF-112
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "real");
  fs::create_directory_symlink(folder / "real", folder / "alias");
  std::vector<pid_t> children;
  for (int p = 0; p < 6; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      AuthStorage storage(folder / (p % 2 == 0 ? "real/auth.json" : "alias/auth.json"));
      for (int k = 0; k < 20; ++k) {
        if (!storage.store_key(fmt::format("p{}-{}", p, k), "x")) _exit(1);
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
  EXPECT_EQ(AuthStorage(folder / "real/auth.json").providers().size(), 120U);
}

}  // namespace
}  // namespace tau::coding
