#include "ai/grammar_tool.h"

#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tau::ai {

namespace {

/// A string literal's inside.
std::string escaped(std::string_view text) {
  std::string literal;
  json::write(literal, text);
  return literal.substr(1, literal.size() - 2);
}

}  // namespace

std::expected<std::optional<Grammar>, std::string> grammar_of(const Tool& tool, bool api_supports_grammars) {
  const json::object* sampling = tool.constrained_sampling ? tool.constrained_sampling->if_object() : nullptr;
  if (sampling == nullptr || json::find_string(*sampling, "type") != "grammar" || !api_supports_grammars) {
    return std::nullopt;
  }
  const auto refuse = [&](std::string_view reason) {
    return std::unexpected(fmt::format("Tool \"{}\" cannot be sampled by a grammar: {}.", tool.name, reason));
  };
  const json::object* variants = json::find_object(*sampling, "variants");
  Grammar grammar;
  for (const auto& [key, syntax] : {std::pair{"openai_lark", "lark"}, std::pair{"openai_regex", "regex"}}) {
    const auto text = variants != nullptr ? json::find_string(*variants, key) : std::nullopt;
    if (!text || utf8::is_blank(*text)) continue;
    grammar.syntax = syntax;
    grammar.definition = std::string(*text);
    break;
  }
  if (grammar.syntax.empty()) return refuse("it has no definition that the API understands");

  const json::array* required = json::find_array(tool.parameters, "required");
  if (json::find_string(tool.parameters, "type") != "object" || required == nullptr || required->size() != 1 ||
      !required->front().is_string()) {
    return refuse("it must take an object with exactly one required property");
  }
  grammar.property = std::string(json::view(required->front().get_string()));
  const json::object* properties = json::find_object(tool.parameters, "properties");
  const json::object* property = properties != nullptr ? json::find_object(*properties, grammar.property) : nullptr;
  if (property == nullptr || json::find_string(*property, "type") != "string") {
    return refuse(fmt::format("its property {} must be of type string", grammar.property));
  }
  return grammar;
}

std::expected<std::string_view, std::string> grammar_input(const ToolCall& call, std::string_view property) {
  const json::object* arguments = call.arguments.if_object();
  const auto text = arguments != nullptr ? json::find_string(*arguments, property) : std::nullopt;
  if (text) return *text;
  return std::unexpected(
      fmt::format("Grammar tool call \"{}\" requires argument \"{}\" to be a string.", call.name, property));
}

void GrammarArguments::open(std::string& out) {
  if (std::exchange(opened_, true)) return;
  out += '{';
  json::write(out, property_);
  out += ":\"";
}

std::string GrammarArguments::append(std::string_view text) {
  std::string out;
  if (text.empty()) return out;
  open(out);
  out += escaped(text);
  utf8::append_wtf8(text_, text);
  return out;
}

std::expected<std::string, std::string> GrammarArguments::replace(std::string_view whole_text) {
  if (!whole_text.starts_with(text_)) {
    return std::unexpected(fmt::format("the text of grammar argument \"{}\" changed while it was sent", property_));
  }
  return append(whole_text.substr(text_.size()));
}

std::string GrammarArguments::close() {
  std::string out;
  open(out);
  out += "\"}";
  return out;
}

}  // namespace tau::ai
