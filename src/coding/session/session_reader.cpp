#include "coding/session/session_reader.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/utf8.h"

namespace tau::coding {

namespace {

/// Values that JavaScript counts as false: lines of these are dropped (SES-35).
bool is_falsy(const json::value& v) {
  if (v.is_null()) return true;
  if (const bool* b = v.if_bool()) return !*b;
  if (const auto number = json::as_number(v)) return *number == 0;
  return v.is_string() && v.get_string().empty();
}

double version_of(const json::object& header) {
  if (const auto number = json::find_number(header, "version")) return *number;
  // "2" compares like 2 (SES-21).
  if (const auto text = json::find_string(header, "version")) return std::strtod(std::string(*text).c_str(), nullptr);
  return 1;
}

/// Version 1 had no tree: each entry becomes the child of the one before (SES-41).
void migrate_1_to_2(json::object& header, std::vector<Entry>& entries) {
  header["version"] = 2;
  std::vector<std::string> ids;
  std::optional<std::string> parent;
  for (Entry& entry : entries) {
    json::object* o = entry.source.if_object();
    if (o == nullptr) {
      ids.emplace_back();
      continue;
    }
    const std::string id = random_hex(8);
    (*o)["id"] = id;
    (*o)["parentId"] = parent ? json::value(*parent) : json::value(nullptr);
    if (const auto index = json::find_integer(*o, "firstKeptEntryIndex")) {
      // The header was counted as record 0.
      const auto at = static_cast<std::size_t>(*index - 1);
      if (*index > 0 && at < ids.size()) (*o)["firstKeptEntryId"] = ids[at];
    }
    if (const auto index = o->find("firstKeptEntryIndex"); index != o->end()) o->stable_erase(index);
    ids.push_back(id);
    parent = id;
  }
}

void migrate_2_to_3(json::object& header, std::vector<Entry>& entries) {
  header["version"] = 3;
  for (Entry& entry : entries) {
    json::object* o = entry.source.if_object();
    json::value* message = o != nullptr ? o->if_contains("message") : nullptr;
    json::object* m = message != nullptr ? message->if_object() : nullptr;
    if (m != nullptr && json::string_or(*m, "role") == "hookMessage") (*m)["role"] = "custom";
  }
}

}  // namespace

const json::object& Entry::object() const {
  static const json::object kEmpty;
  const json::object* o = source.if_object();
  return o != nullptr ? *o : kEmpty;
}

Entry make_entry(json::value source) {
  Entry entry{std::move(source), {}, {}, {}};
  const json::object& o = entry.object();
  entry.type = json::string_or(o, "type");
  if (const auto id = json::find_string(o, "id")) entry.id = std::string(*id);
  const auto parent = json::find_string(o, "parentId");
  if (parent && !parent->empty()) entry.parent_id = std::string(*parent);
  return entry;
}

std::vector<json::value> records_of_line(std::string_view line, bool& complete) {
  complete = true;
  std::vector<json::value> records;
  while (!utf8::is_blank(line)) {
    std::size_t consumed = 0;
    auto record = json::parse_prefix(line, consumed);
    if (record) {
      records.push_back(*std::move(record));
      line.remove_prefix(consumed);
      continue;
    }
    complete = false;
    // A torn record: the next one may stand behind it, and records begin with their type.
    const std::size_t next = line.find("{\"type\":", 1);
    if (next == std::string_view::npos) break;
    line.remove_prefix(next);
  }
  return records;
}

std::expected<SessionText, Error> read_session(std::string_view text) {
  SessionText session;
  session.ends_with_newline = text.empty() || text.back() == '\n';
  text = without_byte_order_mark(text);
  bool has_header = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    bool complete = true;
    std::vector<json::value> records = records_of_line(line, complete);
    if (!complete) {
      session.warnings.push_back(fmt::format(
          "line {}: {}", number,
          records.empty() ? "not readable, left out" : "partly not readable; the rest of the line was kept"));
    } else if (records.size() > 1) {
      session.warnings.push_back(fmt::format("line {}: holds {} records, all were read", number, records.size()));
    }
    for (json::value& record : records) {
      if (is_falsy(record)) continue;
      Entry entry = make_entry(std::move(record));
      if (!has_header) {
        if (entry.type != "session" || !entry.id)
          return std::unexpected(error("its first record is no session header"));
        session.header = entry.object();
        has_header = true;
      } else {
        session.entries.push_back(std::move(entry));
      }
    }
  }
  if (!has_header) return std::unexpected(error("it holds no session header"));

  const double version = version_of(session.header);
  if (version < 2) migrate_1_to_2(session.header, session.entries);
  if (version < 3) {
    migrate_2_to_3(session.header, session.entries);
    session.migrated = true;
    for (Entry& entry : session.entries)
      entry = make_entry(std::move(entry.source));
  }
  return session;
}

std::string write_session(const json::object& header, const std::vector<Entry>& entries) {
  std::string out;
  json::write(out, header);
  out += '\n';
  for (const Entry& entry : entries) {
    json::write(out, entry.source);
    out += '\n';
  }
  return out;
}

}  // namespace tau::coding
