#include "core/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace kf {

ScratchFolder::ScratchFolder(const std::string& name, Code code) {
  std::string made = (fs::temp_directory_path() / (name + "-XXXXXX")).string();
  KF_CHECK(::mkdtemp(made.data()) != nullptr, code, "cannot make a folder in {}: {}; TMPDIR names another place", fs::temp_directory_path(),
           std::strerror(errno));
  path_ = made;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace kf
