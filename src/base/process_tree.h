// Finding and ending everything that a command started, also what left its process group (FF-55, FF-63).
//
// Three ways to find a process: it is in the group of the command; it descends from the command (this program adopts
// orphans, so parents stay traceable); it carries the marker of the command in its environment, which survives setsid
// and a double fork.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace tau {

inline constexpr std::string_view kProcessTreeVariable = "TAU_PROCESS_TREE";

/// Orphans of children become ours from now on (PR_SET_CHILD_SUBREAPER).
void become_subreaper();

/// A value for kProcessTreeVariable that no other command has.
std::string new_process_tree_marker();

/// Whether a process of the tree is alive. Reaps those that have ended and are ours.
bool process_tree_lives(pid_t root, std::string_view marker);
/// Each process of the tree gets the signal once. The group of the root gets it in one system call, so that a shell
/// never sees its command die before it has the signal itself and starts the next one (FF-64).
void signal_process_tree(pid_t root, std::string_view marker, int signal);

/// Children of ours that a command left behind and nobody watches yet. The caller reaps them and then releases them.
std::vector<pid_t> take_orphans();
void release_orphan(pid_t pid);

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
