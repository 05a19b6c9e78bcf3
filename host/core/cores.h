#pragma once
// The processor's cores that this process may compute on.

#include <string>
#include <vector>

#include "core/fs.h"

namespace kf {

struct Cores {
  /// Of each physical core the logical processors that this process may run on, ascending; by the first of them.
  std::vector<std::vector<int>> physical;
  double quota = 0;  ///< cores whose time control groups give; 0: no limit

  int logical() const;
  /// As many threads as computing gains from: one a physical core, since the siblings of a core share what multiplies, and no more than
  /// there is time for. At least 1.
  int threads() const;
};

/// By the affinity mask, the siblings in /sys/devices/system/cpu and the control groups (v2's cpu.max, v1's cpu.cfs_quota_us; every level).
Cores own_cores();
/// The same for a mask of these logical processors, below `root`.
Cores cores_of(const std::vector<int>& processors, const fs::path& root = "/");

/// The logical processors of this thread's affinity mask, ascending.
std::vector<int> allowed_processors();
/// "0-3,8" as the kernel writes sets of processors, and back. What is not written so gives {}.
std::string processor_list(const std::vector<int>& processors);
std::vector<int> processors_in(const std::string& list);

/// The physical cores of process `place` of `processes` with the same ones, so that none has two of them as long as there are enough.
std::vector<std::vector<int>> share_of_cores(const std::vector<std::vector<int>>& all, std::size_t place, std::size_t processes);

}  // namespace kf
