#pragma once
// Where a tracker writes.

#include "core/fs.h"

namespace kf {

/// Makes it where it is not there. False: the disk is full, and has no room for it. Throws Code::other with the `setting` that names it
/// where it cannot be made for another reason, or not be written into.
bool make_folder(const fs::path& folder, const char* setting);

}  // namespace kf
