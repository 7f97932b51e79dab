#include "coding/config/config_value.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include <fmt/format.h>

#include "base/process.h"
#include "base/utf8.h"

namespace tau::coding {

namespace {

constexpr std::chrono::seconds kCommandLimit{10};

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool continues_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

std::size_t name_length(std::string_view text) {
  if (text.empty() || !starts_name(text[0])) return 0;
  std::size_t n = 1;
  while (n < text.size() && continues_name(text[n]))
    ++n;
  return n;
}

/// Cuts a template into literal text and variables.
void walk(std::string_view value, const std::function<void(std::string_view)>& on_text,
          const std::function<void(std::string_view)>& on_variable) {
  while (!value.empty()) {
    const std::size_t dollar = value.find('$');
    on_text(value.substr(0, dollar));
    if (dollar == std::string_view::npos) return;
    value.remove_prefix(dollar);
    std::size_t taken = 1;
    if (value.size() > 1 && (value[1] == '$' || value[1] == '!')) {
      on_text(value.substr(1, 1));
      taken = 2;
    } else if (value.size() > 1 && value[1] == '{') {
      const std::size_t close = value.find('}');
      const std::string_view name = close == std::string_view::npos ? "" : value.substr(2, close - 2);
      if (!name.empty() && name_length(name) == name.size()) {
        on_variable(name);
        taken = close + 1;
      } else {
        on_text(value.substr(0, 1));  // not a name, or not closed: text
      }
    } else if (const std::size_t length = name_length(value.substr(1)); length > 0) {
      on_variable(value.substr(1, length));
      taken = 1 + length;
    } else {
      on_text(value.substr(0, 1));
    }
    value.remove_prefix(taken);
  }
}

}  // namespace

bool is_command(std::string_view value) {
  return value.starts_with('!');
}

std::vector<std::string> variables_of(std::string_view value) {
  std::vector<std::string> names;
  if (is_command(value)) return names;
  walk(
      value, [](std::string_view) {},
      [&](std::string_view name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
      });
  return names;
}

bool is_available(std::string_view value, const ai::Environment& environment) {
  return is_command(value) || expand_template(value, environment).has_value();
}

std::expected<std::string, Error> expand_template(std::string_view value, const ai::Environment& environment) {
  if (is_command(value)) return std::unexpected(error("a command has to be run"));
  std::string out;
  std::vector<std::string> missing;
  walk(
      value, [&](std::string_view text) { out += text; },
      [&](std::string_view name) {
        const auto found = environment(name);
        if (found && !found->empty()) {
          out += *found;
        } else if (std::find(missing.begin(), missing.end(), name) == missing.end()) {
          missing.emplace_back(name);
        }
      });
  if (missing.empty()) return out;
  return std::unexpected(error(fmt::format("environment variable{} {} {} not set", missing.size() > 1 ? "s" : "",
                                           fmt::join(missing, ", "), missing.size() > 1 ? "are" : "is")));
}

asio::awaitable<std::expected<std::string, Error>> resolve_value(std::string value, ai::Environment environment) {
  if (!is_command(value)) co_return expand_template(value, environment);
  ProcessOptions options;
  // The redirection comes first, so that the shell's own complaints are dropped too.
  options.argv = {"sh", "-c", "exec 2>/dev/null\n" + value.substr(1)};
  options.timeout = kCommandLimit;
  std::string output;
  const auto collect = [&output](std::string_view bytes) { output += bytes; };
  const auto ended = co_await run_process(std::move(options), collect, std::stop_token{});
  if (!ended) co_return std::unexpected(error("the command that prints it cannot be run: " + ended.error().message));
  if (ended->timed_out) {
    co_return std::unexpected(
        error(fmt::format("the command that prints it did not end within {} s", kCommandLimit.count())));
  }
  if (ended->code != 0) {
    co_return std::unexpected(error(fmt::format("the command that prints it failed (exit code {})", ended->code)));
  }
  const std::string_view trimmed = utf8::trim(output);
  if (trimmed.empty()) co_return std::unexpected(error("the command that prints it printed nothing"));
  co_return std::string(trimmed);
}

}  // namespace tau::coding
