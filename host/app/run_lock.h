#pragma once
// One process a run folder: two at once would write over each other's metrics and checkpoints.

#include "core/fs.h"

namespace kf {

/// Holds `folder`/.lock for as long as it lives; the system lets go of it when the process dies. Throws Code::other when another has it.
class RunLock {
 public:
  explicit RunLock(const fs::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_;
};

}  // namespace kf
