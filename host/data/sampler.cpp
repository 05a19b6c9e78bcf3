#include "data/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace kf {

struct Permutations::State {
  at::Generator generator;
};

Permutations::Permutations(std::int64_t seed)
    : state_(std::make_unique<State>(State{at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(seed))})) {}

Permutations::~Permutations() = default;

std::vector<std::int64_t> Permutations::next(std::int64_t n) {
  const at::Tensor order = at::randperm(n, state_->generator, at::TensorOptions().dtype(at::kLong));
  const auto* first = order.const_data_ptr<std::int64_t>();
  return {first, first + n};
}

std::int64_t share_size(std::int64_t samples, const SamplerOptions& options) {
  return options.drop_last ? samples / options.world : (samples + options.world - 1) / options.world;
}

std::vector<std::int64_t> share_of_rank(const std::vector<std::int64_t>& all, const SamplerOptions& options) {
  const auto samples = static_cast<std::int64_t>(all.size());
  std::vector<std::int64_t> share(static_cast<std::size_t>(share_size(samples, options)));
  for (std::size_t i = 0; i < share.size(); ++i) {
    const std::int64_t place = static_cast<std::int64_t>(i) * options.world + options.rank;
    share[i] = all[static_cast<std::size_t>(place % samples)];
  }
  return share;
}

DistributedSampler::DistributedSampler(std::int64_t samples, const SamplerOptions& options) : samples_(samples), options_(options) {
  KF_CHECK(options.rank >= 0 && options.rank < options.world, Code::data, "rank {} of {} ranks: ranks go from 0 to {}", options.rank,
           options.world, options.world - 1);
}

std::int64_t DistributedSampler::size() const { return share_size(samples_, options_); }

std::vector<std::int64_t> DistributedSampler::order(std::int64_t epoch) const {
  std::vector<std::int64_t> all;
  if (options_.shuffle) {
    all = Permutations(options_.seed + epoch).next(samples_);
  } else {
    all.resize(static_cast<std::size_t>(samples_));
    std::iota(all.begin(), all.end(), std::int64_t{0});
  }
  return share_of_rank(all, options_);
}

}  // namespace kf
