// The open transcript: AG-1 to AG-5, AG-87, IV-3, IV-5, IV-6.
#include "agent/agent_message.h"

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "agent/check_transcript.h"
#include "agent/role_set.h"

#include "support/fixture.h"

namespace {

using namespace tau;
using agent::AgentMessage;
using agent::RoleSet;
using agent::UnknownMessage;

std::atomic<int> projections = 0;

/// Stored as version 2; version 1 had "body" for "text".
struct Notification {
  static constexpr std::string_view role = "notification";
  static constexpr int version = 2;
  std::string text;
};
json::object to_json(const Notification& m) {
  return {{"role", Notification::role}, {"text", m.text}};
}
std::expected<Notification, Error> from_json(std::type_identity<Notification>, const json::object& o) {
  const auto text = json::find_string(o, agent::stored_version(o) == 1 ? "body" : "text");
  if (!text) return std::unexpected(Error{"a notification without text"});
  return Notification{std::string(*text)};
}
std::vector<ai::MessageRef> project(const Notification& m) {
  ++projections;
  return {ai::make_message(ai::UserMessage{"note: " + m.text, 0, {}})};
}

/// Visible to nobody but a screen.
struct Divider {
  static constexpr std::string_view role = "divider";
  static constexpr int version = 1;
};
json::object to_json(const Divider&) {
  return {{"role", Divider::role}};
}
std::expected<Divider, Error> from_json(std::type_identity<Divider>, const json::object&) {
  return Divider{};
}
std::vector<ai::MessageRef> project(const Divider&) {
  return {};
}

struct OtherDivider {
  static constexpr std::string_view role = "divider";
  static constexpr int version = 1;
};
json::object to_json(const OtherDivider&) {
  return {};
}
std::expected<OtherDivider, Error> from_json(std::type_identity<OtherDivider>, const json::object&) {
  return OtherDivider{};
}
std::vector<ai::MessageRef> project(const OtherDivider&) {
  return {};
}

struct WithoutProjection {
  static constexpr std::string_view role = "lame";
  static constexpr int version = 1;
};
[[maybe_unused]] json::object to_json(const WithoutProjection&) {
  return {};
}
[[maybe_unused]] std::expected<WithoutProjection, Error> from_json(std::type_identity<WithoutProjection>,
                                                                   const json::object&) {
  return WithoutProjection{};
}

static_assert(agent::ApplicationMessage<Notification>);
static_assert(agent::ApplicationMessage<Divider>);
static_assert(!agent::ApplicationMessage<WithoutProjection>);
static_assert(!agent::ApplicationMessage<ai::UserMessage>);
static_assert(sizeof(AgentMessage) == 16);

AgentMessage user(std::string text) {
  return AgentMessage(ai::UserMessage{std::move(text), 1, {}});
}

TEST(AgentMessage, KnowsItsRoleAndItsType) {
  const AgentMessage plain = user("hi");
  EXPECT_EQ(plain.role(), "user");
  EXPECT_NE(plain.user(), nullptr);
  EXPECT_EQ(plain.assistant(), nullptr);
  EXPECT_EQ(plain.as<Notification>(), nullptr);

  const AgentMessage note = AgentMessage::of(Notification{"tea is ready"});
  EXPECT_EQ(note.role(), "notification");
  EXPECT_EQ(note.standard(), nullptr);
  ASSERT_NE(note.as<Notification>(), nullptr);
  EXPECT_EQ(note.as<Notification>()->text, "tea is ready");
  EXPECT_EQ(note.as<Divider>(), nullptr);
}

TEST(AgentMessage, ACopyIsTheSameNode) {
  const AgentMessage a = user("hi");
  const AgentMessage copy = a;
  EXPECT_EQ(copy, a);
  EXPECT_EQ(copy.standard(), a.standard());
  EXPECT_FALSE(user("hi") == a);
}

TEST(AgentMessage, ProjectionIsMadeOnceForAllCopiesAndThreads) {
  const AgentMessage note = AgentMessage::of(Notification{"x"});
  projections = 0;
  std::vector<const ai::Message*> seen(8);
  {
    std::vector<std::jthread> threads;
    for (const ai::Message*& slot : seen)
      threads.emplace_back([copy = note, &slot] { slot = copy.projection().front().get(); });
  }
  EXPECT_EQ(projections, 1);
  EXPECT_EQ(std::set<const ai::Message*>(seen.begin(), seen.end()).size(), 1U);
}

TEST(AgentMessage, ProjectionOfAStandardMessageIsItself) {
  const AgentMessage plain = user("hi");
  ASSERT_EQ(plain.projection().size(), 1U);
  EXPECT_EQ(plain.projection().front().get(), plain.standard());
}

TEST(AgentMessage, ARoleOrAnUnknownMessageMayBeInvisibleToTheModel) {
  EXPECT_TRUE(AgentMessage::of(Divider{}).projection().empty());
  EXPECT_TRUE(AgentMessage(UnknownMessage{{{"role", "poll"}}}).projection().empty());
}

TEST(AgentMessage, DefaultConversionKeepsTheThreeRolesInOrder) {  // PR-11, IV-4
  const std::vector<AgentMessage> messages{user("a"), AgentMessage::of(Notification{"n"}), user("b"),
                                           AgentMessage(UnknownMessage{{{"role", "poll"}}}), user("c")};
  const std::vector<ai::MessageRef> converted = agent::standard_messages(messages);
  ASSERT_EQ(converted.size(), 3U);
  EXPECT_EQ(converted[0].get(), messages[0].standard());
  EXPECT_EQ(converted[2].get(), messages[4].standard());
  EXPECT_TRUE(agent::check_conversion(messages, converted).empty());
}

/// A snapshot, three transforms and the projection of what did not change cost handles: no message is copied.
TEST(AgentMessage, SnapshotsAndTransformsShareTheMessages) {
  std::vector<AgentMessage> transcript;
  for (int i = 0; i < 50'000; ++i)
    transcript.push_back(i % 10 == 0 ? AgentMessage::of(Notification{std::to_string(i)}) : user(std::string(100, 'x')));
  for (const AgentMessage& message : transcript)
    message.projection();

  projections = 0;
  std::vector<AgentMessage> snapshot = transcript;
  std::erase_if(snapshot, [](const AgentMessage& m) { return m.as<Divider>() != nullptr; });
  snapshot.erase(snapshot.begin(), snapshot.begin() + 1000);
  snapshot.insert(snapshot.begin(), user("summary"));
  std::vector<ai::MessageRef> converted;
  for (const AgentMessage& message : snapshot)
    converted.insert(converted.end(), message.projection().begin(), message.projection().end());
  EXPECT_EQ(projections, 0);
  EXPECT_EQ(converted.size(), 49'001U);
  EXPECT_EQ(converted.back(), transcript.back().projection().front());
}

TEST(RoleSet, ReadsTheRolesOfTheApplication) {
  const RoleSet roles = RoleSet::of<Notification, Divider>();
  const AgentMessage read = roles.read({{"role", "notification"}, {"text", "x"}, {"roleVersion", 2}});
  ASSERT_NE(read.as<Notification>(), nullptr);
  EXPECT_EQ(read.as<Notification>()->text, "x");
  EXPECT_NE(roles.read({{"role", "user"}, {"content", "hi"}, {"timestamp", 1}}).user(), nullptr);
}

TEST(RoleSet, MigratesAnOlderForm) {  // IV-6
  const RoleSet roles = RoleSet::of<Notification>();
  const AgentMessage read = roles.read({{"role", "notification"}, {"body", "old"}});
  ASSERT_NE(read.as<Notification>(), nullptr);
  EXPECT_EQ(read.as<Notification>()->text, "old");
  EXPECT_EQ(json::to_text(read.to_json()), R"({"role":"notification","text":"old","roleVersion":2})");
}

TEST(RoleSet, KeepsAnUnknownRoleByteForByte) {  // AG-3, AG-4
  const std::string text = R"({"role":"poll","question":"5.0?","votes":[1,2.5,1e+21],"z":null,"a":{"b":"\ud83d"}})";
  const AgentMessage read = RoleSet::of<Notification>().read(json::parse(text)->as_object());
  EXPECT_EQ(read.role(), "poll");
  ASSERT_NE(read.unknown(), nullptr);
  EXPECT_EQ(json::to_text(read.to_json()), text);
}

TEST(RoleSet, KeepsWhatItsCodecRefuses) {
  const std::string text = R"({"role":"notification","roleVersion":9,"txt":"from the future"})";
  const AgentMessage read = RoleSet::of<Notification>().read(json::parse(text)->as_object());
  ASSERT_NE(read.unknown(), nullptr);
  EXPECT_EQ(read.role(), "notification");
  EXPECT_EQ(json::to_text(read.to_json()), text);
}

TEST(RoleSet, KeepsUnknownMembersOfKnownRoles) {  // AG-87
  const std::string text = R"({"role":"user","content":"hi","timestamp":5,"mood":"good"})";
  EXPECT_EQ(json::to_text(RoleSet().read(json::parse(text)->as_object()).to_json()), text);
}

TEST(RoleSet, TwoRolesOfOneNameAreAnErrorAtConstruction) {
  EXPECT_THROW((RoleSet::of<Divider, OtherDivider>()), std::logic_error);
  EXPECT_THROW((RoleSet::of<Divider, Divider>()), std::logic_error);
}

// ---- a role without one of its policies does not compile ---------------------------------------------------------

constexpr std::string_view kPolicies[] = {
    "static constexpr std::string_view role = \"probe\"; //member\n", "static constexpr int version = 1; //member\n",
    "tau::json::object to_json(const Probe&) { return {}; }\n",
    "std::expected<Probe, tau::Error> from_json(std::type_identity<Probe>, const tau::json::object&) { return Probe{}; "
    "}\n",
    "std::vector<tau::ai::MessageRef> project(const Probe&) { return {}; }\n"};

/// Compiles a program with a role that lacks the policy at this position; none when it is past the end.
int compile_without(std::size_t missing, const test::TemporaryFolder& folder) {
  std::string members;
  std::string functions;
  for (std::size_t i = 0; i < std::size(kPolicies); ++i) {
    if (i != missing) (i < 2 ? members : functions) += kPolicies[i];
  }
  const auto source =
      folder.write("probe.cpp", "#include \"agent/agent_message.h\"\nstruct Probe {\n" + members + "};\n" + functions +
                                    "auto probe() { return tau::agent::AgentMessage::of(Probe{}); }\n");
  const std::string command = std::string("c++ -std=c++23 -fsyntax-only -I ") + TAU_SOURCE_DIR + "/src " +
                              source.string() + " 2>" + (folder / "errors.txt").string();
  return std::system(command.c_str());  // NOLINT(cert-env33-c): the compiler is what is being tested
}

TEST(ApplicationMessage, ARoleWithAMissingPolicyDoesNotCompile) {
  if (std::system("c++ --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no c++ to try it with";
  const test::TemporaryFolder folder;
  ASSERT_EQ(compile_without(std::size(kPolicies), folder), 0) << test::read_file(folder / "errors.txt");
  for (std::size_t missing = 0; missing < std::size(kPolicies); ++missing) {
    EXPECT_NE(compile_without(missing, folder), 0) << "without " << kPolicies[missing];
    EXPECT_NE(test::read_file(folder / "errors.txt").find("ApplicationMessage"), std::string::npos);
  }
}

}  // namespace
