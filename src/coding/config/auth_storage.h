// auth.json: the keys and logins that pi and tau share (AI-241, CA-185 to CA-187, FF-109, FF-112).
//
// Reading takes no lock. A change locks the real file, reads it again, changes one provider and replaces the file, so
// that two programs can store keys at once. The file is made 0600 in a 0700 folder; the mode of a file that is there
// and a symbolic link at its place are kept. A file that cannot be read is never written.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace tau::coding {

struct ApiKeyCredential {
  std::optional<std::string> key;          // a value form (CA-180)
  std::map<std::string, std::string> env;  // variables that belong to it: region, account, proxy
};

struct OAuthCredential {
  std::string access;
  std::string refresh;
  std::int64_t expires = 0;  // Unix time in milliseconds
  json::object all;          // the entry as it stands in the file, with what a login stored besides
};

using Credential = std::variant<ApiKeyCredential, OAuthCredential>;

class AuthStorage {
 public:
  explicit AuthStorage(std::filesystem::path file);

  /// Reads the file again. A broken file keeps what was read last (CA-186) and is reported by
  /// `problem`.
  void reload();

  /// What is stored for the provider; nothing when there is no entry. An entry of an unknown type reads as a key
  /// credential without a key: the provider is taken, but unusable.
  std::optional<Credential> find(std::string_view provider) const;
  std::vector<std::string> providers() const;
  /// What is wrong with the file, if anything.
  const std::optional<std::string>& problem() const { return problem_; }
  const std::filesystem::path& file() const { return file_; }

  /// Changes the entry of one provider under the lock: `change` gets the present entry (null when there is none) and
  /// returns the new one, null to remove it, or an error to leave everything as it is.
  std::expected<void, Error> modify(
      std::string_view provider,
      const std::function<std::expected<json::value, Error>(const json::value* present)>& change);
  std::expected<void, Error> store_key(std::string_view provider, std::string key);
  std::expected<void, Error> remove(std::string_view provider);

 private:
  std::filesystem::path file_;
  json::object entries_;
  std::optional<std::string> problem_;
};

}  // namespace tau::coding
