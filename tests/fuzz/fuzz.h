#pragma once
// What fuzzers share: a claim that must hold, and a folder for files that are read by their paths.

#include <stdlib.h>  // mkdtemp, of POSIX. NOLINT(modernize-deprecated-headers): <cstdlib> does not promise it

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/fs.h"

namespace kf::fuzz {

/// Ends the process, which the fuzzer takes for a finding, where it does not hold.
inline void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
  }
}

/// A new folder in memory; it stays for the life of the process.
inline fs::path new_folder() {
  std::string pattern = "/dev/shm/kf-fuzz-XXXXXX";
  require(::mkdtemp(pattern.data()) != nullptr, "no folder in /dev/shm");
  return pattern;
}

}  // namespace kf::fuzz
