// Layer 2: what a transcript holds (spec AG-1 to AG-5, design "the open slot").
//
// An AgentMessage is a 16-byte handle to an immutable node. A node is either a message of the model layer, or a message
// of an application role, or a message whose role nobody here knows. Copying a transcript copies handles: a snapshot, a
// fork or a context transform costs pointers, not text.
//
// The slot for application roles is open, but not at run time only: a role is one struct together with its policies, and
// a role whose policy is missing does not compile.
//
//   struct Notification {
//     static constexpr std::string_view role = "notification";   // stable, persisted
//     static constexpr int version = 1;
//     std::string text; ai::Milliseconds timestamp;
//   };
//   json::object to_json(const Notification&);                                     // storage
//   std::expected<Notification, Error> from_json(std::type_identity<Notification>, const json::object&);  // + migration
//   std::vector<ai::MessageRef> project(const Notification&);                      // what the model sees: maybe nothing
#pragma once

#include <concepts>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ai/message.h"
#include "base/error.h"
#include "base/json.h"

namespace tau::agent {

/// A role with all its policies. `timestamp` is Unix milliseconds, or nothing for a message that has none.
template <class T>
concept ApplicationMessage = requires(const T& m, const json::object& o) {
  { T::role } -> std::convertible_to<std::string_view>;
  { T::version } -> std::convertible_to<int>;
  { to_json(m) } -> std::same_as<json::object>;
  { from_json(std::type_identity<T>{}, o) } -> std::same_as<std::expected<T, Error>>;
  { project(m) } -> std::same_as<std::vector<ai::MessageRef>>;
};

/// A message whose role no registered type has: kept byte for byte, invisible to the model, shown as a plain card.
struct UnknownMessage {
  json::object source;
};

class AgentMessage {
 public:
  AgentMessage(ai::MessageRef message);  // NOLINT(google-explicit-constructor): a model message is one
  AgentMessage(ai::Message message);     // NOLINT(google-explicit-constructor)
  explicit AgentMessage(UnknownMessage message);

  template <ApplicationMessage T>
  static AgentMessage of(T message);

  std::string_view role() const;

  /// The model-layer message, or null for an application's.
  const ai::Message* standard() const;
  ai::MessageRef standard_ref() const;
  const ai::UserMessage* user() const;
  const ai::AssistantMessage* assistant() const;
  const ai::ToolResultMessage* tool_result() const;

  /// The application message, or null when it is of another role.
  template <ApplicationMessage T>
  const T* as() const;
  const UnknownMessage* unknown() const;

  json::object to_json() const;
  /// What the model sees of it: the message itself, what its role's `project` says, or nothing for an unknown role.
  /// Made once and kept, because the node never changes.
  const std::vector<ai::MessageRef>& projection() const;

  /// Same node.
  friend bool operator==(const AgentMessage& a, const AgentMessage& b) { return a.node_ == b.node_; }

 private:
  struct Policies {
    std::string_view role;
    json::object (*to_json)(const void* message);
    std::vector<ai::MessageRef> (*project)(const void* message);
  };
  struct Node;
  template <class T>
  static const Policies* policies_of();
  AgentMessage(const Policies* policies, std::shared_ptr<const void> message);

  std::shared_ptr<const Node> node_;
};
static_assert(sizeof(std::shared_ptr<const void>) == 16);

template <class T>
const AgentMessage::Policies* AgentMessage::policies_of() {
  static constexpr Policies kPolicies{
      T::role,
      [](const void* message) -> json::object { return to_json_of(*static_cast<const T*>(message)); },
      [](const void* message) -> std::vector<ai::MessageRef> { return project_of(*static_cast<const T*>(message)); }};
  return &kPolicies;
}

}  // namespace tau::agent
