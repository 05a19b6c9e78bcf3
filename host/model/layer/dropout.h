#pragma once
// Dropout whose draws depend on where and when they are made alone, so that a recomputed block drops the same values.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "model/model.h"

namespace kf {

class Dropout {
 public:
  /// Drops a share `rate` of the values, by (seed, step, micro, layer, place); rate 0 returns its argument itself.
  Dropout(double rate, std::int64_t seed, std::int64_t layer, std::string_view place);

  /// x with dropped values 0 and the others divided by 1 - rate (Srivastava et al. 2014, inverted); x itself outside training.
  at::Tensor apply(const at::Tensor& x, const ForwardContext& context, bool training) const;
  /// The same at a moment that is known otherwise.
  at::Tensor apply(const at::Tensor& x, const Moment& moment, bool training) const;
  bool active(bool training) const { return rate_ > 0 && training; }

 private:
  double rate_;
  std::uint64_t place_seed_;  // of seed, layer and place
};

}  // namespace kf
