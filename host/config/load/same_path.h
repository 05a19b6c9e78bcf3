#pragma once
// When two spellings of a path mean one file, for a job that is compared with an earlier one.

#include "config/tree/node.h"
#include "core/fs.h"

namespace kf::config {

/// Gives the paths of `before`, a job's values by "section.name", the spelling that `now` has for them, where both mean one file: data/x is
/// ./data/x, a/../data/x and /home/me/data/x. Those of `before` start at `folder` ("": it is not known, the working folder is taken), those
/// of `now` at the working folder. Names of the hub stay what they are. A source of a mixture without a name is called by its path, and
/// its order depends on what it is called: it is the same where its name, or else its spelling, is.
void respell_paths(Table& before, const fs::path& folder, const Table& now);

}  // namespace kf::config
