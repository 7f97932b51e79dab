// .gitignore rules, for the search for skills (CA-121).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tau::coding {

class IgnoreRules {
 public:
  /// The lines of an ignore file in `folder`, a path relative to the root of the search ("" for the root itself).
  void add(std::string_view folder, std::string_view text);

  /// Whether this entry is ignored; its parents are not (the search does not enter ignored folders). Later rules win.
  bool ignores(std::string_view path, bool is_folder) const;

 private:
  struct Rule {
    std::string folder;   // with a trailing slash, or empty
    std::string pattern;  // relative to the folder
    bool negated;
    bool folders_only;
    bool anchored;  // to the folder; else at any depth
  };
  std::vector<Rule> rules_;
};

}  // namespace tau::coding
