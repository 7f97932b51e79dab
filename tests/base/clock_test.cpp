#include "base/clock.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tau {
namespace {

TEST(IsoTime, IsWrittenAsJavaScriptDoes) {
  EXPECT_EQ(iso_time(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(iso_time(1770109200000), "2026-02-03T09:00:00.000Z");
  EXPECT_EQ(iso_time(1770109200007), "2026-02-03T09:00:00.007Z");
  EXPECT_EQ(iso_time(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(iso_time(951782400000), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(iso_time(-62167219200000), "0000-01-01T00:00:00.000Z");
  EXPECT_EQ(iso_time(-62167219200001), "-000001-12-31T23:59:59.999Z");
  EXPECT_EQ(iso_time(253402300800000), "+010000-01-01T00:00:00.000Z");
  EXPECT_EQ(iso_time(8640000000000000), "+275760-09-13T00:00:00.000Z");
  EXPECT_EQ(iso_time(-8640000000000000), "-271821-04-20T00:00:00.000Z");
}

TEST(IsoTime, IsReadBack) {
  for (const std::int64_t time :
       {std::int64_t{0}, std::int64_t{1770109200007}, std::int64_t{-1}, std::int64_t{951782400000},
        std::int64_t{8640000000000000}, std::int64_t{-8640000000000000}, std::int64_t{-62167219200001}}) {
    EXPECT_EQ(parse_iso_time(iso_time(time)), time) << iso_time(time);
  }
}

TEST(IsoTime, ReadsOffsetsFractionsAndDates) {
  EXPECT_EQ(parse_iso_time("2026-02-03T10:30:00+01:30"), 1770109200000);
  EXPECT_EQ(parse_iso_time("2026-02-03T04:00:00-0500"), 1770109200000);
  EXPECT_EQ(parse_iso_time("2026-02-03T10:00:00+01"), 1770109200000);
  EXPECT_EQ(parse_iso_time("2026-02-03 09:00Z"), 1770109200000);
  EXPECT_EQ(parse_iso_time("2026-02-03T09:00:00.5Z"), 1770109200500);
  EXPECT_EQ(parse_iso_time("2026-02-03T09:00:00.1239999Z"), 1770109200123);
  EXPECT_EQ(parse_iso_time("2026-02-03"), 1770076800000);
  EXPECT_EQ(parse_iso_time("2026-02-02T24:00:00Z"), 1770076800000);
}

TEST(IsoTime, RefusesEverythingElse) {
  for (const char* text : {"",
                           "2026",
                           "2026-02",
                           "2026-2-3",
                           "2026-02-30",
                           "2025-02-29",
                           "2026-13-01",
                           "2026-00-01",
                           "2026-01-00",
                           "2026-02-03T09:00:00",
                           "2026-02-03T25:00:00Z",
                           "2026-02-03T09:60:00Z",
                           "2026-02-03T09:00:60Z",
                           "2026-02-03T09:00:00.Z",
                           "2026-02-03T09:00:00Zx",
                           "2026-02-03T09:00:00+1",
                           "2026-02-03T09:00:00+24:00",
                           "-000000-01-01",
                           "+275760-09-14",
                           "yesterday"}) {
    EXPECT_EQ(parse_iso_time(text), std::nullopt) << text;
  }
}

bool is_uuid(const std::string& id, char version) {
  if (id.size() != 36) return false;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (id[i] == '-')) return false;
    if (!dash && std::string("0123456789abcdef").find(id[i]) == std::string::npos) return false;
  }
  return id[14] == version && std::string("89ab").find(id[19]) != std::string::npos;
}

// AI-46, SES-10
TEST(UuidV7, HoldsTheTimeAndNeverGoesBackwards) {
  const std::int64_t before = now_milliseconds();
  std::string previous = uuid_v7();
  EXPECT_TRUE(is_uuid(previous, '7')) << previous;
  const std::int64_t stamp = std::stoll(previous.substr(0, 8) + previous.substr(9, 4), nullptr, 16);
  EXPECT_GE(stamp, before);
  EXPECT_LE(stamp, now_milliseconds());
  for (int i = 0; i < 20000; ++i) {
    std::string id = uuid_v7();
    ASSERT_LT(previous, id);
    ASSERT_TRUE(is_uuid(id, '7')) << id;
    previous = std::move(id);
  }
}

TEST(UuidV7, IsUniqueAcrossThreads) {
  std::vector<std::vector<std::string>> made(4);
  std::vector<std::thread> threads;
  for (auto& ids : made) {
    threads.emplace_back([&ids] {
      for (int i = 0; i < 2000; ++i)
        ids.push_back(uuid_v7());
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::set<std::string> all;
  for (const auto& ids : made)
    all.insert(ids.begin(), ids.end());
  EXPECT_EQ(all.size(), 8000U);
}

TEST(UuidV4, HasVersionAndVariantAndDiffers) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = uuid_v4();
    ASSERT_TRUE(is_uuid(id, '4')) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 1000U);
}

TEST(RandomHex, HasTheLengthAskedFor) {
  EXPECT_EQ(random_hex(0), "");
  for (const int count : {1, 8, 16, 17, 64}) {
    const std::string text = random_hex(count);
    EXPECT_EQ(text.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << text;
  }
  EXPECT_NE(random_hex(32), random_hex(32));
}

}  // namespace
}  // namespace tau
