#include "metrics/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <unistd.h>

#include <fstream>

namespace kf {

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");  // in pages: size, resident, ...
  std::int64_t size = 0;
  std::int64_t resident = 0;
  return statm >> size >> resident ? resident * static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

std::int64_t memory_bytes(at::Device device) {
  if (device.is_cpu()) {
    return resident_bytes();
  }
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return at::getDeviceAllocator(device.type())->getDeviceStats(device.index()).allocated_bytes[all].peak;
}

}  // namespace kf
