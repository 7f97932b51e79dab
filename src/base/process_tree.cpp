#include "base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/process.h"

namespace tau {

namespace {

struct Process {
  pid_t pid;
  pid_t parent;
  pid_t group;
  pid_t session;
  char state;
};

/// Bytes of a /proc file; empty when it is gone or not ours to read.
std::string read_proc(pid_t pid, const char* name, std::size_t limit) {
  const int fd = open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text(limit, '\0');
  std::size_t used = 0;
  while (used < limit) {
    const ssize_t n = read(fd, text.data() + used, limit - used);
    if (n <= 0) break;
    used += static_cast<std::size_t>(n);
  }
  close(fd);
  text.resize(used);
  return text;
}

/// "pid (name) state ppid pgrp session …": the name may hold anything, so fields count from the last bracket.
std::optional<Process> read_stat(pid_t pid) {
  const std::string stat = read_proc(pid, "stat", 1024);
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= stat.size()) return std::nullopt;
  Process p{pid, 0, 0, 0, stat[bracket + 2]};
  if (std::sscanf(stat.c_str() + bracket + 3, "%d %d %d", &p.parent, &p.group, &p.session) != 3) return std::nullopt;
  return p;
}

std::vector<Process> all_processes() {
  std::vector<Process> out;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return out;
  while (const dirent* entry = readdir(proc)) {
    pid_t pid = 0;
    const std::string_view name(entry->d_name);
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc() || pid <= 1) continue;
    if (const auto p = read_stat(pid)) out.push_back(*p);
  }
  closedir(proc);
  return out;
}

bool has_marker(pid_t pid, std::string_view marker) {
  const std::string environment = read_proc(pid, "environ", 1 << 20);
  const std::string setting = std::string(kProcessTreeVariable) + "=" + std::string(marker);
  return (environment + '\0').find(setting) != std::string::npos;
}

/// Members of the trees of these roots, or with this marker (or a marker that begins so).
std::vector<Process> members(const std::set<pid_t>& roots, std::string_view marker) {
  const std::vector<Process> all = all_processes();
  std::set<pid_t> found = roots;
  for (bool grew = true; grew;) {  // parents may stand behind their children in the list
    grew = false;
    for (const Process& p : all) {
      if ((found.contains(p.parent) || roots.contains(p.session)) && found.insert(p.pid).second) grew = true;
    }
  }
  std::vector<Process> out;
  for (const Process& p : all) {
    if (p.pid != getpid() && (found.contains(p.pid) || has_marker(p.pid, marker))) out.push_back(p);
  }
  return out;
}

/// What is known of the commands of this program.
struct Registry {
  std::map<std::string, pid_t> trees;  // by marker: the commands that run now
  std::set<pid_t> past_roots;          // sessions of earlier commands
  std::set<pid_t> watched_orphans;

  bool is_root(pid_t pid) const {
    return std::any_of(trees.begin(), trees.end(), [&](const auto& tree) { return tree.second == pid; });
  }
};

std::mutex registry_mutex;
Registry& registry() {
  static Registry known;
  return known;
}

const std::string& program_marker() {
  static const std::string kMarker = fmt::format("{}-{}", getpid(), random_hex(8));
  return kMarker;
}

std::atomic<bool> any_process{false};

}  // namespace

void become_subreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::string new_process_tree_marker() {
  static std::atomic<int> counter{0};
  any_process = true;
  return fmt::format("{}-{}-", program_marker(), ++counter);
}

bool process_tree_lives(pid_t root, std::string_view marker) {
  bool alive = false;
  for (const Process& p : members({root}, marker)) {
    if (p.state != 'Z' && p.state != 'X') {
      alive = true;
    } else if (p.pid != root && p.parent == getpid()) {
      waitpid(p.pid, nullptr, WNOHANG);  // adopted; the root itself is reaped by its run
    }
  }
  return alive;
}

void signal_process_tree(pid_t root, std::string_view marker, int signal) {
  const std::vector<Process> tree = members({root}, marker);
  if (std::any_of(tree.begin(), tree.end(), [&](const Process& p) { return p.group == root; })) kill(-root, signal);
  for (const Process& p : tree) {
    if (p.group != root) kill(p.pid, signal);
  }
}

std::vector<pid_t> take_orphans() {
  std::vector<pid_t> children;
  if (DIR* tasks = opendir("/proc/self/task")) {
    while (const dirent* task = readdir(tasks)) {
      if (task->d_name[0] == '.') continue;
      std::istringstream list(read_proc(getpid(), fmt::format("task/{}/children", task->d_name).c_str(), 1 << 16));
      for (pid_t pid = 0; list >> pid;)
        children.push_back(pid);
    }
    closedir(tasks);
  }
  const std::scoped_lock lock(registry_mutex);
  std::erase_if(children, [](pid_t pid) {
    if (registry().is_root(pid) || registry().watched_orphans.contains(pid)) return true;
    // Other parts of the program may have children of their own.
    const auto process = read_stat(pid);
    const bool of_a_command =
        process && (registry().past_roots.contains(process->session) || has_marker(pid, program_marker() + "-"));
    if (of_a_command) registry().watched_orphans.insert(pid);
    return !of_a_command;
  });
  return children;
}

void release_orphan(pid_t pid) {
  const std::scoped_lock lock(registry_mutex);
  registry().watched_orphans.erase(pid);
}

ProcessTreeEntry::ProcessTreeEntry(pid_t root, std::string marker) : marker_(std::move(marker)) {
  const std::scoped_lock lock(registry_mutex);
  registry().trees.emplace(marker_, root);
  registry().past_roots.insert(root);
}

ProcessTreeEntry::~ProcessTreeEntry() {
  const std::scoped_lock lock(registry_mutex);
  registry().trees.erase(marker_);
}

void end_all_processes() {
  using namespace std::chrono_literals;
  if (!any_process) return;  // nothing was ever started: do not look through /proc on the way out
  std::set<pid_t> roots;
  {
    const std::scoped_lock lock(registry_mutex);
    for (const auto& [marker, root] : registry().trees)
      roots.insert(root);
  }
  // The marker of this program finds the running commands and what earlier ones left in the background.
  const std::string marker = program_marker() + "-";
  const auto end = std::chrono::steady_clock::now() + 600ms;
  const auto kill_at = std::chrono::steady_clock::now() + 200ms;
  int signal = SIGTERM;
  while (std::chrono::steady_clock::now() < end) {
    bool alive = false;
    for (const Process& p : members(roots, marker)) {
      if (p.state == 'Z' || p.state == 'X') continue;
      alive = true;
      if (signal != 0) kill(p.pid, signal);
    }
    if (!alive) return;
    std::this_thread::sleep_for(10ms);
    signal = std::chrono::steady_clock::now() >= kill_at ? SIGKILL : 0;
  }
}

}  // namespace tau
