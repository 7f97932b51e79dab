#include "base/base64.h"

#include <gtest/gtest.h>

namespace tau {
namespace {

TEST(Base64, BytesComeBackFromTheirText) {
  for (const std::string bytes : {"", "f", "fo", "foo", "foob", "\xff\xfe\x01"})
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
  EXPECT_EQ(base64_encode("foob"), "Zm9vYg==");
}

TEST(Base64, WhatIsNoBase64IsRefused) {
  EXPECT_FALSE(base64_decode("Zm9"));
  EXPECT_FALSE(base64_decode("Zm9*"));
  EXPECT_FALSE(base64_decode("Z==="));
}

}  // namespace
}  // namespace tau
