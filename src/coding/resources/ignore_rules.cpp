#include "coding/resources/ignore_rules.h"

#include <algorithm>

#include "coding/config/glob.h"

namespace tau::coding {

void IgnoreRules::add(std::string_view folder, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (line.ends_with(' ') && !line.ends_with("\\ "))
      line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    Rule rule{};
    rule.folder = folder.empty() ? "" : std::string(folder) + "/";
    if (line.starts_with('!')) {
      rule.negated = true;
      line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
      rule.folders_only = true;
      line.remove_suffix(1);
    }
    rule.anchored = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) line.remove_prefix(1);
    if (line.empty()) continue;
    rule.pattern = line;
    rules_.push_back(std::move(rule));
  }
}

bool IgnoreRules::ignores(std::string_view path, bool is_folder) const {
  constexpr GlobOptions kOptions{.wildcards_match_dot = true, .braces = false};
  const auto last = std::find_if(rules_.rbegin(), rules_.rend(), [&](const Rule& rule) {
    if (rule.folders_only && !is_folder) return false;
    if (!path.starts_with(rule.folder)) return false;
    std::string_view inside = path.substr(rule.folder.size());
    if (!rule.anchored) inside = inside.substr(inside.rfind('/') + 1);
    return glob_matches(rule.pattern, inside, kOptions);
  });
  return last != rules_.rend() && !last->negated;
}

}  // namespace tau::coding
