#include "data/order/sampler.h"

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

void check_rank(const SamplerOptions& options) {
  KF_CHECK(options.rank >= 0 && options.rank < options.world, Code::data, "rank {} of {} ranks: ranks go from 0 to {}", options.rank,
           options.world, options.world - 1);
}

void ListSampler::read(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_) {
    list_ = order(epoch);
    epoch_ = epoch;
  }
  const auto count = static_cast<std::int64_t>(out.size());
  KF_CHECK(first >= 0 && count <= static_cast<std::int64_t>(list_.size()) - first, Code::data,
           "samples {} to {} of an epoch asked for, it has {}", first, first + count, list_.size());
  std::copy_n(list_.begin() + static_cast<std::ptrdiff_t>(first), count, out.begin());
}

namespace {

class TorchOrder final : public IndexOrder {
 public:
  TorchOrder(std::int64_t size, std::int64_t seed) : size_(size), seed_(seed) {}
  std::int64_t size() const override { return size_; }
  std::int64_t at(std::int64_t epoch, std::int64_t place) const override {
    const std::lock_guard lock(mutex_);
    if (epoch != epoch_) {
      list_ = Permutations(seed_ + epoch).next(size_);
      epoch_ = epoch;
    }
    return list_.at(static_cast<std::size_t>(place));
  }

 private:
  std::int64_t size_;
  std::int64_t seed_;
  mutable std::mutex mutex_;
  mutable std::vector<std::int64_t> list_;
  mutable std::int64_t epoch_ = -1;
};

}  // namespace

std::unique_ptr<IndexOrder> torch_order(std::int64_t samples, std::int64_t seed) { return std::make_unique<TorchOrder>(samples, seed); }

IndexSampler::IndexSampler(std::shared_ptr<const IndexOrder> order, std::int64_t passes, const SamplerOptions& options)
    : order_(std::move(order)), options_(options), size_(passes > 0 ? order_->size() * passes / options.world : kEndless / options.world) {
  check_rank(options);
}

void IndexSampler::read(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  const std::int64_t size = order_->size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t n = (first + static_cast<std::int64_t>(i)) * options_.world + options_.rank;
    out[i] = order_->at(pass_number(epoch, n / size), n % size);
  }
}

DistributedSampler::DistributedSampler(std::int64_t samples, const SamplerOptions& options) : samples_(samples), options_(options) {
  check_rank(options);
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
