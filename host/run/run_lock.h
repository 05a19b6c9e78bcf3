#pragma once
// One process a run folder: two at once would write over each other's metrics and checkpoints.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/descriptor.h"
#include "core/fs.h"

namespace kf {

/// Which file or folder a name stands for: device and inode. Nothing where the name leads nowhere.
using FileId = std::pair<std::uint64_t, std::uint64_t>;
std::optional<FileId> file_id(const fs::path& path);

/// Holds `folder`/.lock for as long as it lives; the system lets go of it when the process dies. Where the file system has no locks (some
/// NFS and FUSE), a file .lock.owner that names this process keeps others out: that of a process that has died on this machine is taken
/// over, that of another machine must be removed by hand. Throws Code::other when another process has the folder.
class RunLock {
 public:
  explicit RunLock(const fs::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Whether the locked file is still the one that the folder holds under its name.
  bool holds() const;

 private:
  void claim_owner(const std::string& reason);

  fs::path file_;
  Descriptor fd_;
  bool owner_ = false;  // .lock.owner is ours
};

}  // namespace kf
