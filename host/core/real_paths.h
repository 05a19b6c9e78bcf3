#pragma once
// Where files really are, links followed.

#include <string>

#include "core/fs.h"

namespace kf {

/// fs::canonical for many files in a row: folders that come again are not walked again.
class RealPaths {
 public:
  std::string of(const fs::path& file);

 private:
  bool known_ = false;
  std::string parent_;  // as it was written, and what it is
  fs::path real_;
};

}  // namespace kf
