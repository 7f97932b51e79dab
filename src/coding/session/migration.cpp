#include "coding/session/migration.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/clock.h"

namespace tau::coding {

namespace {

/// Version 1 had no tree: each entry becomes the child of the one before (SES-41).
void add_tree(json::object& header, std::vector<json::value>& records) {
  header["version"] = 2;
  std::vector<std::string> ids;  // of the records so far; empty for those that are no objects
  std::unordered_set<std::string> used;
  std::optional<std::string> parent;
  for (json::value& record : records) {
    json::object* o = record.if_object();
    if (o == nullptr || json::string_or(*o, "type") == "session") {
      ids.emplace_back();
      continue;
    }
    std::string id = random_hex(8);
    while (!used.insert(id).second)
      id = random_hex(8);
    (*o)["id"] = id;
    (*o)["parentId"] = parent ? json::value(*parent) : json::value(nullptr);
    if (const auto index = o->find("firstKeptEntryIndex"); index != o->end()) {
      // The header was counted as record 0.
      const double at = json::as_number(index->value()).value_or(0) - 1;
      const std::string kept =
          at >= 0 && at < static_cast<double>(ids.size()) ? ids[static_cast<std::size_t>(at)] : std::string();
      o->stable_erase(index);
      if (!kept.empty()) (*o)["firstKeptEntryId"] = kept;
    }
    ids.push_back(id);
    parent = std::move(id);
  }
}

/// Version 2 called messages of extensions hook messages (SES-42).
void rename_hook_messages(json::object& header, std::vector<json::value>& records) {
  header["version"] = kSessionVersion;
  for (json::value& record : records) {
    json::object* o = record.if_object();
    if (o == nullptr || json::string_or(*o, "type") != "message") continue;
    json::value* message = o->if_contains("message");
    json::object* m = message != nullptr ? message->if_object() : nullptr;
    if (m != nullptr && json::string_or(*m, "role") == "hookMessage") (*m)["role"] = "custom";
  }
}

/// "7" but not "07" or "4294967295": what JavaScript takes for a position in an array.
std::optional<std::uint32_t> array_index(std::string_view key) {
  std::uint32_t index = 0;
  const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool whole = failed == std::errc() && end == key.data() + key.size();
  if (!whole || (key.size() > 1 && key.front() == '0')) return std::nullopt;
  return index != std::numeric_limits<std::uint32_t>::max() ? std::optional(index) : std::nullopt;
}

/// A rewritten file has the bytes that pi would have written: JavaScript moves such keys to the front (SES-44).
void order_keys(json::value& v) {
  if (json::array* a = v.if_array()) {
    for (json::value& element : *a)
      order_keys(element);
    return;
  }
  json::object* o = v.if_object();
  if (o == nullptr) return;
  std::vector<std::pair<std::uint32_t, std::string>> indices;
  for (auto& [key, member] : *o) {
    order_keys(member);
    if (const auto index = array_index({key.data(), key.size()})) indices.emplace_back(*index, std::string(key));
  }
  if (indices.empty()) return;
  std::sort(indices.begin(), indices.end());
  json::object ordered;
  for (const auto& [index, key] : indices)
    ordered.emplace(key, std::move(o->at(key)));
  for (auto& [key, member] : *o) {
    if (!array_index({key.data(), key.size()})) ordered.emplace(key, std::move(member));
  }
  *o = std::move(ordered);
}

}  // namespace

double session_version(const json::object& header) {
  if (const auto number = json::find_number(header, "version")) return *number;
  if (const auto text = json::find_string(header, "version")) return std::strtod(std::string(*text).c_str(), nullptr);
  return 1;
}

void migrate_session(json::object& header, std::vector<json::value>& records) {
  if (session_version(header) < 2) add_tree(header, records);
  rename_hook_messages(header, records);
  for (json::value& record : records)
    order_keys(record);
}

}  // namespace tau::coding
