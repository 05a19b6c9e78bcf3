#include "sweep/devices.h"

#include <algorithm>

#include "core/text.h"

namespace kf::sweep {

std::string devices_of_place(std::int64_t place, std::int64_t ranks, const std::vector<std::string>& devices) {
  const auto count = static_cast<std::int64_t>(devices.size());
  std::vector<std::string> own;
  for (std::int64_t i = 0; i < std::min(ranks, count); ++i) {
    own.push_back(devices[static_cast<std::size_t>((place * ranks + i) % count)]);
  }
  return join(own, ",");
}

}  // namespace kf::sweep
