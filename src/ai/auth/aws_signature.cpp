#include "ai/auth/aws_signature.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/percent_encoding.h"
#include "base/utf8.h"

namespace tau::ai {

namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// Trimmed, runs of blanks as one.
std::string plain_value(std::string_view value) {
  std::string out;
  for (const char c : utf8::trim(value)) {
    if (c == ' ' && out.ends_with(' ')) continue;
    out += c;
  }
  return out;
}

}  // namespace

std::string aws_authorization(const AwsRequest& request, const AwsKeys& keys, std::string_view region,
                              std::string_view service, std::string_view time) {
  std::vector<std::pair<std::string, std::string>> headers;
  headers.reserve(request.headers.size());
  for (const auto& [name, value] : request.headers)
    headers.emplace_back(lower_case(name), plain_value(value));
  std::sort(headers.begin(), headers.end());
  std::string header_lines;
  std::string names;
  for (const auto& [name, value] : headers) {
    header_lines += fmt::format("{}:{}\n", name, value);
    if (!names.empty()) names += ';';
    names += name;
  }
  // The path is encoded once more: what is sent as %3A is signed as %253A.
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, percent_encode(request.path, "/"),
                                            request.query, header_lines, names, request.payload_hash);
  const std::string_view day = time.substr(0, 8);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, region, service);
  const std::string to_sign = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, time, scope, hex(sha256(canonical)));
  std::string key = hmac_sha256("AWS4" + keys.secret_key, day);
  for (const std::string_view part : {region, service, std::string_view("aws4_request")})
    key = hmac_sha256(key, part);
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm, keys.access_key, scope, names,
                     hex(hmac_sha256(key, to_sign)));
}

std::string aws_time(std::int64_t unix_milliseconds) {
  const std::time_t seconds = unix_milliseconds / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

}  // namespace tau::ai
