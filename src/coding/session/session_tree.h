// The whole of a session, all branches: for pickers and lists (SES-75, SES-79).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coding/session/entry_index.h"

namespace tau::coding {

/// Flat, because a conversation is a chain of thousands of nodes: nested nodes would be destroyed one inside the other.
struct SessionTree {
  std::vector<EntryNumber> roots;                  // in file order
  std::vector<std::vector<EntryNumber>> children;  // by number; oldest first
};

/// Of records with one id the last one stands for all, in the place of each (SES-75), unless that would close a ring. A
/// record whose parent is unknown is a root, and so is the first one of a ring of parents (SES-74, FF-26): what is in
/// the file can be reached. A walk over the children ends; it may meet a record with a repeated id more than once.
SessionTree tree_of(const EntryIndex& index);

struct Label {
  std::string text;
  std::string timestamp;  // of the record that set it
};
struct Labels {
  std::map<std::string, Label, std::less<>> by_target;
  std::vector<std::string> order;  // targets in the order in which their present label was first set
};

/// Labels of the whole file, any branch; the last one of a target wins, an empty one clears it.
Labels labels_of(const EntryIndex& index);

/// The last name given on any branch, trimmed; nothing when it is empty (SES-79c).
std::optional<std::string> name_of(const EntryIndex& index);

}  // namespace tau::coding
