#pragma once
// Words that messages about ranks share.

#include <cstdint>
#include <string>
#include <vector>

#include "core/text.h"

namespace kf {

/// "rank 1", "ranks 0, 2".
inline std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  std::vector<std::string> texts;
  for (const std::int64_t rank : ranks) {
    texts.push_back(to_text(rank));
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(texts, ", ");
}

/// c10d's errors carry a C++ backtrace behind the first line.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace kf
