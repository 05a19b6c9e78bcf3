#pragma once
// The folder that relative paths start at.

#include <string>

namespace kf {

/// Remembers the working folder: a run's paths are relative to it, and a script can change it under the run (chdir by ffi).
class WorkingFolder {
 public:
  WorkingFolder();
  ~WorkingFolder();
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

  /// Goes back where it was when this was made, with a warning that names `who`, if it is another one now. One call of the system.
  void restore(const std::string& who) const;

 private:
  int folder_ = -1;
  unsigned long device_ = 0;
  unsigned long inode_ = 0;
};

}  // namespace kf
