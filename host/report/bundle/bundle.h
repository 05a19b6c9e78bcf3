#pragma once
// A run's folder as one archive, without what is large: data are not in it anyway, checkpoints stay where they are.

#include <cstdint>

#include "core/fs.h"

namespace kf::report {

struct Bundled {
  std::int64_t files = 0;
  std::uint64_t bytes = 0;  // of the archive
};

/// Writes what `run` was made of and what it gave, below a folder of the run's name, to `archive`, whose name ends with .tar.zst or
/// .tar.gz. The same files give the same bytes: sorted, without owners and times. The archive is whole or not there. Throws Code::config
/// for another ending and a name that is taken, Code::other for what cannot be read or written.
Bundled bundle(const fs::path& run, const fs::path& archive);

}  // namespace kf::report
