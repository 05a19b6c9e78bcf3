#pragma once
// What git says of a folder.

#include <optional>
#include <string>

#include "core/fs.h"

namespace kf {

struct GitState {
  std::string commit;  // of HEAD, in full
  bool dirty = false;  // a file that git knows is not what that commit has
};

/// Asks the program `git`, which gets some seconds. Nothing where `folder` is in no repository (or in one of another user, which git does
/// not trust), where there is no commit yet, and where git is not there or does not answer.
std::optional<GitState> git_state(const fs::path& folder);

}  // namespace kf
