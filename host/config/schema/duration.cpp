#include "config/schema/duration.h"

#include <cmath>

namespace kf::config {

std::int64_t Duration::of(std::int64_t total) const {
  // 0.29 of 100 is 29, although the product of the doubles lies just below.
  constexpr double kRounding = 1e-9;
  return is_share() ? static_cast<std::int64_t>(std::floor(share_ * static_cast<double>(total) * (1 + kRounding))) : steps_;
}

}  // namespace kf::config
