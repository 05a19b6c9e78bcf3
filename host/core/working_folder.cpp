#include "core/working_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/log.h"

namespace kf {

WorkingFolder::WorkingFolder() : folder_(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  struct stat status {};
  if (folder_ >= 0 && ::fstat(folder_, &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

WorkingFolder::~WorkingFolder() {
  if (folder_ >= 0) {
    ::close(folder_);
  }
}

void WorkingFolder::restore(const std::string& who) const {
  struct stat status {};
  if (folder_ < 0 || (::stat(".", &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)) {
    return;
  }
  std::error_code ignored;
  const std::filesystem::path now = std::filesystem::current_path(ignored);
  KF_CHECK(::fchdir(folder_) == 0, Code::script, "{} changed the working folder to {}, and there is no way back: {}", who, now,
           std::strerror(errno));
  log::warn("{} changed the working folder to {}; the run's paths start at {}, which is the working folder again", who, now,
            std::filesystem::current_path(ignored));
}

}  // namespace kf
