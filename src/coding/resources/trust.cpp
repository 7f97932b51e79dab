#include "coding/resources/trust.h"

#include <algorithm>

#include <fmt/format.h>

#include "coding/config/json_file.h"
#include "coding/config/paths.h"

namespace tau::coding {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSubjects[] = {"settings.json", "extensions", "skills",          "prompts",
                                          "themes",        "SYSTEM.md",  "APPEND_SYSTEM.md"};

fs::path real_path(const fs::path& path) {
  std::error_code failed;
  fs::path real = fs::canonical(path, failed);
  return failed ? path.lexically_normal() : real;
}

std::expected<void, Error> check_shape(const json::object& decisions, const fs::path& file) {
  for (const auto& [path, v] : decisions) {
    if (!v.is_bool() && !v.is_null()) {
      return std::unexpected(error(fmt::format("{}: the entry of {} must be true, false or null", file.string(),
                                               std::string_view(path.data(), path.size()))));
    }
  }
  return {};
}

/// The nearest entry that says yes or no, from the folder upwards.
std::optional<bool> stored_decision(const json::object& decisions, fs::path folder) {
  for (;; folder = folder.parent_path()) {
    if (const auto decision = json::find_bool(decisions, folder.string())) return decision;
    if (!folder.has_relative_path()) return std::nullopt;
  }
}

}  // namespace

std::vector<fs::path> trust_subjects(const fs::path& cwd, const fs::path& home) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (const std::string_view name : kSubjects) {
    fs::path path = project_folder(cwd) / name;
    if (fs::exists(fs::symlink_status(path, failed))) found.push_back(std::move(path));
  }
  const fs::path users = home / ".agents" / "skills";
  for (fs::path folder = cwd;; folder = folder.parent_path()) {
    fs::path skills = folder / ".agents" / "skills";
    if (fs::exists(skills, failed) && skills != users && !fs::equivalent(skills, users, failed)) {
      found.push_back(std::move(skills));
    }
    if (!folder.has_relative_path()) return found;
  }
}

TrustDecision decide_trust(const TrustRequest& request) {
  TrustDecision decision;
  decision.subjects = trust_subjects(request.cwd, request.home);
  if (request.flag) {
    decision.trusted = request.flag;
    return decision;
  }
  if (decision.subjects.empty()) {
    decision.trusted = true;
    return decision;
  }
  if (request.hook) {
    decision.trusted = request.hook;
    return decision;
  }
  const fs::path file = request.agent_folder / kTrustFile;
  const auto decisions = read_json_object(file);
  auto usable = decisions ? check_shape(*decisions, file) : std::unexpected(decisions.error());
  if (usable) {
    decision.trusted = stored_decision(*decisions, real_path(request.cwd));
  } else {
    decision.problem = fmt::format("Stored trust decisions cannot be used: {}; the project counts as undecided",
                                   usable.error().message);
  }
  if (!decision.trusted && request.default_trust == "always") decision.trusted = true;
  if (!decision.trusted && request.default_trust == "never") decision.trusted = false;
  return decision;
}

std::string untrusted_note(const TrustDecision& decision) {
  if (decision.trusted.value_or(false) || decision.subjects.empty()) return {};
  std::vector<std::string> names;
  names.reserve(decision.subjects.size());
  for (const fs::path& path : decision.subjects)
    names.push_back(path.string());
  return fmt::format("This project is not trusted; ignored: {}. Use --approve to trust it for this run.",
                     fmt::join(names, ", "));
}

std::expected<bool, Error> store_trust(const fs::path& agent_folder, const fs::path& cwd, TrustChoice choice) {
  const bool trusted =
      choice == TrustChoice::kTrust || choice == TrustChoice::kTrustParent || choice == TrustChoice::kTrustForSession;
  if (choice == TrustChoice::kTrustForSession || choice == TrustChoice::kDistrustForSession) return trusted;
  const fs::path file = agent_folder / kTrustFile;
  const fs::path folder = real_path(cwd);
  auto stored =
      update_json_object(file, {.final_newline = true}, [&](json::object& decisions) -> std::expected<void, Error> {
        if (auto usable = check_shape(decisions, file); !usable) return usable;
        if (choice == TrustChoice::kTrustParent) {
          decisions.stable_erase(folder.string());
          decisions[folder.parent_path().string()] = true;
        } else {
          decisions[folder.string()] = trusted;
        }
        std::vector<std::pair<std::string, json::value>> sorted;
        for (auto& member : decisions)
          sorted.emplace_back(member.key(), std::move(member.value()));
        std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        decisions.clear();
        for (auto& [path, v] : sorted)
          decisions.emplace(path, std::move(v));
        return {};
      });
  if (!stored) return std::unexpected(stored.error());
  return trusted;
}

}  // namespace tau::coding
