// Finding and ending everything that a command started, also what left its process group (FF-55, FF-63).
//
// Three ways to find a process: it is in the group of the command; it descends from the command (this program adopts
// orphans, so parents stay traceable); it carries the marker of the command in its environment, which survives setsid
// and a double fork.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace tau {

inline constexpr std::string_view kProcessTreeVariable = "TAU_PROCESS_TREE";

/// Orphans of children become ours from now on (PR_SET_CHILD_SUBREAPER).
void become_subreaper();

/// A value for kProcessTreeVariable that no other command has.
std::string new_process_tree_marker();

/// Whether a process of the tree is alive. Reaps those that have ended and are ours.
bool process_tree_lives(pid_t root, std::string_view marker);
/// Each process of the tree gets the signal once, the group of the root in one go.
void signal_process_tree(pid_t root, std::string_view marker, int signal);

/// While it lives, end_all_processes knows the tree.
class ProcessTreeEntry {
 public:
  ProcessTreeEntry(pid_t root, std::string marker);
  ~ProcessTreeEntry();
  ProcessTreeEntry(const ProcessTreeEntry&) = delete;
  ProcessTreeEntry& operator=(const ProcessTreeEntry&) = delete;

 private:
  std::string marker_;
};

}  // namespace tau
