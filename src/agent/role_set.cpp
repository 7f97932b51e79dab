#include "agent/role_set.h"

namespace tau::agent {

namespace {

bool is_standard(std::string_view role) {
  return role == "user" || role == "assistant" || role == "toolResult";
}

}  // namespace

void RoleSet::add(std::string_view role, Codec codec) {
  if (knows(role)) throw std::logic_error("the role \"" + std::string(role) + "\" is registered twice");
  codecs_.emplace(role, std::move(codec));
}

bool RoleSet::knows(std::string_view role) const {
  return is_standard(role) || codecs_.contains(role);
}

AgentMessage RoleSet::read(const json::object& o) const {
  const std::string_view role = json::find_string(o, "role").value_or("");
  if (is_standard(role)) {
    auto message = ai::message_from_json(o);
    if (message) return AgentMessage(std::make_shared<const ai::Message>(*std::move(message)));
  } else if (const auto codec = codecs_.find(role); codec != codecs_.end()) {
    auto message = codec->second(o);
    if (message) return *std::move(message);
  }
  return AgentMessage(UnknownMessage{o});
}

}  // namespace tau::agent
