// Layer 2: what a transcript holds (AG-1 to AG-5).
//
// An AgentMessage is a 16-byte handle to an immutable node. A node is a message of the model layer, or a message of an
// application role, or a message whose role nobody here knows. Copying a transcript copies handles: a snapshot, a fork
// or a context transform costs pointers, not text; what is derived from a node is remembered on it.
//
// The slot for application roles is open, but not at run time only: a role is one struct together with its policies,
// and a role whose policy is missing does not compile.
//
//   struct Notification {
//     static constexpr std::string_view role = "notification";   // stable: it is in files
//     static constexpr int version = 1;                          // of the stored form
//     std::string text;
//     ai::Milliseconds timestamp;
//   };
//   json::object to_json(const Notification&);
//   std::expected<Notification, Error> from_json(std::type_identity<Notification>, const json::object&);
//   std::vector<ai::MessageRef> project(const Notification&);    // what the model sees: nothing, or messages
#pragma once

#include <concepts>
#include <expected>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ai/message.h"
#include "base/error.h"
#include "base/json.h"

namespace tau::agent {

/// A role with all its policies. `from_json` migrates older forms: the object has "roleVersion" when it was stored by a
/// version other than 1.
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

/// The policies of one role, as the handle needs them.
struct RolePolicies {
  std::string_view role;
  int version;
  json::object (*store)(const void* message);
  std::vector<ai::MessageRef> (*project)(const void* message);
};

namespace detail {

// Outside of AgentMessage, whose own to_json would hide the functions of the role.
template <ApplicationMessage T>
json::object store(const void* message) {
  return to_json(*static_cast<const T*>(message));
}
template <ApplicationMessage T>
std::vector<ai::MessageRef> project_message(const void* message) {
  return project(*static_cast<const T*>(message));
}
template <ApplicationMessage T>
inline constexpr RolePolicies kPolicies{T::role, T::version, &store<T>, &project_message<T>};

}  // namespace detail

class AgentMessage {
 public:
  AgentMessage(ai::MessageRef message);         // NOLINT(google-explicit-constructor): a model message is one
  AgentMessage(ai::UserMessage message);        // NOLINT(google-explicit-constructor)
  AgentMessage(ai::AssistantMessage message);   // NOLINT(google-explicit-constructor)
  AgentMessage(ai::ToolResultMessage message);  // NOLINT(google-explicit-constructor)
  explicit AgentMessage(UnknownMessage message);

  template <ApplicationMessage T>
  static AgentMessage of(T message) {
    return AgentMessage(&detail::kPolicies<T>, std::make_shared<const T>(std::move(message)));
  }

  std::string_view role() const;

  /// The model-layer message; null for any other.
  const ai::Message* standard() const;
  const ai::UserMessage* user() const { return standard_as<ai::UserMessage>(); }
  const ai::AssistantMessage* assistant() const { return standard_as<ai::AssistantMessage>(); }
  const ai::ToolResultMessage* tool_result() const { return standard_as<ai::ToolResultMessage>(); }

  /// The application message; null when it is of another role.
  template <ApplicationMessage T>
  const T* as() const {
    return policies() == &detail::kPolicies<T> ? static_cast<const T*>(application()) : nullptr;
  }
  const UnknownMessage* unknown() const;

  /// The stored form. An application role of a version other than 1 says so in "roleVersion".
  json::object to_json() const;

  /// What the model sees of it: the message itself, what its role's `project` says, or nothing for an unknown role.
  /// Made once, at the first call; thread-safe. Lives as long as the node: later calls, also on copies of this handle,
  /// see the same messages, so that what is derived from those can be remembered too.
  std::span<const ai::MessageRef> projection() const;

  /// The same node, not merely an equal message.
  friend bool operator==(const AgentMessage& a, const AgentMessage& b) { return a.node_ == b.node_; }

 private:
  struct Node;

  AgentMessage(const RolePolicies* policies, std::shared_ptr<const void> message);
  const RolePolicies* policies() const;
  const void* application() const;
  template <class T>
  const T* standard_as() const {
    const ai::Message* message = standard();
    return message != nullptr ? std::get_if<T>(message) : nullptr;
  }

  std::shared_ptr<const Node> node_;
};
static_assert(sizeof(AgentMessage) == 16);

/// The version that an object was stored by (see ApplicationMessage).
int stored_version(const json::object& o);

/// The two-stage conversion's default second stage: the three standard roles, in order; everything else is invisible
/// (PR-11).
std::vector<ai::MessageRef> standard_messages(std::span<const AgentMessage> messages);

}  // namespace tau::agent
