// The roles of one application: how stored messages become AgentMessages again.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "agent/agent_message.h"

namespace tau::agent {

class RoleSet {
 public:
  /// Only the three standard roles.
  RoleSet() = default;

  /// The standard roles and these. Throws std::logic_error when two have the same name, or one has a standard name: an
  /// error of the program, found when it starts.
  template <ApplicationMessage... T>
  static RoleSet of() {
    RoleSet roles;
    (roles.add<T>(), ...);
    return roles;
  }

  template <ApplicationMessage T>
  void add() {
    add(T::role, [](const json::object& o) -> std::expected<AgentMessage, Error> {
      auto message = from_json(std::type_identity<T>{}, o);
      if (!message) return std::unexpected(std::move(message.error()));
      return AgentMessage::of(*std::move(message));
    });
  }

  bool knows(std::string_view role) const;

  /// The message of a stored object. One whose role is not in the set, or that its role's codec refuses, becomes an
  /// UnknownMessage: nothing is dropped because it was not understood (AG-3, AG-4).
  AgentMessage read(const json::object& o) const;

 private:
  using Codec = std::function<std::expected<AgentMessage, Error>(const json::object&)>;
  void add(std::string_view role, Codec codec);

  std::map<std::string, Codec, std::less<>> codecs_;
};

}  // namespace tau::agent
