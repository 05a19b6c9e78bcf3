#include "core/machine_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/control_groups.h"
#include "core/text.h"

namespace kf {
namespace {

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

void take_groups(FreeMemory& least, const fs::path& root) {
  for (const ControlGroup& group : control_groups("memory", root)) {
    const GroupFiles& files = group.version == 2 ? kVersion2 : kVersion1;
    const std::optional<double> most = number(first_line(group.folder / files.most));
    const std::optional<double> now = number(first_line(group.folder / files.now));
    // Version 1 writes a number near 2^63 for no limit.
    if (most && now && *most < 9e18) {
      const double droppable = entry(group.folder / "memory.stat", files.droppable).value_or(0);
      take_less(least, *most - *now + droppable, format("the control group {}", group.folder));
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
