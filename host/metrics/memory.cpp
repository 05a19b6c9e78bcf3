#include "metrics/memory.h"

#include <unistd.h>

#include <fstream>

namespace kf {

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");  // in pages: size, resident, ...
  std::int64_t size = 0;
  std::int64_t resident = 0;
  return statm >> size >> resident ? resident * static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace kf
