#include "sweep/failure_line.h"

#include <vector>

#include "core/text.h"

namespace kf::sweep {

std::string failure_line(const fs::path& output) {
  std::error_code ignored;
  if (!fs::exists(output, ignored)) {
    return "";
  }
  const std::vector<std::string> lines = split(read_file(output), '\n');
  std::string last;
  for (auto line = lines.rbegin(); line != lines.rend() && line - lines.rbegin() < 200; ++line) {
    if (line->starts_with("kf-host: ")) {
      // A report of several problems has its first one on the next line.
      const bool more = line->ends_with("in the job") && line != lines.rbegin();
      return more ? std::string(trim(*(line - 1))) : line->substr(9);
    }
    last = last.empty() ? std::string(trim(*line)) : last;
  }
  return last;
}

}  // namespace kf::sweep
