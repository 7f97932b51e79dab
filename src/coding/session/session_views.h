// Who sees what of a path: disk, screen and model, each with the rule that decides (design.md: three readers, IV-5).
//
// No boolean is shared by the three. This is the place where all of them are asked at once, so that a person can see
// why something is not where it was expected.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "coding/session/session.h"

namespace tau::coding {

struct EntryView {
  EntryNumber number = 0;
  std::string_view screen_rule;  // why it is on the screen or not, in a few words and with the number of the rule
  bool on_screen = false;
  bool for_model = false;
  std::string_view model_rule;
  double tokens = 0;  // estimated, of what the model is sent; 0 when it is sent nothing
  std::string text;   // the beginning of what it says, on one line
};

struct PathViews {
  std::vector<EntryView> entries;  // of the path, root first; every one of them is on disk
  SessionContext context;          // what the path says, as the agent would take it up
  double tokens = 0;               // of all entries
};

/// Of the path to the leaf, or to the entry `leaf_id`. Decodes the whole path.
std::expected<PathViews, Error> views_of(const Session& session, const std::optional<std::string>& leaf_id);

/// What an entry says, for lists: "user: Count the jars", at most `length` code points, on one line.
std::string entry_text(const Entry& entry, std::size_t length);

}  // namespace tau::coding
