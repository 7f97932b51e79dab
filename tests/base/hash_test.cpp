#include "base/hash.h"

#include <gtest/gtest.h>

namespace tau {
namespace {

TEST(Hash, Sha256HasTheValueOfTheStandard) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, HmacHasTheValueOfItsStandard) {  // RFC 4231, case 2
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Hash, Base64UrlNeedsNoEscapes) {
  EXPECT_EQ(base64url_encode("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(base64url_encode("a"), "YQ");
}

TEST(Hash, RandomBytesDiffer) {
  EXPECT_EQ(random_bytes(16).size(), 16U);
  EXPECT_NE(random_bytes(16), random_bytes(16));
}

}  // namespace
}  // namespace tau
