// Whether a project's own settings and resources may be used (CA-160 to CA-163, FF-105).
//
// A project's `.pi` folder can run code: extensions, packages, a shell path. Nothing of it is read before somebody has
// said that it is trusted. Decisions are stored by real path, so that no link leads around them.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace tau::coding {

/// What in this folder (or above it) needs trust; empty when nothing does.
std::vector<std::filesystem::path> trust_subjects(const std::filesystem::path& cwd, const std::filesystem::path& home);

struct TrustRequest {
  std::filesystem::path agent_folder;
  std::filesystem::path cwd;
  std::filesystem::path home;
  std::optional<bool> flag;           // --approve, --no-approve
  std::optional<bool> hook;           // an extension's answer
  std::string default_trust = "ask";  // setting defaultProjectTrust, of the user's own file
};

struct TrustDecision {
  /// Nothing: it is for the user to decide. Where nobody can be asked it means not trusted.
  std::optional<bool> trusted;
  std::vector<std::filesystem::path> subjects;  // what is ignored as long as it is not trusted
  std::optional<std::string> problem;           // trust.json cannot be used
};

TrustDecision decide_trust(const TrustRequest& request);

/// "This project is not trusted: … are ignored. …", for modes that cannot ask; empty when nothing is ignored.
std::string untrusted_note(const TrustDecision& decision);

enum class TrustChoice { kTrust, kTrustParent, kTrustForSession, kDistrust, kDistrustForSession };

/// Stores the choice (not those for the session) in trust.json and returns whether the project is trusted now.
std::expected<bool, Error> store_trust(const std::filesystem::path& agent_folder, const std::filesystem::path& cwd,
                                       TrustChoice choice);

}  // namespace tau::coding
