#include "model/layer/dropout.h"

#include <ATen/ATen.h>

#include "model/seed.h"

namespace kf {

Dropout::Dropout(double rate, std::int64_t seed, std::int64_t layer, std::string_view place)
    : rate_(rate), place_seed_(mixed_seed(seed_of(static_cast<std::uint64_t>(seed), place), static_cast<std::uint64_t>(layer))) {}

at::Tensor Dropout::apply(const at::Tensor& x, const ForwardContext& context, bool training) const {
  return apply(x, Moment{context.step, context.micro}, training);
}

at::Tensor Dropout::apply(const at::Tensor& x, const Moment& moment, bool training) const {
  if (!active(training)) {
    return x;
  }
  const std::uint64_t seed =
      mixed_seed(mixed_seed(place_seed_, static_cast<std::uint64_t>(moment.step)), static_cast<std::uint64_t>(moment.micro));
  const at::Tensor kept = at::empty(x.sizes(), x.options()).bernoulli_(1 - rate_, seeded_generator(x.device(), seed)).div_(1 - rate_);
  return x * kept;
}

}  // namespace kf
