#include "agent/agent_message.h"

#include <mutex>
#include <utility>
#include <variant>

namespace tau::agent {

struct AgentMessage::Node {
  struct Application {
    const RolePolicies* policies;
    std::shared_ptr<const void> message;
  };
  std::variant<ai::MessageRef, Application, UnknownMessage> content;
  mutable std::once_flag projected;
  mutable std::vector<ai::MessageRef> projection;

  explicit Node(decltype(content) c) : content(std::move(c)) {}
};

AgentMessage::AgentMessage(ai::MessageRef message) : node_(std::make_shared<const Node>(std::move(message))) {}
AgentMessage::AgentMessage(ai::UserMessage message) : AgentMessage(ai::make_message(std::move(message))) {}
AgentMessage::AgentMessage(ai::AssistantMessage message) : AgentMessage(ai::make_message(std::move(message))) {}
AgentMessage::AgentMessage(ai::ToolResultMessage message) : AgentMessage(ai::make_message(std::move(message))) {}
AgentMessage::AgentMessage(UnknownMessage message) : node_(std::make_shared<const Node>(std::move(message))) {}
AgentMessage::AgentMessage(const RolePolicies* policies, std::shared_ptr<const void> message)
    : node_(std::make_shared<const Node>(Node::Application{policies, std::move(message)})) {}

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

const std::vector<ai::MessageRef>& AgentMessage::projection() const {
  std::call_once(node_->projected, [this] {
    if (const auto* message = std::get_if<ai::MessageRef>(&node_->content)) {
      node_->projection.push_back(*message);
    } else if (const RolePolicies* p = policies()) {
      node_->projection = p->project(application());
    }
  });
  return node_->projection;
}

int stored_version(const json::object& o) {
  return static_cast<int>(json::find_integer(o, "roleVersion").value_or(1));
}

std::vector<ai::MessageRef> standard_messages(const std::vector<AgentMessage>& messages) {
  std::vector<ai::MessageRef> out;
  out.reserve(messages.size());
  for (const AgentMessage& message : messages) {
    if (message.standard() != nullptr) out.push_back(message.projection().front());
  }
  return out;
}

}  // namespace tau::agent
