#pragma once
// Whether a process has a run's folder, without disturbing it.

#include "core/fs.h"

namespace kf::report {

enum class Lock {
  free,
  held,
  unseen,  // the disk has no locks, and its .lock.owner names a process of another machine
};

/// Of `folder`/.lock (run/run_lock.h). A process that begins in this very moment waits until the look is over.
Lock lock_of(const fs::path& folder);

}  // namespace kf::report
