#pragma once
// A folder for what must not stay.

#include <string>

#include "core/error.h"
#include "core/fs.h"

namespace kf {

/// A new folder of its own among the system's temporary ones (TMPDIR), gone with all that it holds when this goes. Throws `code` where
/// none can be made.
class ScratchFolder {
 public:
  ScratchFolder(const std::string& name, Code code);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace kf
