#pragma once
// fsync of many files at once.

#include "core/fs.h"

namespace kf {

/// While one exists, what this process is to make durable (write_file_atomic, sync_path, DurableFile) waits for `flush`, which does it for
/// all files side by side: a disk takes many in the time of one. Names are given to files in the same order as ever, so a process that is
/// killed leaves what it would have left without this. Where the machine fails, what came since the last flush may be missing, or empty
/// under its name: before something gets a name that promises it to be whole (a checkpoint's folder), its writer calls `flush`. Of the
/// whole process, any thread; at most one at a time.
class GroupSync {
 public:
  GroupSync();
  /// Flushes, with a warning where that fails.
  ~GroupSync();
  GroupSync(const GroupSync&) = delete;
  GroupSync& operator=(const GroupSync&) = delete;

  /// Everything that waits is durable behind this; nothing happens where none exists. Throws Code::other naming what could not be.
  static void flush();
  /// Takes a file or folder, to be made durable later; false where none exists: the caller does it itself.
  static bool takes(const fs::path& path);
  /// A folder has another name; what waits in it is found under that.
  static void moved(const fs::path& from, const fs::path& to);
};

}  // namespace kf
