#include "app/modes/rpc_data.h"

#include <fmt/format.h>

#include "coding/config/paths.h"

namespace tau::app {

namespace {

using coding::EntryNumber;

void write_entry(std::string& out, const coding::Session& session, EntryNumber number) {
  json::write(out, session.index().decode(number));
}

void write_leaf(std::string& out, const coding::Session& session) {
  out += R"(,"leafId":)";
  if (const auto leaf = session.leaf()) {
    json::write(out, coding::id_value(*leaf));
  } else {
    out += "null";
  }
}

/// Text of a user message; images are left out.
std::string text_of_user(const json::object& message) {
  if (const auto text = json::find_string(message, "content")) return std::string(*text);
  std::string text;
  if (const json::array* content = json::find_array(message, "content")) {
    for (const json::value& block : *content) {
      const json::object* o = block.if_object();
      if (o != nullptr && json::string_or(*o, "type") == "text") text += json::string_or(*o, "text");
    }
  }
  return text;
}

json::object source_info(const std::filesystem::path& path, coding::ResourceOrigin origin, const Runtime& runtime) {
  json::object info{{"path", path.string()}};
  switch (origin) {
    case coding::ResourceOrigin::kProject:
      info.emplace("source", "auto");
      info.emplace("scope", "project");
      info.emplace("origin", "top-level");
      info.emplace("baseDir", coding::project_folder(runtime.cwd).string());
      break;
    case coding::ResourceOrigin::kUser:
      info.emplace("source", "auto");
      info.emplace("scope", "user");
      info.emplace("origin", "top-level");
      info.emplace("baseDir", coding::agent_folder().string());
      break;
    case coding::ResourceOrigin::kPackage:
      info.emplace("source", "package");
      info.emplace("scope", "user");
      info.emplace("origin", "package");
      break;
    case coding::ResourceOrigin::kCommandLine:
      info.emplace("source", "cli");
      info.emplace("scope", "temporary");
      info.emplace("origin", "top-level");
      break;
  }
  return info;
}

}  // namespace

std::expected<std::string, Error> entries_data(const coding::Session& session, std::optional<std::string_view> since) {
  const coding::EntryIndex& index = session.index();
  EntryNumber first = 0;
  if (since) {
    const auto found = index.find(*since);
    if (!found) return std::unexpected(error(fmt::format("Entry not found: {}", *since)));
    first = *found + 1;
  }
  std::string out = R"({"entries":[)";
  bool any = false;
  for (EntryNumber n = first; n < index.size(); ++n) {
    if (index.head(n).type == coding::EntryType::kHeader) continue;
    if (any) out += ',';
    any = true;
    write_entry(out, session, n);
  }
  out += ']';
  write_leaf(out, session);
  out += '}';
  return out;
}

std::string tree_data(const coding::Session& session) {
  const coding::SessionTree tree = session.tree();
  const coding::Labels labels = session.labels();
  struct Level {
    const std::vector<EntryNumber>* nodes;
    std::size_t next = 0;
  };
  std::string out = R"({"tree":[)";
  std::vector<Level> open{{&tree.roots}};
  std::vector<EntryNumber> parents;
  while (!open.empty()) {
    Level& level = open.back();
    if (level.next < level.nodes->size()) {
      const EntryNumber node = (*level.nodes)[level.next];
      if (level.next++ > 0) out += ',';
      out += R"({"entry":)";
      write_entry(out, session, node);
      out += R"(,"children":[)";
      parents.push_back(node);
      open.push_back({&tree.children[node]});
      continue;
    }
    out += ']';
    open.pop_back();
    if (parents.empty()) break;
    const auto label = labels.by_target.find(session.index().head(parents.back()).id);
    parents.pop_back();
    if (label != labels.by_target.end()) {
      out += R"(,"label":)";
      json::write(out, label->second.text);
      out += R"(,"labelTimestamp":)";
      json::write(out, label->second.timestamp);
    }
    out += '}';
  }
  write_leaf(out, session);
  out += '}';
  return out;
}

std::string fork_messages_data(const coding::Session& session) {
  const coding::EntryIndex& index = session.index();
  std::string out = R"({"messages":[)";
  bool any = false;
  for (EntryNumber n = 0; n < index.size(); ++n) {
    const coding::EntryHead& head = index.head(n);
    if (head.type != coding::EntryType::kMessage || head.id.data() == nullptr) continue;
    if (head.role != coding::MessageRole::kUser && head.role != coding::MessageRole::kUnread) continue;
    const coding::Entry entry = index.entry(n);
    if (coding::role_of(entry) != coding::MessageRole::kUser || entry.message() == nullptr) continue;
    const std::string text = text_of_user(*entry.message());
    if (text.empty()) continue;
    if (any) out += ',';
    any = true;
    out += R"({"entryId":)";
    json::write(out, coding::id_value(index.head(n).id));
    out += R"(,"text":)";
    json::write(out, text);
    out += '}';
  }
  return out + "]}";
}

std::string messages_data(const std::vector<agent::AgentMessage>& messages) {
  std::string out = R"({"messages":[)";
  bool any = false;
  for (const agent::AgentMessage& message : messages) {
    if (any) out += ',';
    any = true;
    json::write(out, message.to_json());
  }
  return out + "]}";
}

std::string bash_data(const coding::BashExecution& record) {
  json::object data{{"output", record.output}};
  if (record.exit_code) data.emplace("exitCode", *record.exit_code);
  data.emplace("cancelled", record.cancelled);
  data.emplace("truncated", record.truncated);
  if (record.full_output_path) data.emplace("fullOutputPath", *record.full_output_path);
  return json::to_text(data);
}

std::string commands_data(const Runtime& runtime) {
  json::array commands;
  for (const coding::PromptTemplate& t : runtime.prompt_templates) {
    json::object command{{"name", t.name}};
    if (!t.description.empty()) command.emplace("description", t.description);
    command.emplace("source", "prompt");
    command.emplace("sourceInfo", source_info(t.file, t.origin, runtime));
    commands.push_back(std::move(command));
  }
  if (runtime.settings->enable_skill_commands()) {
    for (const coding::Skill& skill : runtime.skills) {
      json::object command{{"name", "skill:" + skill.name}};
      if (!skill.description.empty()) command.emplace("description", skill.description);
      command.emplace("source", "skill");
      command.emplace("sourceInfo", source_info(skill.file, skill.origin, runtime));
      commands.push_back(std::move(command));
    }
  }
  return json::to_text(json::object{{"commands", std::move(commands)}});
}

}  // namespace tau::app
