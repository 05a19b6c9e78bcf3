#include "train/step/loss_scale.h"

namespace kf {

void LossScale::good() {
  if (++good_ == kGrowthInterval) {
    good_ = 0;
    value_ *= 2;
  }
}

void LossScale::overflow() {
  good_ = 0;
  value_ /= 2;
}

void LossScale::set(double value, std::int64_t good) {
  value_ = value;
  good_ = good;
}

}  // namespace kf
