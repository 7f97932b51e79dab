#include "base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
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
std::vector<Process> all_processes() {
  std::vector<Process> out;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return out;
  while (const dirent* entry = readdir(proc)) {
    pid_t pid = 0;
    const std::string_view name(entry->d_name);
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc() || pid <= 1) continue;
    const std::string stat = read_proc(pid, "stat", 1024);
    const std::size_t bracket = stat.rfind(')');
    if (bracket == std::string::npos || bracket + 2 >= stat.size()) continue;
    Process p{pid, 0, 0, 0, stat[bracket + 2]};
    if (std::sscanf(stat.c_str() + bracket + 3, "%d %d %d", &p.parent, &p.group, &p.session) == 3) out.push_back(p);
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

std::mutex registry_mutex;
std::map<std::string, pid_t>& registry() {
  static std::map<std::string, pid_t> trees;
  return trees;
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
  for (const Process& p : members({root}, marker))
    kill(p.pid, signal);
}

ProcessTreeEntry::ProcessTreeEntry(pid_t root, std::string marker) : marker_(std::move(marker)) {
  const std::scoped_lock lock(registry_mutex);
  registry().emplace(marker_, root);
}

ProcessTreeEntry::~ProcessTreeEntry() {
  const std::scoped_lock lock(registry_mutex);
  registry().erase(marker_);
}

void end_all_processes() {
  using namespace std::chrono_literals;
  if (!any_process) return;  // nothing was ever started: do not look through /proc on the way out
  std::set<pid_t> roots;
  {
    const std::scoped_lock lock(registry_mutex);
    for (const auto& [marker, root] : registry())
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
