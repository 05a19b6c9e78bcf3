#pragma once
// One builder of a cache at a time, over processes and machines that share a file system with flock.

#include <string>

#include "core/fs.h"

namespace kf::cache {

class FileLock {
 public:
  /// Waits until no other process holds the lock, and says so with `busy` when it has to. Throws Code::data.
  FileLock(const fs::path& file, const std::string& busy);
  /// Whether it was free at once; else it is not held.
  static bool is_free(const fs::path& file);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  void hold(const fs::path& file, const std::string& busy);

  int fd_ = -1;
};

/// Whether the open file is still the one at `path`, neither removed nor replaced.
bool is_file(int fd, const fs::path& path);

}  // namespace kf::cache
