#include "core/machine_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/text.h"

namespace kf {
namespace {

/// The first line of a small file of /proc or /sys; "" where there is none.
std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<double> number(const std::string& text) {
  std::istringstream in(text);
  double value = 0;
  return in >> value ? std::optional(value) : std::nullopt;  // "max" is none
}

/// The number behind `key` in a file of lines "key value" or "key: value kB".
std::optional<double> entry(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key) && line.size() > key.size() && (line[key.size()] == ' ' || line[key.size()] == ':')) {
      const std::optional<double> value = number(line.substr(key.size() + 1));
      return value && line.ends_with("kB") ? std::optional(*value * 1024) : value;
    }
  }
  return std::nullopt;
}

void take_less(FreeMemory& least, double bytes, const std::string& limit) {
  if (least.limit.empty() || bytes < least.bytes) {
    least = {std::max(0.0, bytes), limit};
  }
}

/// The names that one version of control groups gives its files.
struct GroupFiles {
  const char* most;
  const char* now;
  const char* droppable;  // of memory.stat
};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

/// Every level from `group` up to `mount`: a limit above binds, too.
void take_group(FreeMemory& least, const fs::path& mount, fs::path group, const GroupFiles& files) {
  for (;; group = group.parent_path()) {
    const fs::path at = mount / group.relative_path();
    const std::optional<double> most = number(first_line(at / files.most));
    const std::optional<double> now = number(first_line(at / files.now));
    // Version 1 writes a number near 2^63 for no limit.
    if (most && now && *most < 9e18) {
      take_less(least, *most - *now + entry(at / "memory.stat", files.droppable).value_or(0), format("the control group {}", at));
    }
    if (!group.has_relative_path()) {
      return;
    }
  }
}

/// /proc/self/cgroup has lines "0::/path" (version 2) and "4:memory:/path" (version 1). Inside a container the path may be one of the host;
/// its levels are then missing here and the mount's root is what counts.
void take_groups(FreeMemory& least, const fs::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) {
      continue;
    }
    if (parts[0] == "0" && parts[1].empty()) {
      take_group(least, root / "sys/fs/cgroup", parts[2], kVersion2);
    } else if (("," + parts[1] + ",").find(",memory,") != std::string::npos) {
      take_group(least, root / "sys/fs/cgroup/memory", parts[2], kVersion1);
    }
  }
}

void take_limit(FreeMemory& least, decltype(RLIMIT_AS) which, const fs::path& status, const std::string& used, const char* name) {
  rlimit limit{};
  if (::getrlimit(which, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    take_less(least, static_cast<double>(limit.rlim_cur) - entry(status, used).value_or(0), name);
  }
}

}  // namespace

FreeMemory free_memory(const fs::path& root) {
  FreeMemory least;
  if (const std::optional<double> available = entry(root / "proc/meminfo", "MemAvailable")) {
    take_less(least, *available, "the free memory of the machine");
  }
  take_groups(least, root);
  const fs::path status = root / "proc/self/status";
  take_limit(least, RLIMIT_AS, status, "VmSize", "ulimit -v");
  take_limit(least, RLIMIT_DATA, status, "VmData", "ulimit -d");
  return least;
}

}  // namespace kf
