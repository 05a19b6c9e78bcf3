#include "core/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <thread>

#include "core/control_groups.h"
#include "core/text.h"

namespace kf {
namespace {

/// A whole number that begins `text` is taken off it; -1 where none does.
int take_number(std::string_view& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) {
    return -1;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The first logical processor of the core that `processor` belongs to; itself where that is not told.
int core_of(int processor, const fs::path& root) {
  const fs::path topology = root / format("sys/devices/system/cpu/cpu{}/topology", processor);
  for (const char* const file : {"core_cpus_list", "thread_siblings_list"}) {  // one name for the other since Linux 5.3
    const std::vector<int> siblings = processors_in(first_line(topology / file));
    if (std::find(siblings.begin(), siblings.end(), processor) != siblings.end()) {
      return siblings.front();
    }
  }
  return processor;
}

/// Cores whose time a group gives; 0 for no limit.
double quota_of(const ControlGroup& group) {
  std::istringstream in(group.version == 2
                            ? first_line(group.folder / "cpu.max")
                            : first_line(group.folder / "cpu.cfs_quota_us") + " " + first_line(group.folder / "cpu.cfs_period_us"));
  double most = 0, period = 0;  // "max" and -1 are no limit
  return in >> most >> period && most > 0 && period > 0 ? most / period : 0;
}

}  // namespace

int Cores::logical() const {
  return std::accumulate(physical.begin(), physical.end(), 0,
                         [](int sum, const std::vector<int>& core) { return sum + static_cast<int>(core.size()); });
}

int Cores::threads() const {
  const auto all = static_cast<long>(physical.size());
  return static_cast<int>(std::max(1L, quota > 0 ? std::min(all, std::lround(quota)) : all));
}

Cores own_cores() { return cores_of(allowed_processors()); }

Cores cores_of(const std::vector<int>& processors, const fs::path& root) {
  std::map<int, std::vector<int>> cores;
  for (const int processor : processors) {
    cores[core_of(processor, root)].push_back(processor);
  }
  Cores out;
  for (auto& [first, core] : cores) {
    std::sort(core.begin(), core.end());
    out.physical.push_back(std::move(core));
  }
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const double quota = quota_of(group);
    out.quota = quota > 0 && (out.quota == 0 || quota < out.quota) ? quota : out.quota;
  }
  return out;
}

std::vector<int> allowed_processors() {
  std::vector<int> out;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) {
        out.push_back(i);
      }
    }
    return out;
  }
  out.resize(std::max(1U, std::thread::hardware_concurrency()));  // more processors than the set has places for
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::string processor_list(const std::vector<int>& processors) {
  std::string out;
  for (std::size_t i = 0; i < processors.size();) {
    std::size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) {
      ++last;
    }
    out += (out.empty() ? "" : ",") + std::to_string(processors[i]) + (last > i ? "-" + std::to_string(processors[last]) : "");
    i = last + 1;
  }
  return out;
}

std::vector<int> processors_in(const std::string& list) {
  std::vector<int> out;
  for (std::string_view rest = list; !rest.empty();) {
    const int first = take_number(rest);
    int last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = take_number(rest);
    }
    if (first < 0 || last < first || last - first >= CPU_SETSIZE || !(rest.empty() || rest.starts_with(','))) {
      return {};
    }
    for (int processor = first; processor <= last; ++processor) {
      out.push_back(processor);
    }
    rest.remove_prefix(rest.empty() ? 0 : 1);
  }
  return out;
}

std::vector<std::vector<int>> share_of_cores(const std::vector<std::vector<int>>& all, std::size_t place, std::size_t processes) {
  if (all.size() < processes) {
    return all.empty() ? all : std::vector<std::vector<int>>{all[place % all.size()]};
  }
  const auto at = [&](std::size_t process) { return all.begin() + static_cast<std::ptrdiff_t>(all.size() * process / processes); };
  return {at(place), at(place + 1)};
}

}  // namespace kf
