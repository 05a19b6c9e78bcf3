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
  return active(training) ? x * factors(x.sizes(), x, moment) : x;
}

at::Tensor Dropout::apply_part(const at::Tensor& x, std::int64_t dim, std::int64_t begin, std::int64_t length, const Moment& moment,
                               bool training) const {
  if (!active(training)) {
    return x;
  }
  std::vector<std::int64_t> whole = x.sizes().vec();
  whole[static_cast<std::size_t>(dim)] = length;
  return x * factors(whole, x, moment).narrow(dim, begin, x.size(dim));
}

at::Tensor Dropout::factors(at::IntArrayRef shape, const at::Tensor& like, const Moment& moment) const {
  const std::uint64_t seed =
      mixed_seed(mixed_seed(place_seed_, static_cast<std::uint64_t>(moment.step)), static_cast<std::uint64_t>(moment.micro));
  return at::empty(shape, like.options()).bernoulli_(1 - rate_, seeded_generator(like.device(), seed)).div_(1 - rate_);
}

}  // namespace kf
