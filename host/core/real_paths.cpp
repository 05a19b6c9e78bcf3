#include "core/real_paths.h"

namespace kf {

std::string RealPaths::of(const fs::path& file) {
  if (fs::is_symlink(file) || !file.has_filename() || file.filename() == "." || file.filename() == "..") {
    return fs::canonical(file).string();
  }
  const std::string parent = file.parent_path().string();
  if (!known_ || parent != parent_) {
    real_ = fs::canonical(parent.empty() ? "." : parent);
    parent_ = parent;
    known_ = true;
  }
  return (real_ / file.filename()).string();
}

}  // namespace kf
