#include "agent/agent_message.h"

#include <mutex>
#include <utility>
#include <variant>

namespace tau::agent {

struct AgentMessage::Node {
  struct Application {
    const RolePolicies* policies;
    std::shared_ptr<const void> message;
    mutable std::once_flag projected;
    mutable std::vector<ai::MessageRef> projection;

    Application(const RolePolicies* p, std::shared_ptr<const void> m) : policies(p), message(std::move(m)) {}
  };
  std::variant<ai::MessageRef, Application, UnknownMessage> content;

  template <class... Arguments>
  explicit Node(Arguments&&... arguments) : content(std::forward<Arguments>(arguments)...) {}
};

AgentMessage::AgentMessage(ai::MessageRef message)
    : node_(std::make_shared<const Node>(std::in_place_type<ai::MessageRef>, std::move(message))) {}
AgentMessage::AgentMessage(ai::UserMessage message) : AgentMessage(ai::make_message(std::move(message))) {}
AgentMessage::AgentMessage(ai::AssistantMessage message) : AgentMessage(ai::make_message(std::move(message))) {}
AgentMessage::AgentMessage(ai::ToolResultMessage message) : AgentMessage(ai::make_message(std::move(message))) {}
AgentMessage::AgentMessage(UnknownMessage message)
    : node_(std::make_shared<const Node>(std::in_place_type<UnknownMessage>, std::move(message))) {}
AgentMessage::AgentMessage(const RolePolicies* policies, std::shared_ptr<const void> message)
    : node_(std::make_shared<const Node>(std::in_place_type<Node::Application>, policies, std::move(message))) {}

std::string_view AgentMessage::role() const {
  if (const ai::Message* message = standard()) return ai::role_of(*message);
  if (const RolePolicies* p = policies()) return p->role;
  return json::find_string(unknown()->source, "role").value_or("");
}

const ai::Message* AgentMessage::standard() const {
  const auto* message = std::get_if<ai::MessageRef>(&node_->content);
  return message != nullptr ? message->get() : nullptr;
}

const RolePolicies* AgentMessage::policies() const {
  const auto* application = std::get_if<Node::Application>(&node_->content);
  return application != nullptr ? application->policies : nullptr;
}

const void* AgentMessage::application() const {
  return std::get<Node::Application>(node_->content).message.get();
}

const UnknownMessage* AgentMessage::unknown() const {
  return std::get_if<UnknownMessage>(&node_->content);
}

json::object AgentMessage::to_json() const {
  if (const ai::Message* message = standard()) return ai::to_json(*message);
  const RolePolicies* p = policies();
  if (p == nullptr) return unknown()->source;
  json::object o = p->store(application());
  if (p->version != 1) o["roleVersion"] = p->version;
  return o;
}

std::span<const ai::MessageRef> AgentMessage::projection() const {
  if (const auto* message = std::get_if<ai::MessageRef>(&node_->content)) return {message, 1};
  const auto* application = std::get_if<Node::Application>(&node_->content);
  if (application == nullptr) return {};
  std::call_once(application->projected, [application] {
    application->projection = application->policies->project(application->message.get());
  });
  return application->projection;
}

int stored_version(const json::object& o) {
  return static_cast<int>(json::find_integer(o, "roleVersion").value_or(1));
}

std::vector<ai::MessageRef> standard_messages(std::span<const AgentMessage> messages) {
  std::vector<ai::MessageRef> out;
  out.reserve(messages.size());
  for (const AgentMessage& message : messages) {
    if (message.standard() != nullptr) out.push_back(message.projection().front());
  }
  return out;
}

}  // namespace tau::agent
