#include "core/control_groups.h"

#include <fstream>
#include <system_error>

#include "core/text.h"

namespace kf {
namespace {

void add_levels(std::vector<ControlGroup>& out, const fs::path& mount, fs::path group, int version) {
  for (;; group = group.parent_path()) {
    out.push_back({mount / group.relative_path(), version});
    if (!group.has_relative_path()) {
      return;
    }
  }
}

/// Version 1: a folder for each controller, or for those that go together ("cpu,cpuacct"), mostly with links by the names of each.
fs::path mount_of(const fs::path& mounts, const std::string& controller, const std::string& together) {
  std::error_code ignored;
  return fs::exists(mounts / controller, ignored) ? mounts / controller : mounts / together;
}

}  // namespace

std::vector<ControlGroup> control_groups(const std::string& controller, const fs::path& root) {
  std::vector<ControlGroup> out;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");  // lines "0::/path" (version 2) and "4:memory:/path" (version 1)
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) {
      continue;
    }
    if (parts[0] == "0" && parts[1].empty()) {
      add_levels(out, mounts, parts[2], 2);
    } else if (("," + parts[1] + ",").find("," + controller + ",") != std::string::npos) {
      add_levels(out, mount_of(mounts, controller, parts[1]), parts[2], 1);
    }
  }
  return out;
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace kf
