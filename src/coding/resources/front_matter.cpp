#include "coding/resources/front_matter.h"

#include <charconv>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/files.h"
#include "base/utf8.h"

namespace tau::coding {

namespace {

/// YAML 1.2's core schema for plain scalars.
json::value plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  double number = 0;
  const bool looks_numeric = *begin == '-' || *begin == '.' || (*begin >= '0' && *begin <= '9');
  const auto [rest, failed] = std::from_chars(begin, end, number);
  if (looks_numeric && failed == std::errc{} && rest == end) return json::number(number);
  return json::value(text);
}

json::value to_json(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return node.Tag() == "!" ? json::value(node.Scalar()) : plain_scalar(node.Scalar());
    case YAML::NodeType::Sequence: {
      json::array items;
      for (const YAML::Node& item : node)
        items.push_back(to_json(item));
      return items;
    }
    case YAML::NodeType::Map: {
      json::object members;
      for (const auto& member : node) {
        if (member.first.IsScalar()) members[member.first.Scalar()] = to_json(member.second);
      }
      return members;
    }
    default:
      return nullptr;
  }
}

std::string with_unix_line_ends(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else {
      out += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    }
  }
  return out;
}

}  // namespace

std::expected<json::value, Error> yaml_to_json(std::string_view yaml, int first_line) {
  try {
    return to_json(YAML::Load(std::string(yaml)));
  } catch (const YAML::Exception& problem) {
    if (problem.mark.is_null()) return std::unexpected(error(problem.msg));
    return std::unexpected(error(
        fmt::format("{} at line {}, column {}", problem.msg, problem.mark.line + first_line, problem.mark.column + 1)));
  }
}

std::expected<FrontMatter, Error> split_front_matter(std::string_view bytes) {
  const std::string text = with_unix_line_ends(without_byte_order_mark(bytes));
  FrontMatter out;
  const std::size_t end = text.starts_with("---") ? text.find("\n---", 3) : std::string::npos;
  if (end == std::string::npos) {
    out.body = text;
    return out;
  }
  out.present = true;
  out.body = utf8::trim(std::string_view(text).substr(end + 4));
  if (end > 4) {
    // The first line of the YAML is what follows the opening dashes, so its lines count from 1 there.
    const int first_line = text[3] == '\n' ? 2 : 1;
    auto values = yaml_to_json(std::string_view(text).substr(4, end - 3), first_line);  // with its last line end
    if (!values) return std::unexpected(values.error());
    if (values->is_object()) out.values = std::move(values->get_object());
  }
  return out;
}

std::string scalar_text(const json::object& values, std::string_view key) {
  const json::value* v = json::find(values, key);
  if (v == nullptr) return {};
  if (v->is_string()) return std::string(json::view(v->get_string()));
  if (v->is_bool() || json::as_number(*v)) return json::to_text(*v);
  return {};
}

}  // namespace tau::coding
