#include "support/reply_stream.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::test {

namespace {

std::vector<std::string> pieces(std::string_view text, std::size_t size) {
  std::vector<std::string> out;
  while (!text.empty()) {
    std::size_t end = std::min(size, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      ++end;
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

std::string stop_of(const Reply& reply) {
  return !reply.stop.empty() ? reply.stop : reply.calls.empty() ? "stop" : "toolUse";
}

class AnthropicStream {
 public:
  std::string write(const Reply& reply, int number) {
    event({{"type", "message_start"},
           {"message",
            {{"id", fmt::format("msg_{}", number)},
             {"type", "message"},
             {"role", "assistant"},
             {"model", "m1"},
             {"content", json::array{}},
             {"stop_reason", nullptr},
             {"usage", {{"input_tokens", 100}, {"output_tokens", 1}}}}}});
    if (!reply.thinking.empty()) {
      block({{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, "thinking_delta", "thinking", reply.thinking,
            reply.chunk, fmt::format("sig-{}", number));
    }
    if (!reply.text.empty()) block({{"type", "text"}, {"text", ""}}, "text_delta", "text", reply.text, reply.chunk, "");
    for (const CallOfReply& call : reply.calls) {
      block({{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", json::object{}}}, "input_json_delta",
            "partial_json", json::to_text(call.arguments), reply.chunk, "");
    }
    const std::string stop = stop_of(reply);
    event({{"type", "message_delta"},
           {"delta",
            {{"stop_reason", stop == "toolUse"  ? "tool_use"
                             : stop == "length" ? "max_tokens"
                                                : "end_turn"}}},
           {"usage", {{"output_tokens", 20}}}});
    event({{"type", "message_stop"}});
    return std::move(out_);
  }

 private:
  void event(const json::object& o) {
    out_ += fmt::format("event: {}\ndata: {}\n\n", json::string_or(o, "type"), json::to_text(o));
  }
  void block(json::object start, const char* delta_type, const char* key, std::string_view text, std::size_t chunk,
             const std::string& signature) {
    event({{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(start)}});
    for (const std::string& piece : pieces(text, chunk)) {
      event({{"type", "content_block_delta"}, {"index", index_}, {"delta", {{"type", delta_type}, {key, piece}}}});
    }
    if (!signature.empty()) {
      event({{"type", "content_block_delta"},
             {"index", index_},
             {"delta", {{"type", "signature_delta"}, {"signature", signature}}}});
    }
    event({{"type", "content_block_stop"}, {"index", index_}});
    ++index_;
  }

  std::string out_;
  int index_ = 0;
};

std::string openai_stream(const Reply& reply, int number) {
  std::string out;
  const auto chunk = [&](json::object delta, const char* finish) {
    json::object o{{"id", fmt::format("chatcmpl-{}", number)},
                   {"object", "chat.completion.chunk"},
                   {"created", 1},
                   {"model", "m1"},
                   {"choices",
                    {{{"index", 0},
                      {"delta", std::move(delta)},
                      {"finish_reason", finish == nullptr ? json::value(nullptr) : json::value(finish)}}}}};
    out += fmt::format("data: {}\n\n", json::to_text(o));
  };
  chunk({{"role", "assistant"}, {"content", ""}}, nullptr);
  for (const std::string& piece : pieces(reply.thinking, reply.chunk))
    chunk({{"reasoning_content", piece}}, nullptr);
  for (const std::string& piece : pieces(reply.text, reply.chunk))
    chunk({{"content", piece}}, nullptr);
  int index = 0;
  for (const CallOfReply& call : reply.calls) {
    const auto call_delta = [&](json::object o) {
      o.emplace("index", index);
      chunk({{"tool_calls", json::array{json::value(std::move(o))}}}, nullptr);
    };
    call_delta({{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", ""}}}});
    for (const std::string& piece : pieces(json::to_text(call.arguments), reply.chunk)) {
      call_delta({{"function", {{"arguments", piece}}}});
    }
    ++index;
  }
  const std::string stop = stop_of(reply);
  chunk({}, stop == "toolUse" ? "tool_calls" : stop.c_str());
  out += "data: {\"id\":\"u\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20}}\n\n";
  out += "data: [DONE]\n\n";
  return out;
}

bool is_responses(const std::string& api) {
  return api.ends_with("-responses");
}

class ResponsesStream {
 public:
  std::string write(const Reply& reply, int number) {
    event("response.created", {{"response", {{"id", fmt::format("resp_{}", number)}}}});
    if (!reply.thinking.empty()) {
      json::object item{{"type", "reasoning"}, {"id", fmt::format("rs_{}", number)}, {"summary", json::array{}}};
      begin(item);
      deltas("response.reasoning_summary_text.delta", reply.thinking, reply.chunk);
      item["summary"] = json::array{json::object{{"type", "summary_text"}, {"text", reply.thinking}}};
      item["encrypted_content"] = fmt::format("enc-{}", number);
      end(std::move(item));
    }
    if (!reply.text.empty()) {
      json::object item{{"type", "message"}, {"id", fmt::format("msg_{}", number)}, {"content", json::array{}}};
      begin(item);
      deltas("response.output_text.delta", reply.text, reply.chunk);
      item["content"] = json::array{json::object{{"type", "output_text"}, {"text", reply.text}}};
      end(std::move(item));
    }
    for (const CallOfReply& call : reply.calls) {
      json::object item{{"type", "function_call"}, {"id", "fc_" + call.id}, {"call_id", call.id}, {"name", call.name}};
      begin(item);
      const std::string arguments = json::to_text(call.arguments);
      deltas("response.function_call_arguments.delta", arguments, reply.chunk);
      item["arguments"] = arguments;
      end(std::move(item));
    }
    json::object response{{"id", fmt::format("resp_{}", number)}, {"status", "completed"}};
    const bool cut = stop_of(reply) == "length";
    if (cut) {
      response["status"] = "incomplete";
      response["incomplete_details"] = json::object{{"reason", "max_output_tokens"}};
    }
    response["usage"] = json::object{{"input_tokens", 100},
                                     {"input_tokens_details", {{"cached_tokens", 40}}},
                                     {"output_tokens", 20},
                                     {"total_tokens", 120}};
    event(cut ? "response.incomplete" : "response.completed", {{"response", std::move(response)}});
    return std::move(out_);
  }

 private:
  void event(std::string_view type, json::object members) {
    json::object o{{"type", type}};
    for (auto& [key, member] : members)
      o.emplace(key, std::move(member));
    out_ += fmt::format("event: {}\ndata: {}\n\n", type, json::to_text(o));
  }
  void begin(const json::object& item) {
    event("response.output_item.added", {{"output_index", index_}, {"item", item}});
  }
  void deltas(std::string_view type, std::string_view text, std::size_t chunk) {
    for (const std::string& piece : pieces(text, chunk))
      event(type, {{"output_index", index_}, {"delta", piece}});
  }
  void end(json::object item) {
    event("response.output_item.done", {{"output_index", index_}, {"item", std::move(item)}});
    ++index_;
  }

  std::string out_;
  int index_ = 0;
};

std::string parts_text(const json::value& content) {
  if (content.is_string()) return std::string(json::view(content.get_string()));
  std::string out;
  if (const json::array* parts = content.if_array()) {
    for (const json::value& part : *parts) {
      if (const json::object* o = part.if_object()) out += json::string_or(*o, "text");
    }
  }
  return out;
}

void anthropic_message(const json::object& message, std::vector<std::string>& out) {
  const std::string role = json::string_or(message, "role");
  const json::value* content = json::find(message, "content");
  if (content == nullptr) return;
  if (content->is_string()) {
    out.push_back(role + ": " + parts_text(*content));
    return;
  }
  for (const json::value& part : content->get_array()) {
    const json::object& o = part.get_object();
    const std::string type = json::string_or(o, "type");
    if (type == "text") {
      out.push_back(role + ": " + json::string_or(o, "text"));
    } else if (type == "thinking") {
      out.push_back("thinking " + json::string_or(o, "signature") + ": " + json::string_or(o, "thinking"));
    } else if (type == "tool_use") {
      out.push_back("call " + json::string_or(o, "id") + " " + json::string_or(o, "name"));
    } else if (type == "tool_result") {
      const json::value* result = json::find(o, "content");
      out.push_back("tool " + json::string_or(o, "tool_use_id") + ": " +
                    (result != nullptr ? parts_text(*result) : ""));
    }
  }
}

void openai_message(const json::object& message, std::vector<std::string>& out) {
  const std::string role = json::string_or(message, "role");
  const json::value* content = json::find(message, "content");
  const std::string text = content != nullptr ? parts_text(*content) : "";
  if (role == "tool") {
    out.push_back("tool " + json::string_or(message, "tool_call_id") + ": " + text);
    return;
  }
  if (role == "system" || role == "developer") return;
  if (!text.empty()) out.push_back(role + ": " + text);
  if (const json::array* calls = json::find_array(message, "tool_calls")) {
    for (const json::value& call : *calls) {
      const json::object& o = call.get_object();
      out.push_back("call " + json::string_or(o, "id") + " " +
                    json::string_or(*json::find_object(o, "function"), "name"));
    }
  }
}

void responses_item(const json::object& item, std::vector<std::string>& out) {
  const std::string type = json::string_or(item, "type");
  const std::string role = json::string_or(item, "role");
  const auto text_of = [&](const char* key) {
    const json::value* value = json::find(item, key);
    return value != nullptr ? parts_text(*value) : std::string();
  };
  if (type == "function_call") {
    out.push_back("call " + json::string_or(item, "call_id") + " " + json::string_or(item, "name"));
  } else if (type == "function_call_output") {
    out.push_back("tool " + json::string_or(item, "call_id") + ": " + text_of("output"));
  } else if (type == "reasoning") {
    out.push_back("thinking " + json::string_or(item, "encrypted_content") + ": " + text_of("summary"));
  } else if (role == "user" || role == "assistant") {
    out.push_back(role + ": " + text_of("content"));
  }
}

}  // namespace

std::string reply_stream(const std::string& api, const Reply& reply, int number) {
  if (api == "anthropic-messages") return AnthropicStream().write(reply, number);
  if (api == "openai-completions") return openai_stream(reply, number);
  if (is_responses(api)) return ResponsesStream().write(reply, number);
  throw std::invalid_argument("no reply stream for " + api);
}

std::string request_path(const std::string& api) {
  if (is_responses(api)) return "/responses";
  return api == "anthropic-messages" ? "/v1/messages?beta=true" : "/chat/completions";
}

std::string models_json(const std::string& api, const std::string& base_url) {
  return json::to_text(
      json::object{{"providers",
                    {{"local",
                      {{"baseUrl", base_url},
                       {"api", api},
                       {"apiKey", "sk-local-test"},
                       {"models", {{{"id", "m1"}, {"contextWindow", 200000}, {"maxTokens", 8000}}}}}}}}});
}

std::vector<std::string> conversation_of(const std::string& api, const json::object& body) {
  std::vector<std::string> out;
  const json::array* messages = json::find_array(body, is_responses(api) ? "input" : "messages");
  if (messages == nullptr) return out;
  for (const json::value& message : *messages) {
    if (api == "anthropic-messages") {
      anthropic_message(message.get_object(), out);
    } else if (is_responses(api)) {
      responses_item(message.get_object(), out);
    } else {
      openai_message(message.get_object(), out);
    }
  }
  return out;
}

}  // namespace tau::test
