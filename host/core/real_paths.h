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

/// "a.txt is a link to /x, which is not there", or why it cannot be followed.
std::string broken_link_fault(const fs::path& path);

}  // namespace kf
