#include "coding/roles/custom.h"

#include "ai/json_members.h"
#include "coding/roles/user_text.h"

namespace tau::coding {

json::object to_json(const CustomMessage& m) {
  json::object o{{"role", CustomMessage::role}, {"customType", m.custom_type}};
  if (const auto* text = std::get_if<std::string>(&m.content)) {
    o.emplace("content", *text);
  } else {
    o.emplace("content", ai::to_json(std::get<std::vector<ai::UserBlock>>(m.content)));
  }
  o.emplace("display", m.display);
  ai::put(o, "details", m.details);
  o.emplace("timestamp", m.timestamp);
  ai::put_unknown(o, m.extra);
  return o;
}

std::expected<CustomMessage, Error> from_json(std::type_identity<CustomMessage>, const json::object& o) {
  CustomMessage m;
  m.custom_type = json::string_or(o, "customType");
  if (const auto text = json::find_string(o, "content")) {
    m.content = std::string(*text);
  } else if (const json::array* blocks = json::find_array(o, "content")) {
    m.content = ai::user_blocks_from_json(*blocks);
  }
  m.display = json::bool_or(o, "display");
  if (const json::value* details = json::find(o, "details")) m.details = *details;
  m.timestamp = json::find_integer(o, "timestamp").value_or(0);
  m.extra = ai::unknown_members(o, {"role", "customType", "content", "display", "details", "timestamp"});
  return m;
}

std::vector<ai::MessageRef> project(const CustomMessage& m) {
  if (const auto* text = std::get_if<std::string>(&m.content)) return user_text(*text, m.timestamp);
  std::vector<ai::MessageRef> messages;
  messages.push_back(ai::make_message(ai::Message(ai::UserMessage{m.content, m.timestamp, {}})));
  return messages;
}

}  // namespace tau::coding
