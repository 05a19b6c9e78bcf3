#pragma once
// A folder that a command writes for its user, wherever that may be.

#include <functional>
#include <string_view>

#include "checkpoint/files/folder.h"

namespace kf {

/// Where a folder of this name is: absolute, with links followed and without a slash behind it. Throws Code::config for no name.
fs::path folder_named(const fs::path& asked);

/// A folder under a temporary name until it is whole. Most come beside their place and take it in one move. Where the place itself has to
/// stay (another file system is mounted on it, this process stands in it, or what lies around it belongs to others), they come inside of it
/// and go into it file by file.
class WrittenFolder {
 public:
  /// What is written inside of its place has the temporary name of a folder of this name there.
  static constexpr const char* kInside = "written";

  /// `stays`: the place stays in any case, with whatever else is in it.
  explicit WrittenFolder(fs::path place, bool stays = false);

  /// Where it is written.
  const fs::path& path() const { return pending_.path(); }
  /// `last`: the file by which readers know such a folder, which comes behind all others. `between` is called before it where the place has
  /// stayed, and removes what must not lie beside the new files.
  void commit(std::string_view last, const std::function<void()>& between = {});

 private:
  fs::path place_;
  bool stays_;
  PendingFolder pending_;
};

}  // namespace kf
