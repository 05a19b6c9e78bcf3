#pragma once
// The names in a folder, sorted, with blanks between them.

#include <algorithm>
#include <string>
#include <vector>

#include "core/fs.h"
#include "core/text.h"

namespace kf::test {

inline std::string listing(const fs::path& dir) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return join(names, " ");
}

}  // namespace kf::test
