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
  /// x is entries `begin`, `begin` + 1, ... along `dim` of a tensor that is `length` long there: what is dropped of them is what would be
  /// dropped of them in the whole.
  at::Tensor apply_part(const at::Tensor& x, std::int64_t dim, std::int64_t begin, std::int64_t length, const Moment& moment,
                        bool training) const;
  bool active(bool training) const { return rate_ > 0 && training; }

 private:
  /// What x, or the whole that it is of, is multiplied by.
  at::Tensor factors(at::IntArrayRef shape, const at::Tensor& like, const Moment& moment) const;

  double rate_;
  std::uint64_t place_seed_;  // of seed, layer and place
};

}  // namespace kf
