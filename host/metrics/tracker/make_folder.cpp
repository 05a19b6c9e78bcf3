#include "metrics/tracker/make_folder.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace kf {

bool make_folder(const fs::path& folder, const char* setting) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error == std::errc::no_space_on_device || error.value() == EDQUOT) {
    return false;
  }
  KF_CHECK(!error && fs::is_directory(folder, error), Code::other, "cannot make the folder {} ({}): {}", folder, setting,
           error ? error.message() : "something else has this name");
  KF_CHECK(::access(folder.c_str(), W_OK) == 0, Code::other, "cannot write into the folder {} ({}): {}", folder, setting,
           std::generic_category().message(errno));
  return true;
}

}  // namespace kf
