#include "core/real_paths.h"

#include "core/text.h"

namespace kf {

std::string RealPaths::of(const fs::path& file) {
  if (fs::is_symlink(file) || !file.has_filename() || file.filename() == "." || file.filename() == "..") {
    std::error_code error;
    const fs::path real = fs::canonical(file, error);
    return (error ? fs::absolute(file) : real).string();  // a link to nothing is itself
  }
  const std::string parent = file.parent_path().string();
  if (!known_ || parent != parent_) {
    real_ = fs::canonical(parent.empty() ? "." : parent);
    parent_ = parent;
    known_ = true;
  }
  return (real_ / file.filename()).string();
}

std::string broken_link_fault(const fs::path& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);  // `error`: the reason, where it is another than a missing file
  std::error_code ignored;
  const fs::path target = fs::read_symlink(path, ignored);
  return format("{} is a link to {}, which {}", path, target,
                error   ? "cannot be followed: " + error.message()
                : there ? "is there again"
                        : "is not there");
}

}  // namespace kf
