#pragma once
// Whether files of a checkpoint are what was written, and who finds out.

#include <functional>
#include <map>
#include <string>

#include "checkpoint/files/durable_file.h"
#include "core/fs.h"
#include "parallel/group.h"

namespace kf {

/// Throws Code::checkpoint saying which of these files of `checkpoint` is missing or damaged.
using FileCheck = std::function<void(const fs::path& checkpoint, const std::map<std::string, FileDigest>& files)>;

/// Reads every byte of every file here.
void check_here(const fs::path& checkpoint, const std::map<std::string, FileDigest>& files);
/// Their sizes alone.
void check_sizes(const fs::path& checkpoint, const std::map<std::string, FileDigest>& files);
/// They have just been checked.
inline void checked_before(const fs::path& /*checkpoint*/, const std::map<std::string, FileDigest>& /*files*/) {}
/// Each file is read on one rank of the group, the largest ones first on whoever has least, and all learn of what one finds; so all of them
/// call it for the same files. The group outlives what is returned.
FileCheck shared_check(Group& files);

}  // namespace kf
