#pragma once
// Who works on a trial, so that a trial whose worker died is found: on the same machine at once, on another by its heartbeat.

#include <sys/types.h>

#include <string>

#include "config/tree/node.h"

namespace kf::sweep {

/// A process, known again even when its number is used for another one later.
struct ProcessId {
  pid_t pid = 0;
  std::string started;  // the kernel's clock tick of its start

  static ProcessId of(pid_t pid);
  bool alive() const;
};

/// This process, or the one that `node` (of an earlier to_node) describes.
struct Worker {
  std::string machine;  // host, boot, and the set of process numbers that it sees
  ProcessId process;

  static Worker self();
  static Worker from_node(const config::Node& node);
  config::Node to_node() const;
  bool on_this_machine() const;
};

}  // namespace kf::sweep
