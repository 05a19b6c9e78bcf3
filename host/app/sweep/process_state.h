#pragma once
// What a run may change of its process.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/working_folder.h"

namespace kf {

/// Remembers what the process has in common for all that runs in it, for `restore`: the working folder, environment and locale (which
/// scripts can change by ffi), the state of the default generator, and how many threads compute. What every run sets for itself before it
/// begins (run.caching_allocator, train.matmul_precision, how matrix products are computed) is not among it.
class ProcessState {
 public:
  ProcessState();

  /// `who` may have changed it: for the warning where the working folder is another one. Throws Code::script where there is no way back.
  void restore(const std::string& who) const;

 private:
  WorkingFolder folder_;
  std::map<std::string, std::string> environment_;
  std::string locale_;
  at::Tensor generator_;
  int threads_;
};

}  // namespace kf
