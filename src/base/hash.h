// Hashes and random bytes (libcrypto's), and the two text forms in which they travel.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tau {

/// 32 bytes.
std::string sha256(std::string_view bytes);
/// 32 bytes.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// From the system's generator for secrets. Throws std::runtime_error when it has none.
std::string random_bytes(std::size_t count);

/// Two lower-case digits a byte.
std::string hex(std::string_view bytes);
/// The alphabet of addresses and tokens, without padding (RFC 4648, section 5).
std::string base64url_encode(std::string_view bytes);

}  // namespace tau
