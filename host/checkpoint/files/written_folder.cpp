#include "checkpoint/files/written_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "core/error.h"

namespace kf {
namespace {

bool is_mounted_on(const fs::path& folder) {
  struct statx there {
  }, around{};
  if (::statx(AT_FDCWD, folder.c_str(), 0, STATX_INO, &there) != 0) {
    return false;
  }
  if ((there.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    return (there.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }
  return ::statx(AT_FDCWD, (folder / "..").c_str(), 0, STATX_INO, &around) == 0 &&  // of an older system
         (around.stx_dev_major != there.stx_dev_major || around.stx_dev_minor != there.stx_dev_minor);
}

bool has_to_stay(const fs::path& place) {
  std::error_code error;
  if (!fs::is_directory(place, error)) {
    return false;
  }
  return is_mounted_on(place) || fs::equivalent(place, fs::current_path(error), error) || ::access(place.parent_path().c_str(), W_OK) != 0;
}

}  // namespace

fs::path folder_named(const fs::path& asked) {
  KF_CHECK(!asked.empty(), Code::config, "a folder was named \"\"; `.` is the current one");
  std::error_code error;
  fs::path folder = fs::weakly_canonical(asked, error);
  folder = error ? fs::absolute(asked).lexically_normal() : fs::absolute(folder);
  return folder.has_filename() ? folder : folder.parent_path();
}

WrittenFolder::WrittenFolder(fs::path place, bool stays)
    : place_(std::move(place)), stays_(stays || has_to_stay(place_)), pending_(stays_ ? place_ / kInside : place_) {
  if (stays_) {
    remove_abandoned(place_, kInside);
  }
}

void WrittenFolder::commit(std::string_view last, const std::function<void()>& between) {
  if (!stays_) {
    pending_.commit();
    return;
  }
  std::vector<fs::path> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path())) {
    const fs::path name = entry.path().filename();
    // A folder that is there already is what was carried from it.
    if (name != last && !(fs::is_directory(entry.symlink_status()) && fs::exists(fs::symlink_status(place_ / name)))) {
      names.push_back(name);
    }
  }
  for (const fs::path& name : names) {
    fs::rename(path() / name, place_ / name);
  }
  if (between) {
    between();
  }
  fs::rename(path() / last, place_ / last);
  sync_path(place_);
}

}  // namespace kf
