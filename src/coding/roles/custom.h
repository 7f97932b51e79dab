// A message of an extension: the model sees its content as a user message, the screen shows it when `display` says so.
#pragma once

#include <optional>
#include <string>

#include "agent/agent_message.h"

namespace tau::coding {

struct CustomMessage {
  static constexpr std::string_view role = "custom";
  static constexpr int version = 1;

  std::string custom_type;
  ai::UserContent content = std::vector<ai::UserBlock>{};
  bool display = true;                 // the screen only: the model sees it either way (PR-4)
  std::optional<json::value> details;  // for the extension; the model never sees it
  ai::Milliseconds timestamp = 0;
  json::object extra;
};

json::object to_json(const CustomMessage& m);
std::expected<CustomMessage, Error> from_json(std::type_identity<CustomMessage>, const json::object& o);
std::vector<ai::MessageRef> project(const CustomMessage& m);

}  // namespace tau::coding
