#pragma once
// Folders that appear and disappear whole, whatever kills the process in between.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/fs.h"

namespace kf {

/// N of a folder named step_N; nothing for any other name.
std::optional<std::int64_t> step_of(const std::string& name);

/// Why a save cannot have this name, which becomes a folder beside the step_N; "" where it can.
std::string save_name_problem(const std::string& name);

/// A folder under a temporary name beside its final one, `.NAME.tmp-PID`; removed unless it was put in place.
class PendingFolder {
 public:
  explicit PendingFolder(fs::path target);
  ~PendingFolder();
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  const fs::path& path() const { return path_; }
  /// Makes it durable and gives it its name, in one move even where a folder of that name exists; that one is removed then.
  void commit();

 private:
  fs::path target_;
  fs::path path_;
};
/// Renames, so that no half of it is ever found under its name, and removes.
void remove_folder(const fs::path& folder);
/// Removes what killed processes left below `dir`.
void remove_leftovers(const fs::path& dir);
/// Of those only what processes left that are not there any more, in the place of `name`, or of any where it is "". What a folder was
/// before it could be replaced stays where nothing has its name.
void remove_abandoned(const fs::path& dir, std::string_view name = "");
/// Lets the symbolic link `link` name `target` (relative), durably and in one move. A folder in its place is moved aside.
void point_link(const fs::path& link, const std::string& target);

}  // namespace kf
